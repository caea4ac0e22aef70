"""Services about who may do what: ACLs, users and quotas."""
