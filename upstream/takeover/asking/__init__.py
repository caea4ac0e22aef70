"""What the cluster is asked while groups are moved, for a group and for its members."""
