"""What a stream needs beside a batch: slices, promises, state, results that grow. No Spark."""
