"""The target assignment: the question to the assignor, and its answer as records."""
