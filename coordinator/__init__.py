"""The coordinator of groups: its state machines, its runtime, and its gRPC services."""
