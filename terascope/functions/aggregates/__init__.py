"""The aggregates of GSQL, one small module per family.

Every class of a module with a `name` is registered, unless it is `internal`, and the law tests take
it up. `SYNONYMS` (further name -> name) has the further names of a module's aggregates.
"""
