"""A host waits for DNS in the window, and keeps no other one from its turn."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from searchcrawl import clock
from searchcrawl.frontier.window import Window
from searchcrawl.http.address_guard import AddressGuard
from searchcrawl.http.name_gate import NameGate
from searchcrawl.http.name_lookups import NameLookups
from searchcrawl.politeness.host_registry import HostRegistry
from tests.factories import claim

SLOW, QUICK, GONE = "slow.test:80", "quick.test:80", "gone.test:80"


class Scene:
    """A window whose names are looked up; ``answers`` says when DNS knows ``slow.test``, ``changes`` what became free."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.answers = threading.Event()
        self.asked: list[str] = []
        self.changes = asyncio.Queue[None]()
        self.hosts = HostRegistry(delay_seconds=0, host_concurrency=2)
        self.lookups = NameLookups()
        guard = AddressGuard(private_networks=(), resolve={"named.test": "8.8.8.7"})
        changed: Callable[[], None] = lambda: self.changes.put_nowait(None)
        self.hosts.names = NameGate(self.lookups, guard, self.hosts, changed=changed)
        self.window = Window(self.hosts)
        monkeypatch.setattr(socket, "getaddrinfo", self._ask)

    def pop(self) -> int | None:
        found = self.window.pop(clock.monotonic())
        return None if found is None else found[1].url_id

    def pop_all(self) -> list[int]:
        found = []
        while (row := self.pop()) is not None:
            found.append(row)
        return found

    def _ask(self, host: str, *rest: Any) -> list[Any]:
        self.asked.append(host)
        if host == "slow.test":
            self.answers.wait(20)
        if host == "gone.test":
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("8.8.8.1", 0))]


def playing(monkeypatch: pytest.MonkeyPatch, steps: Callable[[Scene], Coroutine[Any, Any, Any]]) -> Any:
    async def run() -> Any:
        scene = Scene(monkeypatch)
        try:
            return await asyncio.wait_for(steps(scene), 20)
        finally:
            scene.answers.set()
            await scene.lookups.close()

    return asyncio.run(run())


def test_pop_when_dns_is_slow_then_other_hosts_go_and_this_one_once_it_has_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def steps(scene: Scene) -> list[list[int]]:
        scene.window.fill(SLOW, [claim(1)])
        scene.window.fill(QUICK, [claim(2)])
        found = [scene.pop_all()]
        await scene.changes.get()
        found.append(scene.pop_all())
        scene.answers.set()
        await scene.changes.get()
        return [*found, scene.pop_all()]

    assert playing(monkeypatch, steps) == [[], [2], [1]]


def test_pop_when_the_names_were_looked_up_ahead_then_nothing_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    async def steps(scene: Scene) -> tuple[list[int], list[str]]:
        answered = asyncio.Queue[str]()
        await scene.lookups.find("first.test")
        note, scene.lookups.on_answer = scene.lookups.on_answer, lambda name: (note(name), answered.put_nowait(name))[1]
        # As the claiming thread does.
        await asyncio.to_thread(scene.window.fill, QUICK, [claim(1)])
        await answered.get()
        return scene.pop_all(), scene.asked

    assert playing(monkeypatch, steps) == ([1], ["first.test", "quick.test"])


def test_pop_when_there_is_no_address_then_the_visit_finds_that_out_without_another_lookup(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def steps(scene: Scene) -> tuple[list[int], list[str]]:
        scene.window.fill(GONE, [claim(1)])
        assert scene.pop() is None
        await scene.changes.get()
        found = scene.pop_all()
        with pytest.raises(OSError, match="not known"):
            await scene.lookups.find("gone.test")
        return found, scene.asked

    assert playing(monkeypatch, steps) == ([1], ["gone.test"])


def test_pop_when_the_answer_is_old_before_the_turn_comes_then_the_visit_goes_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def steps(scene: Scene) -> list[int]:
        scene.window.fill(GONE, [claim(1)])
        assert scene.pop() is None
        await scene.changes.get()
        later = clock.monotonic() + 3600
        with monkeypatch.context() as patch:
            patch.setattr(clock, "monotonic", lambda: later)
            return scene.pop_all()

    assert playing(monkeypatch, steps) == [1]


def test_pop_when_the_host_is_an_address_or_the_file_names_one_then_nobody_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def steps(scene: Scene) -> tuple[list[int], list[str]]:
        for number, host in enumerate(("8.8.8.1:80", "[2001:4860::1]:443", "named.test:80")):
            scene.window.fill(host, [claim(number)])
        return sorted(scene.pop_all()), scene.asked

    assert playing(monkeypatch, steps) == ([0, 1, 2], [])


def test_side_request_when_dns_is_slow_then_it_waits_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    async def steps(scene: Scene) -> tuple[bool, bool, float, float]:
        hosts = scene.hosts
        hosts.announce_side_request(SLOW)
        waits = (
            hosts.try_acquire_request(SLOW, clock.monotonic()) > 0,
            hosts.try_acquire_host(SLOW, clock.monotonic()) > 0,
        )
        scene.answers.set()
        await scene.changes.get()
        return (
            *waits,
            hosts.try_acquire_request(SLOW, clock.monotonic()),
            hosts.try_acquire_host(SLOW, clock.monotonic()),
        )

    assert playing(monkeypatch, steps) == (True, True, 0.0, 0.0)
