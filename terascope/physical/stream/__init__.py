"""The plan of a Job as a stream: the stored rows, the placement and the release of each query."""
