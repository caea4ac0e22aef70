"""Who may do what: ACLs, principals, and how they are decided. Pure."""
