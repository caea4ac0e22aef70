"""SASL on the Kafka wire: what a listener's clients have to show, and one client's exchange."""
