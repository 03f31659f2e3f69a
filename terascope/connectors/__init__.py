"""Sources, engine-free and columnar, one package a kind."""
