"""What a connection knows of its members: their pace, and the answers kept for them."""
