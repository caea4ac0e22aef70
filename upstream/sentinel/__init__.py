"""The sentinel: Muster as the only member of the cluster's group, so that nobody else gets in."""
