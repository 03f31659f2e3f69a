"""The aggregates of GSQL, one small module per family.

A module declares `AGGREGATES` and, where an aggregate has further names, `SYNONYMS` (further name
-> name). It is registered by being in this folder, and the law tests take it up.
"""
