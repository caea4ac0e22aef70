"""A Kafka broker of the Maven artefacts, for demos and tests."""
