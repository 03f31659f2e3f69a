"""Group: tuples and groups into tables, down an aggregate tree, to disk where memory is short."""
