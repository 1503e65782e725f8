"""Values between two processes of a run: each comes whole, once, in order, and who sends too much is told to wait."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from searchcrawl.bodies import LargeBody, put_down, read_whole
from searchcrawl.members.channel import Channel, send_blocking

_LIMIT_SECONDS: Final = 20.0


class Side:
    """One side of a channel, with what came."""

    def __init__(self) -> None:
        self.came: list[Any] = []
        self.lost = asyncio.Event()
        self.channel = Channel(self.came.append, self.lost.set)

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(_LIMIT_SECONDS):
            while not condition():  # noqa: ASYNC110  # of both sides, which no one event tells
                await asyncio.sleep(0.001)


def run_sides(work: Callable[[Side, Side], Any]) -> None:
    """Calls ``work`` with both sides of a channel, which are open."""

    async def run() -> None:
        sides = Side(), Side()
        for side, connection, files in zip(sides, socket.socketpair(), socket.socketpair(), strict=True):
            await side.channel.open(connection, files)
        await work(*sides)
        for side in sides:
            side.channel.close()

    asyncio.run(run())


def test_send_when_values_are_small_and_large_then_all_come_in_their_order() -> None:
    values = [0, "x" * 5_000_000, b"", {"a": (1, None)}, *range(2000)]

    async def work(one: Side, other: Side) -> None:
        for value in values:
            one.channel.send(value)
        await other.until(lambda: len(other.came) == len(values))
        assert other.came == values

    run_sides(work)


def test_send_when_bodies_are_large_then_each_comes_as_its_file(tmp_path: Path) -> None:
    contents = [bytes([number]) * 5_000 for number in range(40)]

    async def work(one: Side, other: Side) -> None:
        for content in contents:
            one.channel.send(("before", put_down(content, tmp_path, 1_000)))
            one.channel.send("between")
        await other.until(lambda: len(other.came) == 2 * len(contents))
        bodies = [body for _, body in other.came[::2]]
        assert all(isinstance(body, LargeBody) for body in bodies)
        assert [read_whole(body) for body in bodies] == contents
        files = {os.fstat(body.descriptor).st_ino for body in bodies}
        assert len(files) == len(contents)

    run_sides(work)


def test_send_when_bodies_are_gone_on_both_sides_then_no_file_is_open(tmp_path: Path) -> None:
    before = len([*Path("/proc/self/fd").iterdir()])

    async def work(one: Side, other: Side) -> None:
        for _ in range(300):
            one.channel.send(put_down(b"x" * 5_000, tmp_path, 1_000))
            await other.until(lambda: other.came != [])
            other.came.clear()

    run_sides(work)

    assert len([*Path("/proc/self/fd").iterdir()]) == before


def test_send_when_it_is_not_open_yet_then_it_comes_later() -> None:
    async def run() -> None:
        one, other = Side(), Side()
        ours, theirs = zip(socket.socketpair(), socket.socketpair(), strict=True)
        one.channel.send("early")
        await other.channel.open(*theirs)
        await one.channel.open(*ours)
        one.channel.send("late")
        await other.until(lambda: len(other.came) == 2)
        assert other.came == ["early", "late"]
        for side in (one, other):
            side.channel.close()

    asyncio.run(run())


def test_send_when_threads_do_then_all_comes() -> None:
    async def work(one: Side, other: Side) -> None:
        threads = [
            threading.Thread(target=lambda: [one.channel.send(number) for number in range(500)]) for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        await other.until(lambda: len(other.came) == 2000)
        assert sorted(other.came) == sorted([*range(500)] * 4)

    run_sides(work)


def test_is_full_when_the_other_side_takes_nothing_then_until_it_does() -> None:
    async def work(one: Side, other: Side) -> None:
        other.channel.hold_back()
        for _ in range(8):
            one.channel.send(b"x" * 1_000_000)
        full = one.channel.is_full
        other.channel.let_through()
        async with asyncio.timeout(_LIMIT_SECONDS):
            await one.channel.wait_for_room()
        assert full
        await other.until(lambda: len(other.came) == 8)

    run_sides(work)


def test_send_last_when_much_waits_then_all_has_gone() -> None:
    async def work(one: Side, other: Side) -> None:
        for _ in range(8):
            one.channel.send(b"x" * 1_000_000)
        async with asyncio.timeout(_LIMIT_SECONDS):
            await one.channel.send_last("end")
        assert not one.channel._transport.get_write_buffer_size()  # type: ignore[union-attr]
        await other.until(lambda: other.came[-1:] == ["end"])

    run_sides(work)


def test_lost_when_the_other_side_ends_then_it_is_told_once_and_nothing_fails() -> None:
    async def work(one: Side, other: Side) -> None:
        other.channel.close()
        async with asyncio.timeout(_LIMIT_SECONDS):
            await one.lost.wait()
        one.channel.send("nobody")
        one.channel.hold_back()
        one.channel.let_through()
        async with asyncio.timeout(_LIMIT_SECONDS):
            await one.channel.wait_for_room()
        assert one.came == []

    run_sides(work)


def test_send_when_a_value_cannot_be_pickled_then_it_raises_and_the_next_comes() -> None:
    async def work(one: Side, other: Side) -> None:
        with pytest.raises((AttributeError, TypeError)):
            one.channel.send(lambda: None)
        one.channel.send("next")
        await other.until(lambda: other.came == ["next"])

    run_sides(work)


def test_send_blocking_when_no_loop_runs_then_the_other_side_gets_it() -> None:
    async def run() -> None:
        one = Side()
        ours, theirs = socket.socketpair()
        theirs.setblocking(False)
        send_blocking(theirs, "it cannot begin")
        files, unused = socket.socketpair()
        await one.channel.open(ours, files)
        await one.until(lambda: one.came == ["it cannot begin"])
        one.channel.close()
        theirs.close()
        unused.close()

    asyncio.run(run())
