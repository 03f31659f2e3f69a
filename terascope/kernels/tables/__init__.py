"""Hash tables of groups, generated for one layout of row."""
