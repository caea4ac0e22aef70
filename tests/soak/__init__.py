"""Does anything grow? A server under real clients of both protocols, and what is in its memory.

Some clients stay: librdkafka in both protocols, Java and franz-go where they are at hand, members
of the SDK, and raw ones whose heartbeats are parked (``load.cached``). The others come and go in
rounds (``load``): groups of each kind, topics, transactions, connections that reset or send a half,
members that die, processes that are killed, sessions and calls over gRPC, watchers, scrapes. A
round ends when all that came has gone, so that each ends at an *equal point*, and there everything
is measured (``figures``): from outside, and by a census in a copy of the process, which changes
nothing in it (``census``).

``make soak MINUTES=30`` fits a line through the points of each measure (``slopes``) and fails
where one is steeper than its limit by more than two standard errors. With the collector off, as
in CI, a few equal points are compared instead: there may be no more objects of any type at the
last ones than at the first, nor garbage of our own in cycles (``report``).

What is bounded has small bounds here (``run.SETTINGS``, ``bounds``), so that it is full before
the window begins. ``--why TYPE`` says how objects of a type are kept. ``--leak NAME`` plants a
leak, which must be found (``leaks``).
"""
