"""No more requests to one address at once than it may get, and none of its hosts is left behind (C3)."""

from __future__ import annotations

from typing import Any

import pytest

from searchcrawl.frontier.window import Window
from searchcrawl.politeness.host_names import HostNames
from searchcrawl.politeness.host_registry import HostRegistry
from tests.factories import claim

A, B, C, ELSEWHERE, UNKNOWN = "a.test:80", "b.test:80", "c.test:80", "else.test:80", "unknown.test:80"
ADDRESSES = {A: "192.0.2.1", B: "192.0.2.1", C: "192.0.2.1", ELSEWHERE: "192.0.2.2", UNKNOWN: ""}


class Names(HostNames):
    def __init__(self) -> None:
        self.addresses = dict(ADDRESSES)

    def find_address(self, host: str) -> str:
        return self.addresses[host]


class Scene:
    """A window without delays; rows have numbers of their own, and a host has answered before."""

    def __init__(self, *, most: int, **limits: Any) -> None:
        self.hosts = HostRegistry(delay_seconds=0, host_concurrency=4, address_concurrency=most, **limits)
        self.names = self.hosts.names = Names()
        self.window = Window(self.hosts)
        for host in ADDRESSES:
            self.hosts.find_or_add(host).visited = True

    def fill(self, host: str, *rows: int) -> None:
        self.window.fill(host, [claim(row) for row in rows])

    def pop(self) -> list[int]:
        """All rows that may go now."""
        found = []
        while (popped := self.window.pop(1000.0)) is not None:
            found.append(popped[1].url_id)
        return found

    def side(self, host: str) -> bool:
        return self.hosts.try_acquire_request(host, 1000.0) == 0


@pytest.fixture(autouse=True)
def still(now: list[float]) -> None:
    """The clock stands."""


def test_pop_when_hosts_have_one_address_then_they_share_its_requests_in_turn_and_others_go_on() -> None:
    scene = Scene(most=2)
    scene.fill(A, 1, 2, 3)
    scene.fill(B, 4, 5)
    scene.fill(C, 6)
    scene.fill(ELSEWHERE, 7, 8)

    rounds = [scene.pop()]
    for _ in range(3):
        for row in [row for row in rounds[-1] if row < 7]:
            scene.window.release(row)
        rounds.append(scene.pop())

    assert rounds[0] == [1, 4, 7, 8]
    # Who waited first goes first, also where another host has just had a request.
    assert [sorted(each) for each in rounds[1:]] == [[2, 6], [3, 5], []]


def test_pop_when_one_host_has_very_many_claims_then_the_others_of_its_address_get_as_many_turns() -> None:
    scene = Scene(most=1)
    scene.fill(A, *range(100, 120))
    scene.fill(B, *range(200, 205))
    scene.fill(C, *range(300, 305))
    order = []
    for _ in range(15):
        (row,) = scene.pop()
        order.append(row // 100)
        scene.window.release(row)

    assert sorted(order[:3]) == [1, 2, 3]
    assert order == order[:3] * 5


def test_pop_when_there_is_no_cap_or_no_address_is_known_then_nothing_waits() -> None:
    without, unknown = Scene(most=0), Scene(most=1)
    without.fill(A, 1, 2)
    without.fill(B, 3)
    unknown.fill(UNKNOWN, 4, 5)

    assert (without.pop(), unknown.pop()) == ([1, 3, 2], [4, 5])


def test_pop_when_a_host_that_waited_has_no_claims_any_more_then_the_next_one_goes() -> None:
    scene = Scene(most=1)
    scene.fill(A, 1)
    scene.fill(B, 2)
    scene.fill(C, 3)
    first = scene.pop()
    scene.hosts.find_or_add(B).blocked_code = 429
    taken = scene.window.take_blocked(B)
    scene.window.release(1)

    assert (first, [row.url_id for *_, row in taken]) == ([1], [2])
    assert scene.pop() == [3]


def test_pop_when_the_cap_on_hosts_refuses_then_the_place_at_the_address_is_free_for_others() -> None:
    scene = Scene(most=1, sites=1)
    scene.fill(ELSEWHERE, 1)
    assert scene.pop() == [1]
    scene.fill(A, 2)
    scene.fill(B, 3)
    assert scene.pop() == []

    scene.window.release(1)
    then = scene.pop()
    scene.window.release(2)

    assert (then, scene.pop()) == ([2], [3])


def test_release_when_the_name_has_another_address_by_then_then_the_old_one_is_freed() -> None:
    scene = Scene(most=1)
    scene.fill(A, 1)
    scene.fill(B, 2)
    first = scene.pop()
    scene.names.addresses[A] = "192.0.2.2"
    scene.window.release(1)
    then = scene.pop()
    scene.fill(ELSEWHERE, 3)

    assert (first, then, scene.pop()) == ([1], [2], [3])


def test_side_request_when_claims_wait_for_the_same_address_then_they_alternate() -> None:
    scene = Scene(most=1)
    scene.fill(A, 1, 2, 3)
    order: list[Any] = scene.pop()
    for _ in range(2):
        scene.hosts.announce_side_request(B)
    for _ in range(2):
        assert not scene.side(B)
        scene.window.release(order[-1])
        # The claims are asked first each time.
        assert scene.pop() == []
        assert scene.side(B)
        scene.hosts.release_request(B)
        order += ["side", *scene.pop()]

    assert order == [1, "side", 2, "side", 3]


def test_side_request_when_it_is_given_up_then_claims_do_not_wait_for_it() -> None:
    scene = Scene(most=1)
    scene.fill(A, 1, 2)
    first = scene.pop()
    scene.hosts.announce_side_request(B)
    waits = not scene.side(B)
    scene.window.release(1)
    before = scene.pop()
    scene.hosts.cancel_side_request(B)

    assert (first, waits, before, scene.pop()) == ([1], True, [], [2])


def test_counting_when_requests_end_in_any_order_then_the_cap_holds_and_all_go(now: list[float]) -> None:
    scene = Scene(most=3)
    hosts = (A, B, C)
    for number in range(30):
        scene.fill(hosts[number % 3], number)
    under_way, gone = list[int](), list[int]()
    for step in range(200):
        under_way += (popped := scene.pop())
        gone += popped
        assert len(under_way) <= 3
        if under_way:
            scene.window.release(under_way.pop((step * 7) % len(under_way)))

    assert sorted(gone) == [*range(30)]
