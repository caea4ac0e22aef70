"""The tests' own Kafka client: codec, frames, connections, and a member.

kio encodes and decodes the bytes (``codec``), so that a server codec that is wrong in both
directions is detected. Not here are the fuzzer's frames, which are malformed
(``tests/fuzz/wire_bytes.py``), and the floods of ``tests/attack``, which send without waiting.
"""
