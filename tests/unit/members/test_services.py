"""What the process of a run does for its members: it answers each call, and takes back what a dead one held (C2, C3)."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable
from typing import Any, Final

import pytest

from searchcrawl.documents.user_pipeline import PluginErrors
from searchcrawl.exceptions import HostBlocked
from searchcrawl.http.name_lookups import NameLookups
from searchcrawl.members.messages import Call, Reply
from searchcrawl.members.services import ADD_ERROR, NOTE_GOOD, ROBOTS, Services, SharedProbes
from searchcrawl.politeness.rate_limiter import RateLimiter
from searchcrawl.robots.files import RobotsCopy
from searchcrawl.robots.parser import RobotsFile
from searchcrawl.run import Shutdown
from searchcrawl.soft404.signature import ProbeResult
from searchcrawl.sources.source_settings import PluginLimits
from searchcrawl.store.states import EndReason


class NotingLimiter(RateLimiter):
    """Notes what was called."""

    def __init__(self) -> None:
        self.called: list[tuple[str, str]] = []
        self.waits = asyncio.Event()

    async def wait_until_allowed(self, host: str) -> None:
        self.called.append(("wait", host))
        if host == "blocked:80":
            raise HostBlocked("it asked for a pause", code=429)
        if host == "broken:80":
            raise ValueError("\x1b[31mbroken")
        if host == "silent:80":
            raise ValueError
        if host == "slow:80":
            await self.waits.wait()

    async def acquire_request(self, host: str) -> None:
        self.called.append(("acquire", host))

    def release_request(self, host: str) -> None:
        self.called.append(("release", host))

    def start_delay(self, host: str) -> None:
        self.called.append(("start", host))


def build_services(
    send: Any, *, limiter: RateLimiter | None = None, robots: Any = None, errors: Any = None
) -> Services:
    return Services(limiter or NotingLimiter(), robots, SharedProbes(), errors, NameLookups(), send)


def ask(*calls: Call, robots: Any = None, closes: bool = False) -> tuple[list[Reply], list[tuple[str, str]]]:
    """What was answered, and what the limits of hosts were asked."""
    replies: list[Reply] = []

    async def run() -> list[tuple[str, str]]:
        limiter = NotingLimiter()
        services = build_services(replies.append, limiter=limiter, robots=robots)
        for call in calls:
            services.take(call)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        if closes:
            services.close()
            await asyncio.sleep(0)
        return limiter.called

    return replies, asyncio.run(run())


def test_answer_when_a_host_allows_a_request_then_the_reply_has_the_number() -> None:
    replies, called = ask(Call(7, "wait_until_allowed", {"host": "a:80"}), Call(None, "start_delay", {"host": "a:80"}))

    assert [(reply.number, reply.error) for reply in replies] == [(7, None)]
    assert called == [("wait", "a:80"), ("start", "a:80")]


@pytest.mark.parametrize(
    ("host", "error", "code"),
    [
        ("blocked:80", "it asked for a pause", 429),
        ("broken:80", "[31mbroken", None),
        pytest.param("silent:80", "ValueError()", None, id="an error without a text"),
    ],
)
def test_answer_when_a_host_is_blocked_or_something_fails_then_who_asked_does_not_wait_for_ever(
    host: str, error: str, code: int | None
) -> None:
    replies, _ = ask(Call(1, "wait_until_allowed", {"host": host}))

    assert replies == [Reply(1, error=error, code=code)]


def test_note_when_plugins_fail_in_members_then_their_errors_are_counted_together() -> None:
    shutdown = Shutdown()
    reasons: list[str] = []
    shutdown.open(reasons.append)
    errors = PluginErrors(shutdown, PluginLimits(3, 0), count=lambda name: None)
    good = Call(None, NOTE_GOOD, {"name": "mine", "documents": 1})
    bad = Call(None, ADD_ERROR, {"name": "mine", "url": "http://a.example/", "text": "mine: ValueError: no"})
    first, second = (build_services(lambda reply: None, errors=errors) for _ in range(2))

    for services, tell in ((first, bad), (second, bad), (second, good), (first, bad), (second, bad)):
        services.take(tell)
    before = [*reasons]
    first.take(bad)

    assert (before, reasons) == ([], [EndReason.PLUGIN_ERRORS])


def test_close_when_a_member_held_requests_then_they_are_given_back_and_what_waits_ends() -> None:
    held, given = {"host": "a:80"}, {"host": "b:80"}
    replies, called = ask(
        Call(1, "acquire_request", held),
        Call(2, "acquire_request", held),
        Call(3, "acquire_request", given),
        Call(None, "release_request", given),
        Call(4, "wait_until_allowed", {"host": "slow:80"}),
        closes=True,
    )

    assert [reply.number for reply in replies] == [1, 2, 3]
    assert called[-2:] == [("release", "a:80")] * 2
    assert called.count(("release", "b:80")) == 1


def test_note_when_all_was_given_back_then_nothing_is_kept_of_the_hosts() -> None:
    async def run() -> Services:
        services = build_services(lambda reply: None)
        for number in range(100):
            host = {"host": f"{number}.example:80"}
            services.take(Call(number, "acquire_request", host))
            await asyncio.sleep(0)
            services.take(Call(None, "release_request", host))
        return services

    services = asyncio.run(run())

    assert not services._held
    assert not services._tasks


def test_robots_when_they_are_known_then_the_copy_of_the_run_is_the_answer() -> None:
    file = RobotsFile.parse(b"User-agent: *\nDisallow: /no\n", "x", url="http://a.example/robots.txt")
    assert not file.decide("http://a.example/no/1").allowed
    copy = RobotsCopy(expires=1.0, file=file)

    class Known:
        slowed: Final = {"http://a.example", "http://b.example", "http://c.example"}

        def find(self, origin: str) -> RobotsCopy | None:
            return copy if origin == "http://a.example" else None

        async def fetch(self, origin: str, *, inside: bool) -> RobotsCopy:
            return RobotsCopy(expires=2.0, error="none")

    replies, _ = ask(
        Call(1, ROBOTS, {"origin": "http://a.example", "inside": True}),
        Call(2, ROBOTS, {"origin": "http://b.example", "inside": True}),
        robots=Known(),
    )
    there = pickle.loads(pickle.dumps(replies[0].value))

    assert there.file.decide("http://a.example/no/1").rule == "Disallow: /no"
    assert there.file.decide("http://a.example/yes").allowed
    assert replies[1].value.error == "none"
    assert Known.slowed == {"http://c.example"}


_HOST: Final = "http://a.example"
_FOUND: Final = ProbeResult(None, answers_any=True)


def play(work: Callable[[SharedProbes], Any]) -> None:
    async def run() -> None:
        async with asyncio.timeout(20):
            await work(SharedProbes())

    asyncio.run(run())


def test_begin_when_another_asks_then_waits_for_what_it_finds() -> None:
    async def work(probes: SharedProbes) -> None:
        assert await probes.begin("one", _HOST, again=False) is None
        waiting = asyncio.ensure_future(probes.begin("two", _HOST, again=False))
        await asyncio.sleep(0)
        assert not waiting.done()
        probes.end("one", _HOST, _FOUND)
        assert await waiting == _FOUND
        assert await probes.begin("three", _HOST, again=False) == _FOUND

    play(work)


def test_begin_when_who_asked_found_nothing_or_ended_then_the_next_one_asks() -> None:
    async def work(probes: SharedProbes) -> None:
        assert await probes.begin("one", _HOST, again=False) is None
        waiting = [asyncio.ensure_future(probes.begin(name, _HOST, again=False)) for name in ("two", "three")]
        await asyncio.sleep(0)
        probes.drop("one")
        assert await waiting[0] is None
        assert not waiting[1].done()
        probes.end("two", _HOST, None)
        assert await waiting[1] is None

    play(work)


def test_begin_when_it_is_asked_again_then_what_was_found_does_not_count() -> None:
    async def work(probes: SharedProbes) -> None:
        probes.end("one", _HOST, _FOUND)
        assert await probes.begin("one", _HOST, again=True) is None

    play(work)


def test_end_when_it_comes_from_a_member_that_does_not_ask_then_who_asks_goes_on() -> None:
    async def work(probes: SharedProbes) -> None:
        assert await probes.begin("one", _HOST, again=False) is None
        probes.drop("two")
        waiting = asyncio.ensure_future(probes.begin("three", _HOST, again=False))
        await asyncio.sleep(0)
        assert not waiting.done()
        probes.end("one", _HOST, _FOUND)
        assert await waiting == _FOUND

    play(work)
