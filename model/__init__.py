"""The vocabulary of Muster: ids, records, commands, responses, topics, errors.

Standard library only, frozen dataclasses without behaviour. Every package shares these terms,
which are those of Kafka and KIP-848.
"""
