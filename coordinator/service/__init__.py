"""The gRPC services of `muster.v1`."""
