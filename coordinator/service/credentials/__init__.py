"""Who a gRPC call comes from: certificates, tokens and passwords, and how each is checked."""
