"""The group state machines: pure and deterministic.

``handle(shard, command, now) -> Outcome`` (``coordinator.dispatch``) reads the state and changes
nothing but a cache; ``coordinator.core.replay`` is the only code that changes group state
(``GroupState`` and what is in it). ``SoftState``, what is known beside records, is the caller's.
Time, randomness and topics are arguments. There is no clock, no I/O, no logging here.

Duties of the caller (``coordinator.runtime``, and the simulator):

1. Handle the commands of one shard one after another, never two at once.
2. Replay the records of an outcome, in order, before anything else is handled.
3. Write the records of one outcome, and of the ``then`` that it asks for, in one atomic batch.
4. Carry out the effects and answer them with commands; before the batch closes where it can.
5. Handle ``then`` after the targets of the batch were installed.
6. Give no answer before what it shows is durable: an outcome's own records, and for a read
   or an error all that its group had replayed before.
7. A ``GroupError`` from ``handle`` is an answer and nothing has changed. Any other exception is
   a bug. From ``handle`` it has changed nothing either, and is answered as one. From the first
   ``replay`` of an outcome on it leaves half of it: stop, and load from the log.
"""
