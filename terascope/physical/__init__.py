"""Plan -> Job: what will be done, as pure data."""
