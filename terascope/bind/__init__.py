"""Script -> Plan: names resolved, types checked, every mistake told."""
