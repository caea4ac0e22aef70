"""`muster upstream`: the cluster that the server stands in front of; groups taken and released."""
