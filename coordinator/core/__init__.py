"""The group state machines: pure and deterministic.

``handle(shard, command, now) -> Outcome`` (``coordinator.dispatch``) reads the state and modifies
nothing but a cache. Only ``coordinator.core.replay`` modifies group state (``GroupState`` and
everything in it). The caller owns ``SoftState``, which is not derived from records. Time,
randomness and topics are arguments: there is no clock, no I/O and no logging here.

Duties of the caller (``coordinator.runtime``, and the simulator):

1. Handle the commands of one shard one at a time.
2. Replay the records of an outcome, in order, before handling the next command.
3. Write the records of an outcome, and those of its continuation (``then``), in one atomic batch.
4. Carry out the effects and return their results as commands, before the batch closes if possible.
5. Handle the continuation after the targets of the batch are installed.
6. Send a response only when everything it reveals is durable: the outcome's own records and, for
   a read or an error, everything replayed for the group before.
7. A ``GroupError`` from ``handle`` is a response, and nothing has changed. Any other exception is
   a bug. If ``handle`` raises it, nothing has changed either: answer UNKNOWN_SERVER_ERROR. Once
   the first record of an outcome is replayed, memory holds half an outcome: stop the process and
   reload from the log.
"""
