"""What operators ask of a server in front of a cluster: how groups stand, and to move them."""
