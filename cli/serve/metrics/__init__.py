"""What `/metrics` answers: the families of a snapshot of the server, and their text."""
