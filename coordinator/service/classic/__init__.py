"""ClassicService: classic groups over gRPC."""
