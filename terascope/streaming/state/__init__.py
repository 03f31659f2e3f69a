"""The state of a stream on disk: slice store, manifests, growing results, resuming."""
