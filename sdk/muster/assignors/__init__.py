"""Server-side assignors: pure functions from arrays to arrays."""
