"""The members of the load, of both protocols, and their groups."""
