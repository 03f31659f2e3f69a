"""Filter, project, rank, regroup, join and assemble windows, over finished rows."""
