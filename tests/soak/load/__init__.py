"""What clients do to the server: some stay (``steady``), the others come and go with each round."""
