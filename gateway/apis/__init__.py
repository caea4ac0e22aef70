"""The Kafka APIs, one module each; ``api_registry`` lists them."""
