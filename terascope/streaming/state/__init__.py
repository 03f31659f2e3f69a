"""The state of a stream on disk: slice store, manifests, results that grow, resuming."""
