"""The one logical algebra: expressions, relations, plans."""
