"""What the console costs, and how quick it is: pages, updates, and a server under load."""
