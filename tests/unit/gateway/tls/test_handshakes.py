"""Which handshake is next, and which is dropped."""

from __future__ import annotations

from gateway.tls.decryptions import TURN_S as DECRYPTION_S
from gateway.tls.decryptions import Decryptions
from gateway.tls.handshakes import TURN_S, Handshakes
from tests.support.gateway.fake_coordinator import VirtualClock


class Client:
    """A handshake of which each step takes ``cost_s``."""

    def __init__(self, stand: Stand, name: str) -> None:
        self.stand = stand
        self.name = name

    def take_step(self) -> None:
        self.stand.spent += self.stand.cost_s
        self.stand.served.append(self.name)

    def take_turn(self) -> None:
        self.take_step()

    def drop(self) -> None:
        self.stand.dropped.append(self.name)


class Stand:
    def __init__(self, most: int = 3, cost_s: float = 0.001) -> None:
        self.clock = VirtualClock()
        self.spent = 0.0
        self.cost_s = cost_s
        self.served: list[str] = []
        self.dropped: list[str] = []
        self.handshakes = Handshakes(self.clock, lambda: self.spent, most)
        self.decryptions = Decryptions(self.clock, lambda: self.spent)

    def clients(self, *names: str) -> list[Client]:
        found = [Client(self, name) for name in names]
        for client in found:
            self.handshakes.wait_for_client(client)
        return found


def test_beyond_the_limit_the_oldest_that_waits_for_its_client_goes() -> None:
    stand = Stand(most=3)
    a, *_ = stand.clients("a", "b", "c")
    assert stand.dropped == []
    stand.handshakes.wait_for_turn(a, is_begun=False)
    stand.clients("d", "e")
    assert stand.dropped == ["b", "c"]
    assert len(stand.handshakes) == 3


def test_one_whose_turn_it_is_goes_only_if_no_client_is_waited_for() -> None:
    stand = Stand(most=2)
    for client in stand.clients("a", "b"):
        stand.handshakes.wait_for_turn(client, is_begun=False)
    stand.clients("c")
    assert stand.dropped == ["a"]


def test_a_single_one_is_never_in_its_own_way() -> None:
    stand = Stand(most=1)
    stand.clients("a", "b")
    assert stand.dropped == ["a"]
    assert len(stand.handshakes) == 1


def test_those_that_have_begun_go_first_and_then_the_newest() -> None:
    stand = Stand(most=10, cost_s=0)
    names = stand.clients("a", "b", "c", "d")
    for client, is_begun in zip(names, (False, True, True, False), strict=True):
        stand.handshakes.wait_for_turn(client, is_begun=is_begun)
    assert stand.served == []
    stand.clock.turn()
    assert stand.served == ["b", "c", "d", "a"]


def test_an_iteration_has_a_few_milliseconds_for_all() -> None:
    stand = Stand(most=100, cost_s=0.0011)
    for client in stand.clients(*map(str, range(10))):
        stand.handshakes.wait_for_turn(client, is_begun=True)
    counts = []
    while stand.clock.turn():
        counts.append(len(stand.served) - sum(counts))
    assert counts == [3, 3, 3, 1]
    assert 3 * 0.0011 > TURN_S > 2 * 0.0011


def test_one_that_is_removed_gets_no_turn() -> None:
    stand = Stand()
    a, b = stand.clients("a", "b")
    stand.handshakes.wait_for_turn(a, is_begun=True)
    stand.handshakes.remove(a)
    stand.handshakes.remove(b)
    stand.clock.turn()
    assert (stand.served, len(stand.handshakes)) == ([], 0)


def test_decryption_has_a_few_milliseconds_in_each_iteration() -> None:
    stand = Stand()
    assert stand.decryptions.has_time()
    stand.spent += DECRYPTION_S * 2
    assert not stand.decryptions.has_time()
    stand.clock.turn()
    assert stand.decryptions.has_time()


def test_connections_that_wait_take_turns() -> None:
    stand = Stand(cost_s=DECRYPTION_S * 0.6)
    for client in stand.clients("a", "b", "c"):
        stand.decryptions.add(client)
    stand.clock.turn()
    assert stand.served == ["a", "b"]
    stand.clock.turn()
    assert stand.served == ["a", "b", "c"]
