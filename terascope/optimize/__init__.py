"""Plan -> Plan: one file a rule, an explicit list of batches."""
