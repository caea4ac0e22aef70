"""The service about the cluster that the server stands in front of, if there is one."""
