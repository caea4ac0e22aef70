"""The SDK and a server over a network that delays, holds back, cuts and resets: see ``run``."""
