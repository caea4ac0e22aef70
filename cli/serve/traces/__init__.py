"""Exports the trips of requests as OpenTelemetry's spans; nobody else knows OpenTelemetry."""
