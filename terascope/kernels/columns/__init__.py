"""The columns of a batch as kernels read them: codes, numbers, payload bytes."""
