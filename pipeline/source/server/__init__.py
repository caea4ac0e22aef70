"""A live server as a log, read over gRPC; only what is here knows gRPC and the API."""
