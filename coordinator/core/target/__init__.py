"""The target assignment: the assignor's input, and its result as records."""
