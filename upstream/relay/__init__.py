"""Relays: a listener for each broker, whose connections are the broker's but for what names it."""
