"""Rights in the cluster: a mirror of its ACLs, and what Muster's own identity needs."""
