"""The vocabulary of Muster: ids, records, commands, responses, topics, errors.

Standard library only, frozen dataclasses without behaviour. Every other room speaks in these
words; the words are Kafka's and KIP-848's.
"""
