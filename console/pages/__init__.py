"""The pages: each asks the services, computes a view of the answers, and renders it."""
