"""The APIs of the Kafka wire, one module each; `api_registry` lists them."""
