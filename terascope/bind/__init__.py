"""Script -> Plan: names resolved, types checked, every mistake reported.

A step of binding raises `Mistake` with all that is wrong with its part of the script. A caller that
can go on without the part, to find further mistakes, records it (`BindContext.attempt`).
"""
