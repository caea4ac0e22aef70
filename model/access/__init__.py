"""Who may do what, and how much of it: ACLs, quotas, and what a server keeps of passwords."""
