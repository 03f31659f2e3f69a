"""Statistics of sources from samples, before the sources are read; and costs of functions."""
