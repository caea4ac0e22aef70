"""Security as clients meet it: real servers, and clients that have to show who they are."""
