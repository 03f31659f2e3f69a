"""Plan -> Job: the physical plan, as pure data."""
