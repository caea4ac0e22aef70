"""A Kafka client of the tests' own: frames, connections, one with kio as referee, and a member.

Apart from it stay the simulator's (``tests/sim/wire``: bytes without a socket), the fuzz's
(``tests/fuzz``: frames that are wrong inside, many at once) and the floods of ``tests/attack``,
which send without waiting for anything.
"""
