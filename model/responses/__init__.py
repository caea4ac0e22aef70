"""Responses of the coordinator. An error response is a raised ``GroupError``."""
