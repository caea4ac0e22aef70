"""Rows of Kafka's tables of errors and behaviours, each as the requests that come to it.

The name of a row is that of tests/scenarios/README.md. Groups are named for their row, so that no
row depends on another.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tests.differential.asks import (
    DELETE_GROUPS,
    DESCRIBE,
    DESCRIBE_GROUPS,
    FIND,
    LIST,
    MARKERS,
    Ask,
    beat,
    commit,
    delete_offsets,
    fetch,
    leave,
    owned,
    txn_commit,
)

COMMITS: Final = range(2, 11)
FETCHES: Final = range(1, 11)
TXN_COMMITS: Final = range(5)
"""Version 5 has Kafka ask the coordinator of the transaction."""
MOST: Final = 2**31 - 1
NO_MEMBER: Final = {"member": "", "epoch": -1}


def describe(*groups: str, version: int = 1) -> Ask:
    fields = {"group_ids": groups, "include_authorized_operations": True}
    return Ask(DESCRIBE, version, fields)


def join_static(group: str) -> Iterator[Ask]:
    """Instance i is m1, which leaves for a while, and then m2."""
    yield beat(group, "m1", instance_id="i")
    yield beat(group, "m1", -2, instance_id="i")
    yield beat(group, "m2", instance_id="i")


# ----------------------------------------------------------------------- ConsumerGroupHeartbeat


def c2_a_blank_member_id() -> Iterator[Ask]:
    for version, epoch in ((1, 0), (1, 1), (1, -1), (0, 1), (0, -1), (0, -2)):
        for member in ("", " "):
            yield beat("c2", member, epoch, version)


def c3_blank_ids() -> Iterator[Ask]:
    for blank in ("", " ", "\t", "\x00\n\x1f", "\u00a0", "\u3000"):
        yield beat(blank, "m")
        yield beat("c3", "m", instance_id=blank)
        yield beat("c3", "m", rack_id=blank)
        yield beat("c3", "m", 1, instance_id=blank)
        yield beat("c3", "m", 1, rack_id=blank)
        yield beat("c3", "m", -1, instance_id=blank)


def c4_to_c7_joins_and_leaves_that_are_none() -> Iterator[Ask]:
    yield beat("c4", "m", rebalance_timeout=-1)
    # Below -1 Muster differs on purpose: docs/differences.md.
    for timeout_ms in (0, 1):
        yield beat(f"c4{timeout_ms}", "m", rebalance_timeout=timeout_ms)
    yield beat("c5", "m", topic_partitions=None)
    yield beat("c5", "m", topic_partitions=owned(0))
    yield beat("c6", "m", subscribed_topic_names=None)
    yield beat("c6", "m", 0, 0, subscribed_topic_names=None)
    yield beat("c6", "m", subscribed_topic_names=None, subscribed_topic_regex="")
    yield beat("c6e", "m", subscribed_topic_names=())
    yield beat("c7", "m", -2)
    yield beat("c7", "m", -3)
    yield beat("c7", "m", -(2**31), instance_id="i")
    yield beat("c7", "m", -2, 0)


def c8_and_c9_assignors_and_patterns() -> Iterator[Ask]:
    for version in (0, 1):
        for assignor in ("nobody", "", "Range", "range"):
            yield beat(f"c8{version}{assignor}", "m", 0, version, server_assignor=assignor)
    for pattern in ("(", "[", "a**", r"(a)\1", "(?=a)", "a{1001}", "a{1000}{1000}", "[[:foo:]]"):
        yield beat("c9", "m", subscribed_topic_names=None, subscribed_topic_regex=pattern)
    # Patterns of no topic: what one matches may be there before the first answer, or after it.
    for pattern in (r"\Qa", "(a+)+$", "z(.*){1,100}", "(" * 900 + ")" * 900, "\x00\n"):
        yield beat(pattern, "m", subscribed_topic_names=None, subscribed_topic_regex=pattern)
    yield beat("c9", "m")
    yield beat("c9", "m", 2, subscribed_topic_regex="(")
    yield beat("c9", "m", 2)


def c11_no_such_group() -> Iterator[Ask]:
    for epoch in (1, -1, -2, MOST):
        yield beat("c11", "m", epoch, instance_id="i")
    yield commit(9, "c11s", {0: 1}, epoch=-1)
    for epoch in (1, -1):
        yield beat("c11s", "m", epoch)
    yield describe("c11s")
    yield beat("c11s", "m")
    yield describe("c11s")
    yield fetch(9, "c11s")


def c12_a_full_group() -> Iterator[Ask]:
    for number in range(5):
        yield beat("c12", f"m{number}", subscribed_topic_names=())
    yield beat("c12", "m1", subscribed_topic_names=())
    yield beat("c12", "m9", 1)
    yield beat("c12", "m1", -1)
    yield beat("c12", "m9", subscribed_topic_names=())


def c13_and_c14_unknown_members_and_wrong_epochs() -> Iterator[Ask]:
    yield beat("c13", "m")
    for epoch in (1, 2, -1):
        yield beat("c13", "other", epoch)
        yield beat("c13", "m", epoch + 10, instance_id="i")
    yield beat("c13", "other", -2, instance_id="i")
    for epoch in (3, MOST, 1):
        yield beat("c13", "m", epoch)
    yield beat("c13", "m", 1, topic_partitions=())
    yield beat("c13", "m", 2, topic_partitions=owned(*range(4)))
    yield beat("c13", "m", subscribed_topic_names=("t", "u"))
    yield beat("c13", "m", 2, topic_partitions=owned(*range(4)))
    yield beat("c13", "m", 2, topic_partitions=owned(9))
    yield beat("c13", "m", 2)
    yield beat("c13", "m", 3, topic_partitions=owned(*range(4)))


def c14_the_epoch_before_and_what_is_owned() -> Iterator[Ask]:
    yield beat("c14", "a")
    yield beat("c14", "b")
    yield beat("c14", "a", 2)
    yield beat("c14", "a", 2, topic_partitions=owned(0, 1))
    yield beat("c14", "a", 2, topic_partitions=owned(0, 1))
    yield beat("c14", "a", 2, topic_partitions=owned(0, 1, 2))
    yield beat("c14", "a", 3, topic_partitions=owned(0, 1))
    yield beat("c14", "b", 3, topic_partitions=())
    yield beat("c14", "b", 3, topic_partitions=owned(2, 3))
    yield describe("c14")


def c15_and_c16_instances() -> Iterator[Ask]:
    yield beat("c15", "m1", instance_id="i")
    yield beat("c15", "m2", instance_id="i")
    yield beat("c15", "m2", 1, instance_id="i")
    yield beat("c15", "m2", -1, instance_id="i")
    yield beat("c15", "m2", -2, instance_id="i")
    yield beat("c15", "m1", 2)
    yield beat("c15", "m1", -1)
    yield beat("c15", "m2", instance_id="i")


def c16_a_replaced_member() -> Iterator[Ask]:
    yield from join_static("c16")
    for epoch in (1, 2, -1, -2):
        yield beat("c16", "m1", epoch, instance_id="i")
        if epoch != -2:
            yield beat("c16", "m1", epoch)
    yield beat("c16", "m1", instance_id="i")
    yield beat("c16", "m2", 2, instance_id="i")
    yield describe("c16")


def c18_version_0_and_leaving() -> Iterator[Ask]:
    yield beat("c18", "m", 0, 0)
    yield beat("c18", "m", 2, 0)
    yield beat("c18", "m", -1, 0)
    yield beat("c18", "m", -1, 0)
    yield beat("c18", "s", instance_id="i")
    yield beat("c18", "s", -2, instance_id="i")
    yield beat("c18", "s", -2, instance_id="i")
    yield beat("c18", "s", 2, instance_id="i")
    yield beat("c18", "s", -2, 1, instance_id="i")
    yield beat("c18", "s", -1, 1, instance_id="i")
    yield describe("c18")


# ------------------------------------------------------------------------------------- offsets


def o1_blank_group_ids() -> Iterator[Ask]:
    for version in COMMITS:
        yield commit(version, "", {0: version})
    for version in FETCHES:
        yield fetch(version, "")
    for version in TXN_COMMITS:
        yield txn_commit(version, "", {0: 1})
    yield delete_offsets("", "t", 0)
    yield Ask(DELETE_GROUPS, 2, {"groups_names": ("", " ", "absent")})
    yield fetch(9, "")


def o2_no_such_group() -> Iterator[Ask]:
    for version in COMMITS:
        for epoch in (0, 1, MOST):
            yield commit(version, "o2", {0: 1}, epoch=epoch, member="m")
            yield commit(version, "o2", {0: 1}, epoch=epoch)
        yield commit(version, f"o2-{version}", {0: 1}, epoch=-1, member="m")
        yield commit(version, f"o2-{version}", {1: 1}, epoch=-2)
    yield fetch(9, "o2-9")
    yield describe("o2-9")
    yield Ask(DESCRIBE_GROUPS, 6, {"groups": ("o2-9", "o2")})


def o5_old_versions_of_a_member() -> Iterator[Ask]:
    yield beat("o5", "m")
    for version in COMMITS:
        for epoch in (2, 1, 3, -1):
            yield commit(version, "o5", {0: 10 * version + epoch}, member="m", epoch=epoch)
            yield commit(version, "o5", {0: 1}, member="x", epoch=epoch)
            yield commit(version, "o5", {0: 1}, epoch=epoch)
        yield fetch(9, "o5")


def o6_stale_epochs() -> Iterator[Ask]:
    yield beat("o6", "a")
    yield beat("o6", "b")
    yield beat("o6", "a", 2)
    for version in (9, 10):
        yield commit(version, "o6", {0: 1, 3: 1}, member="a", epoch=2)
        yield commit(version, "o6", {0: 1}, member="a", epoch=3)
        yield commit(version, "o6", {0: 1}, member="a", epoch=1)
    yield beat("o6", "a", 2, topic_partitions=owned(0, 1))
    for version in (9, 10):
        yield commit(version, "o6", {0: 2}, member="a", epoch=2)
        yield commit(version, "o6", {0: 3, 3: 3}, member="a", epoch=2)
        yield commit(version, "o6", {3: 3}, member="a", epoch=3)
        yield commit(version, "o6", {0: 4, 9: 3}, member="a", epoch=2)
        yield commit(version, "o6", {0: 5}, topic="u", member="a", epoch=2)
        yield commit(version, "o6", {0: 5}, topic="none", member="a", epoch=2)
        yield fetch(version, "o6", member="a", epoch=3)


def o8_who_may_commit() -> Iterator[Ask]:
    yield beat("o8", "m", instance_id="i")
    for version in COMMITS:
        yield commit(version, "o8", {0: 1}, member="m", epoch=-1)
        yield commit(version, "o8", {0: 1}, member="", epoch=-1)
        yield commit(version, "o8", {0: 1}, member="", epoch=2)
    for version in range(7, 11):
        for instance in ("i", "other", ""):
            yield commit(version, "o8", {0: 2}, member="m", epoch=2, instance=instance)
            yield commit(version, "o8", {0: 2}, member="", epoch=-1, instance=instance)
            yield commit(version, f"o8{version}", {0: 2}, epoch=-1, instance=instance)


def o8_a_replaced_member() -> Iterator[Ask]:
    yield from join_static("o8r")
    for version in COMMITS:
        for epoch in (2, 1, 3, -1):
            for instance in (None, "i") if version >= 7 else (None,):
                fields = {} if instance is None else {"instance": instance}
                yield commit(version, "o8r", {0: 1}, member="m1", epoch=epoch, **fields)
    for version in (3, 4):
        for epoch in (2, 1, -1):
            for instance in (None, "i"):
                yield txn_commit(
                    version, "o8r", {0: 1}, member="m1", epoch=epoch, instance=instance
                )
    for version in (9, 10):
        yield fetch(version, "o8r", member="m1", epoch=2)
    yield leave(5, "o8r", ("m1", "i"), ("m1", None), ("m2", "j"))
    yield commit(9, "o8r", {0: 7}, member="m2", epoch=2, instance="i")
    yield fetch(9, "o8r", stable=True)


def o8_an_instance_that_is_away() -> Iterator[Ask]:
    yield beat("o8a", "m", instance_id="i")
    yield beat("o8a", "m", -2, instance_id="i")
    for epoch in (2, -2, -1, 0):
        yield commit(9, "o8a", {0: 1}, member="m", epoch=epoch, instance="i")
        yield txn_commit(4, "o8a", {1: 1}, member="m", epoch=epoch, instance="i")
        yield fetch(9, "o8a", member="m", epoch=epoch)


def o9_each_partition_for_itself() -> Iterator[Ask]:
    wide = "\u20ac" * 4_096
    for version in COMMITS:
        group = f"o9-{version}"
        for number, metadata in enumerate(("x" * 4_096, "x" * 4_097, wide, wide + "x", None)):
            yield commit(version, group, {0: (number, metadata), 1: number})
        yield commit(version, group, {0: -1, 1: -2, 2: 2**63 - 1, 3: -(2**63)})
        yield commit(version, group, {-1: 1, 99: 1, MOST: 1, 2: 5})
        yield commit(version, group, {0: 1}, topic="none")
        yield commit(version, group, {0: 1}, topic="")
        yield commit(version, group, {})
        yield commit(version, group, {}, topic="none")
        yield fetch(9, group)
    for retention in (-2, 0, 1):
        yield commit(3, "o9-r", {0: 1}, retention_time=retention)
        yield fetch(9, "o9-r")


def o9_the_same_partition_twice() -> Iterator[Ask]:
    ask = commit(9, "o9t", {0: 1, 1: 1})
    (topic,) = ask.fields["topics"]
    later = commit(9, "o9t", {0: 2}).fields["topics"]
    yield ask._replace(fields=ask.fields | {"topics": [topic, *later]})
    twice = {**topic, "partitions": [*topic["partitions"], *topic["partitions"]]}
    yield ask._replace(fields=ask.fields | {"topics": [twice]})
    yield ask._replace(fields=ask.fields | {"topics": []})
    yield fetch(9, "o9t")
    yield fetch(9, "o9t", (0, 0, 1))


def o10_in_a_transaction() -> Iterator[Ask]:
    for version in TXN_COMMITS:
        group = f"o10-{version}"
        yield txn_commit(version, f"{group}-absent", {0: 1})
        if version >= 3:
            for epoch in (0, 1, -1):
                yield txn_commit(version, f"{group}-none", {0: 1}, member="m", epoch=epoch)
        yield beat(group, "m")
        yield txn_commit(version, group, {0: 1, 9: 1}, **({} if version < 3 else NO_MEMBER))
        yield txn_commit(version, group, {0: 1}, topic="none")
        yield txn_commit(version, group, {1: (1, "x" * 4_097)})
        yield txn_commit(version, group, {})
        yield txn_commit(version, group, {}, topic="none")
        if version < 3:
            continue
        for epoch in (2, 1, 3, 0, -1, -2):
            for member in ("m", "x", ""):
                for instance in (None, "i"):
                    fields = {"member": member, "epoch": epoch, "instance": instance}
                    yield txn_commit(version, group, {2: 1}, **fields)


def o10_stale_epochs() -> Iterator[Ask]:
    yield beat("o10s", "a")
    yield beat("o10s", "b")
    yield beat("o10s", "a", 2)
    yield beat("o10s", "a", 2, topic_partitions=owned(0, 1))
    for rows in ({0: 1}, {3: 1}, {0: 1, 3: 1}):
        for epoch in (1, 2, 3, 4):
            yield txn_commit(4, "o10s", rows, member="a", epoch=epoch)


def o11_fetches_of_a_member() -> Iterator[Ask]:
    yield beat("o11", "m", instance_id="i")
    yield commit(9, "o11", {0: 5}, member="m", epoch=2)
    for version in (9, 10):
        for member in ("m", "x", "", None):
            # Of no member at an epoch Kafka says UNKNOWN_SERVER_ERROR, which nobody asks for.
            for epoch in (-1, -2) if member is None else (2, 1, 3, 0, -1, -2):
                yield fetch(version, "o11", member=member, epoch=epoch)
                yield fetch(version, "o11", None, member=member, epoch=epoch)
    yield fetch(9, "o11-absent", member="m", epoch=1)
    yield commit(9, "o11-simple", {0: 1})
    yield fetch(9, "o11-simple", member="m", epoch=1)
    yield fetch(9, "o11-simple", member="m", epoch=-1)


def o12_fetches_of_what_is_not_there() -> Iterator[Ask]:
    yield commit(9, "o12", {0: (5, "note"), 2: (6, None)})
    for version in FETCHES:
        for group in ("o12", "o12-absent"):
            yield fetch(version, group)
            yield fetch(version, group, (-1, 99, 0))
            yield fetch(version, group, (0,), topic="none")
            yield fetch(version, group, ())
            if version >= 2:
                yield fetch(version, group, None)
    for version in range(8, 11):
        rows = [fetch(version, group).fields["groups"][0] for group in ("o12", "o12-absent", "o12")]
        yield fetch(version, "")._replace(fields={"groups": rows, "require_stable": False})
        yield fetch(version, "")._replace(fields={"groups": [], "require_stable": True})


def o13_stable_offsets() -> Iterator[Ask]:
    yield commit(9, "o13", {0: 1, 1: 1})
    yield txn_commit(4, "o13", {0: 2, 2: 2})
    for version in range(7, 11):
        for partitions in (range(4), None, (1,), (3,)):
            yield fetch(version, "o13", partitions, stable=True)
            yield fetch(version, "o13", partitions, stable=False)
    yield delete_offsets("o13", "t", 2, 1)
    yield Ask(DELETE_GROUPS, 2, {"groups_names": ("o13",)})
    yield fetch(9, "o13", stable=True)
    for version, committed in ((1, True), (1, False)):
        marker = {
            "producer_id": 4_000,
            "producer_epoch": 0,
            "transaction_result": committed,
            "topics": [{"name": "__consumer_offsets", "partition_indexes": tuple(range(8))}],
            "coordinator_epoch": 0,
        }
        yield Ask(MARKERS, version, {"markers": [marker]})
        yield fetch(9, "o13", stable=True)


def o14_deleting_offsets() -> Iterator[Ask]:
    yield delete_offsets("o14-absent", "t", 0)
    yield commit(9, "o14", {0: 1, 1: 1, 2: 1})
    yield commit(9, "o14", {0: 1}, topic="u")
    yield delete_offsets("o14", "t", 0, 3, 99, -1)
    yield delete_offsets("o14", "none", 0)
    yield delete_offsets("o14", "t")
    yield beat("o14", "m")
    yield delete_offsets("o14", "t", 0, 99)
    yield delete_offsets("o14", "u", 0, 99)
    yield delete_offsets("o14", "none", 0)
    yield fetch(9, "o14", None)
    yield beat("o14", "m", -1)
    yield delete_offsets("o14", "t", 1, 2)
    yield fetch(9, "o14", None)


def o15_deleting_groups() -> Iterator[Ask]:
    yield beat("o15", "m")
    yield commit(9, "o15-simple", {0: 1})
    for version in range(3):
        wanted = ("o15", "o15-absent", "", "o15-simple", "o15-simple", "o15")
        yield Ask(DELETE_GROUPS, version, {"groups_names": wanted})
        yield Ask(DELETE_GROUPS, version, {"groups_names": ()})
    yield beat("o15", "m", -1)
    yield Ask(DELETE_GROUPS, 2, {"groups_names": ("o15",)})
    yield describe("o15")
    yield beat("o15", "m")


def o16_describes() -> Iterator[Ask]:
    yield beat("o16", "m", instance_id="i", rack_id="r", server_assignor="range")
    yield beat("o16", "n", subscribed_topic_names=("u", "t"), rebalance_timeout=7)
    yield commit(9, "o16-simple", {0: 1})
    groups = ("o16", "o16-simple", "o16-absent", "", "o16")
    for version in range(7):
        fields = {"groups": groups}
        for operations in (False, True) if version >= 3 else (None,):
            more = {} if operations is None else {"include_authorized_operations": operations}
            yield Ask(DESCRIBE_GROUPS, version, fields | more)
        yield Ask(DESCRIBE_GROUPS, version, {"groups": ()})
    for version in (0, 1):
        for operations in (False, True):
            fields = {"group_ids": groups, "include_authorized_operations": operations}
            yield Ask(DESCRIBE, version, fields)
        yield Ask(DESCRIBE, version, {"group_ids": ()})


def o17_lists() -> Iterator[Ask]:
    """The first row of all, while there are these groups alone."""
    yield beat("o17", "m")
    yield commit(9, "o17-simple", {0: 1})
    yield beat("o17-empty", "m")
    yield beat("o17-empty", "m", -1)
    for version in range(6):
        yield Ask(LIST, version, {})
    for states in ((), ("Stable",), ("stable", "EMPTY"), ("odd",), ("", "Dead"), ("Reconciling",)):
        for version in (4, 5):
            yield Ask(LIST, version, {"states_filter": states})
    for types in ((), ("consumer",), ("Consumer", "CLASSIC"), ("odd",), ("",), ("share",)):
        yield Ask(LIST, 5, {"types_filter": types})
        yield Ask(LIST, 5, {"types_filter": types, "states_filter": ("Empty",)})


def l1_and_l2_administrators_remove_members() -> Iterator[Ask]:
    for version in range(6):
        group = f"l1-{version}"
        yield leave(version, group, ("m", None))
        yield beat(group, "m")
        yield beat(group, "s", instance_id="i")
        yield leave(version, group, ("x", None))
        yield leave(version, group, ("m", None))
        yield leave(version, group, ("", None))
        if version >= 3:
            yield leave(version, group)
            yield leave(version, group, ("s", "j"), ("x", "i"), ("", "j"), ("m", "i"))
            yield leave(version, group, ("s", None), ("s", "i"))
            yield beat(group, "s2", instance_id="i")
            yield leave(version, group, ("", "i"), ("", "i"))
            yield describe(group)
    yield leave(5, "", ("m", None))


def odd_names() -> Iterator[Ask]:
    yield beat("odd", "a", subscribed_topic_names=("",))
    yield beat("odd", "b", subscribed_topic_names=("t", "t"))
    yield beat("odd", "c", subscribed_topic_names=("no such", "a/b"))
    yield beat("odd-id", "\u0000\n/../")
    yield beat("../\n", "m")
    yield describe("../\n", "odd-id")
    yield commit(9, "../\n", {0: 1}, member="m", epoch=2)


def coordinators() -> Iterator[Ask]:
    for version in range(7):
        for kind in (0, 9) if version >= 1 else (None,):
            more = {} if kind is None else {"key_type": kind}
            if version < 4:
                yield Ask(FIND, version, {"key": "g", **more})
                continue
            for keys in ((), ("g", "h"), ("g", "g"), ("",)):
                yield Ask(FIND, version, {"coordinator_keys": keys, **more})


ROWS: Final = (
    o17_lists,
    c2_a_blank_member_id,
    c3_blank_ids,
    c4_to_c7_joins_and_leaves_that_are_none,
    c8_and_c9_assignors_and_patterns,
    c11_no_such_group,
    c12_a_full_group,
    c13_and_c14_unknown_members_and_wrong_epochs,
    c14_the_epoch_before_and_what_is_owned,
    c15_and_c16_instances,
    c16_a_replaced_member,
    c18_version_0_and_leaving,
    o1_blank_group_ids,
    o2_no_such_group,
    o5_old_versions_of_a_member,
    o6_stale_epochs,
    o8_who_may_commit,
    o8_a_replaced_member,
    o8_an_instance_that_is_away,
    o9_each_partition_for_itself,
    o9_the_same_partition_twice,
    o10_in_a_transaction,
    o10_stale_epochs,
    o11_fetches_of_a_member,
    o12_fetches_of_what_is_not_there,
    o13_stable_offsets,
    o14_deleting_offsets,
    o15_deleting_groups,
    o16_describes,
    l1_and_l2_administrators_remove_members,
    odd_names,
    coordinators,
)
