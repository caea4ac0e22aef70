"""What is between machines: both ends of grpc.aio, and the network that does what TCP may do."""
