"""Security of clients as they give it, in files of properties; Muster as a client of Kafka."""
