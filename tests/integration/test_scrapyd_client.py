"""A scrapyd that is gone, slow, or another program: each answer is judged, and no job is started twice (H5)."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from typing import Any, Final
from urllib.parse import parse_qs

import pytest

from searchcrawl import clock
from searchcrawl.scheduling import scrapyd_client
from searchcrawl.scheduling.launching import AnswerLost, ScrapydRefused, name_of
from searchcrawl.scheduling.scrapyd_client import ScrapydClient
from searchcrawl.sources.project import Schedule
from searchcrawl.store.runs import job_table
from searchcrawl.store.runs.job_table import JobState
from tests.hostile_server import closed_port
from tests.integration.support_ticking import World, every
from tests.threaded_site import QuietHandler, ThreadedSite

PASSWORD: Final = "s3cret-of-scrapyd"


class Handler(QuietHandler):
    """Asks the test for an answer to each request."""

    def do_POST(self) -> None:
        self._answer(self.read_request().body)

    def do_GET(self) -> None:
        self._answer(self.path.partition("?")[2])

    def _answer(self, text: str) -> None:
        fields = {name: values[0] for name, values in parse_qs(text).items()}
        self.site.asked.append((self.path.partition("?")[0], fields))
        if "jobid" in fields:
            self.site.orders.add(fields["jobid"])
        self.site.tell(self, fields)


Answer = Callable[[Handler, dict[str, str]], None]


class Scrapyd(ThreadedSite):
    """Answers as a test tells it; ``asked`` has the services and fields so far."""

    def __init__(self) -> None:
        super().__init__(Handler)
        self.tell: Answer = well
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.orders: set[str] = set()
        self.address = f"http://crawler:{PASSWORD}@127.0.0.1:{self.port}"


def answer(body: bytes, status: int = 200) -> Answer:
    return lambda handler, fields: handler.answer(status, body)


def well(handler: Handler, fields: dict[str, str]) -> None:
    state = "pending" if fields.get("job") in handler.site.orders else None
    found = {"status": "ok", "jobid": fields.get("jobid"), "currstate": state}
    handler.answer(200, json.dumps(found))


def hang_up(handler: Handler, fields: dict[str, str]) -> None:
    handler.connection.shutdown(socket.SHUT_RDWR)


def hang(handler: Handler, fields: dict[str, str]) -> None:
    handler.site.stopping.wait(5)


def drip(begin: bytes, piece: bytes, times: int) -> Answer:
    def tell(handler: Handler, fields: dict[str, str]) -> None:
        handler.wfile.write(begin)
        for _ in range(times):
            handler.wfile.write(piece)
            handler.site.stopping.wait(0.1)

    return tell


@pytest.fixture
def scrapyd() -> Iterator[Scrapyd]:
    with Scrapyd() as server:
        yield server


@pytest.mark.parametrize(
    ("told", "error", "text"),
    [
        (answer(b"<html>Sign in</html>"), ScrapydRefused, "its answer is not that of a scrapyd"),
        (answer(b"[1]"), ScrapydRefused, "its answer is not that of a scrapyd"),
        (answer(b'{"status": "fine"}'), ScrapydRefused, "its answer is not that of a scrapyd"),
        (answer(b'{"status": "ok", "jobid": "other"}'), ScrapydRefused, "about another job"),
        (answer(b'{"status": "error", "message": "spider a not found"}'), ScrapydRefused, "spider a not found"),
        (answer(b"no", 401), ScrapydRefused, "refuses user or password"),
        (answer(b"down", 503), ScrapydRefused, "answers with status 503"),
        (answer(b"", 302), ScrapydRefused, "answers with status 302"),
        (answer(b"[" * 200_000), ScrapydRefused, "its answer is not that of a scrapyd"),
        (answer(b" " * 2_000_000), ScrapydRefused, "its answer is not that of a scrapyd"),
        (answer(b'{"status": []}'), ScrapydRefused, "its answer is not that of a scrapyd"),
        (answer(b'{"status": {}}'), ScrapydRefused, "its answer is not that of a scrapyd"),
        (answer(b'{"status": "error", "message": "\\u001b[31mred\\nline"}'), ScrapydRefused, r"\x1b[31mred\nline"),
        (answer(b'{"status": "error", "message": {"a": 1}}'), ScrapydRefused, "{'a': 1}"),
        (answer(b'{"status": "error", "message": "' + b"y" * 9000 + b'"}'), ScrapydRefused, ": yyy"),
        (drip(b"HTTP/1.1 200 OK\r\n\r\n", b" ", 30), AnswerLost, "did not answer in"),
        (drip(b"HTTP/1.1 200 OK\r\nX: ", b"x", 30), AnswerLost, "did not answer in"),
        (hang_up, AnswerLost, "broke the connection"),
        (hang, AnswerLost, ""),
        (drip(b"HTTP/1.1 200 OK\r\n\r\n", b" " * 70_000, 100), AnswerLost, ""),
    ],
)
def test_order_when_the_answer_is_not_that_of_a_scrapyd_then_it_is_refused_or_lost_and_no_password_is_shown(
    scrapyd: Scrapyd, monkeypatch: pytest.MonkeyPatch, told: Answer, error: type[Exception], text: str
) -> None:
    monkeypatch.setattr(scrapyd_client, "ANSWER_SECONDS", 0.5)
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    scrapyd.tell = told
    client = ScrapydClient(scrapyd.address)
    begin = clock.monotonic()

    with pytest.raises(error) as caught:
        client.schedule("a", "searchcrawl-1")
    client.close()

    assert clock.monotonic() - begin < 2
    assert len(str(caught.value)) < 400
    assert str(caught.value).isprintable()
    assert text in str(caught.value)
    assert f"scrapyd http://127.0.0.1:{scrapyd.port}: " in str(caught.value)
    assert PASSWORD not in repr(caught.value)


def test_order_when_nobody_listens_then_refused() -> None:
    with closed_port() as port, pytest.raises(ScrapydRefused, match="cannot be reached"):
        ScrapydClient(f"http://127.0.0.1:{port}/").schedule("a", "searchcrawl-1")


@pytest.mark.parametrize("state", ['["x"]', "{}", "0", "true"])
def test_state_when_it_is_none_then_refused(scrapyd: Scrapyd, state: str) -> None:
    scrapyd.tell = answer(f'{{"status": "ok", "currstate": {state}}}'.encode())

    with pytest.raises(ScrapydRefused, match="its answer is not that of a scrapyd"):
        ScrapydClient(scrapyd.address).find_state("searchcrawl-1")


@pytest.mark.parametrize("host", ["a..b", "a" * 70 + ".de", "."])
def test_host_when_it_is_none_then_the_file_is_refused_and_the_client_says_so(host: str) -> None:
    url = f"http://{host}:6800"

    with pytest.raises(ValueError, match="not the name of a host"):
        Schedule.model_validate({"sources": ("a",), "every_minutes": 1, "scrapyd": (url,)})
    with pytest.raises(ScrapydRefused, match="cannot be reached"):
        ScrapydClient(url).find_state("searchcrawl-1")


def test_wait_when_a_stop_comes_then_it_ends(scrapyd: Scrapyd) -> None:
    scrapyd.tell = hang
    begin = clock.monotonic()

    with pytest.raises(AnswerLost):
        ScrapydClient(scrapyd.address, is_stopped=lambda: clock.monotonic() > begin + 0.3).schedule(
            "a", "searchcrawl-1"
        )

    assert clock.monotonic() - begin < 2


def test_tick_when_a_scrapyd_hangs_then_it_is_waited_for_once_and_the_others_wait(
    make: Callable[..., World], monkeypatch: pytest.MonkeyPatch, scrapyd: Scrapyd
) -> None:
    monkeypatch.setattr(scrapyd_client, "ANSWER_SECONDS", 0.5)
    world = make(schedules={**remote([scrapyd], "a", "b", "c"), "t": every(6000, "z")}, max_parallel=9)
    scrapyd.tell = hang

    done = world.tick()

    assert [service for service, _ in scrapyd.asked] == ["/schedule.json"]
    assert (done.started, list(done.failed)) == (["a", "z"], ["b", "c"])
    assert [name for name, _ in world.launched] == ["z"]


def remote(scrapyds: list[Scrapyd], *sources: str) -> dict[str, Any]:
    return {"s": every(6000, *sources, scrapyd=[each.address for each in scrapyds])}


def test_tick_when_the_answer_is_lost_then_the_job_is_not_ordered_again_and_begins(
    make: Callable[..., World], scrapyd: Scrapyd
) -> None:
    world = make(schedules=remote([scrapyd], "a"))
    scrapyd.tell = hang_up

    first = world.tick()
    away = world.tick(1)
    scrapyd.tell = well
    found = [world.tick(10) for _ in range(3)]
    (token,) = scrapyd.orders
    world.begin("a", token)

    assert (first.started, first.failed, away.failed) == (["a"], {}, {})
    assert [each.running for each in found] == [["a"]] * 3
    assert [service for service, _ in scrapyd.asked].count("/schedule.json") == 1
    assert world.job("a").state is JobState.RUNNING
    assert world.launched == []
    assert PASSWORD not in repr(world.database.read(job_table.load, [1, 2]))


@pytest.mark.parametrize("told", [answer(b"<html>"), answer(b"", 500)])
def test_tick_when_a_scrapyd_does_not_take_a_job_then_another_one_gets_it_and_the_first_can_not_begin_it_any_more(
    make: Callable[..., World], scrapyd: Scrapyd, told: Answer
) -> None:
    with Scrapyd() as other:
        world = make(schedules=remote([scrapyd, other], "a", "b"))
        scrapyd.tell = told

        first, second = world.tick(), world.tick(1)
        (lost,) = scrapyd.orders
        places = {name: world.job(name).place for name in ("a", "b")}

    assert (first.started, second.started) == (["b"], ["a"])
    assert list(first.failed) == ["a"]
    assert places == dict.fromkeys(("a", "b"), name_of(other.address))
    assert lost not in other.orders


def test_tick_when_a_scrapyd_stays_away_then_the_job_goes_elsewhere_after_minutes(
    make: Callable[..., World], scrapyd: Scrapyd
) -> None:
    world = make(schedules=remote([scrapyd], "a"))
    scrapyd.tell = hang_up
    world.tick()

    kept = [world.tick(1).failed for _ in range(4)]
    late = world.tick(2)

    assert kept == [{}] * 4
    assert "did not begin in time" in late.failed["a"]
