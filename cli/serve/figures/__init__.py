"""The figures of a server at one moment, taken on the event loop, and families made of them."""
