"""A Kafka client of the tests' own: codec, frames, connections, and a member.

kio writes and reads the bytes (``codec``), so that a fault of the server's codec that is the same
in both directions is seen. Apart from it stay the fuzz's frames, which are wrong inside
(``tests/fuzz/wire_bytes.py``), and the floods of ``tests/attack``, which send without waiting for
anything.
"""
