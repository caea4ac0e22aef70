"""What members of classic groups say to one another, as words of a scenario.

``topics/foo+bar`` is a subscription of version 3, ``topics/foo;owns/foo:0-1;of/2`` one that says
what the member owns since generation 2, ``;version/1`` one of another version, and ``;version/1-``
one of version 1 that ends before what the member owns.
``has/foo:0-1+bar:2`` is an assignment, ``has/`` one of nothing, ``;data/x`` one with user data.
Any other text is opaque bytes.
"""

from __future__ import annotations

from muster.assignors import embedded

_LATEST = embedded.HIGHEST_VERSION


def parse_said(text: str) -> bytes:
    """The bytes that a word stands for."""
    kind, slash, rest = text.partition("/")
    if kind == "has" and slash:
        partitions, *more = rest.split(";")
        options = dict(part.split("/", 1) for part in more)
        data = options.get("data")
        assignment = embedded.Assignment(
            _parse_partitions(partitions), None if data is None else data.encode()
        )
        return embedded.encode_assignment(assignment, int(options.get("version", _LATEST)))
    if kind == "topics" and slash:
        return _parse_subscription(rest)
    return text.encode()


def _parse_subscription(text: str) -> bytes:
    names, *more = text.split(";")
    options = dict(part.split("/", 1) for part in more)
    subscription = embedded.Subscription(
        tuple(filter(None, names.split("+"))),
        None,
        _parse_partitions(options.get("owns", "")),
        int(options.get("of", embedded.NO_GENERATION)),
        options.get("rack"),
    )
    if options.get("version") == "1-":
        return b"\0\1" + embedded.encode_subscription(subscription, 0)[2:]
    return embedded.encode_subscription(subscription, int(options.get("version", _LATEST)))


def _parse_partitions(text: str) -> tuple[embedded.TopicPartitions, ...]:
    found = []
    for part in filter(None, text.split("+")):
        name, _, numbers = part.partition(":")
        first, _, last = numbers.partition("-")
        found.append(
            embedded.TopicPartitions(name, tuple(range(int(first), int(last or first) + 1)))
        )
    return tuple(found)


def format_said(data: bytes) -> str:
    """The text of a subscription; opaque bytes as they are."""
    try:
        said = embedded.decode_subscription(data)
    except embedded.MalformedProtocolError:
        return repr(data.decode())
    words = [f"topics/{'+'.join(said.topics)}"]
    if said.owned_partitions:
        words.append(f"owns/{_format_partitions(said.owned_partitions)};of/{said.generation}")
    return ";".join(words)


def format_given(data: bytes) -> str:
    """The text of an assignment; opaque bytes as they are."""
    try:
        given = embedded.decode_assignment(data)
    except embedded.MalformedProtocolError:
        return repr(data.decode())
    beside = "" if given.user_data is None else f";data/{given.user_data.decode()}"
    return f"has/{_format_partitions(given.partitions)}{beside}"


def _format_partitions(partitions: tuple[embedded.TopicPartitions, ...]) -> str:
    return "+".join(f"{each.topic}:{','.join(map(str, each.partitions))}" for each in partitions)
