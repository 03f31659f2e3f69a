"""The scalar functions of GSQL, by theme: one small module each.

Every `Scalar` of a module is registered, and so are those of its `SCALARS`. `SYNONYMS` (further
name -> name) has the further names of its functions.
"""
