"""The console: pages for people, rendered here, that ask what gRPC's clients ask."""
