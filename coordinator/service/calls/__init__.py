"""How any call is taken: its caller, its rights, its order, and what repeats it."""
