"""What a stream needs beside a batch: watermarks, closing, release, state, re-planning."""
