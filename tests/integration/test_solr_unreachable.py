"""A Solr that is down, slow, cut, busy or too small for a request: tried again, and nothing is lost (X-I1, X-I2, X-I5, X-I7)."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from searchcrawl.exceptions import IndexUnavailable
from searchcrawl.index.receiver import Batch, Receipt
from searchcrawl.index.solr import transport
from searchcrawl.index.solr.receiver import SolrReceiver
from searchcrawl.items import IndexedDocument
from tests import scripted_solr as scripts
from tests.scripted_solr import ScriptedSolr, Step, small_batch
from tests.solr_server import free_port
from tests.tcp_server import TcpServer


def test_i5_deliver_when_the_request_is_too_large_then_smaller_ones_are_sent(scripted_solr: ScriptedSolr) -> None:
    names = [f"d{number}" for number in range(16)]
    scripted_solr.script = [scripts.refusing(413, when=lambda ids: len(ids) > 4)]

    receipts = scripted_solr.receiver.deliver(small_batch(*names))

    assert all(receipt.accepted for receipt in receipts)
    taken = [name for request in scripted_solr.received if len(request.ids) <= 4 for name in request.ids]
    assert taken == names


@pytest.mark.parametrize(
    "step",
    [
        scripts.status(500),
        scripts.status(502, b""),
        scripts.status(503, b'{"responseHeader":{"status":503},"error":{"msg":"SolrCore is loading","code":503}}'),
        scripts.status(408),
        scripts.status(429),
        scripts.status(504, b"<html>Gateway time-out</html>"),
        scripts.status(200, b'{"responseHeader":{"status":1,"QTime":1}}'),
        scripts.status(200, b'{"responseHeader":{"status":503,"QTime":1}}'),
        scripts.status(200, b""),
        scripts.status(200, b'{"responseHeader":{"sta'),
        scripts.cut,
        scripts.reset,
        scripts.reset_in_answer,
        scripts.silent,
        scripts.drip_header,
        scripts.drip_body,
    ],
    ids=[
        "500",
        "502",
        "503",
        "408",
        "429",
        "504-html",
        "200-status-1",
        "200-status-503",
        "200-empty",
        "200-half",
        "cut",
        "reset",
        "reset-in-answer",
        "silent",
        "drip-header",
        "drip-body",
    ],
)
def test_i7_deliver_when_the_outcome_is_unknown_then_unavailable_and_the_next_try_succeeds(
    scripted_solr: ScriptedSolr, step: Step
) -> None:
    scripted_solr.script = [step, scripts.good]

    with pytest.raises(IndexUnavailable):
        scripted_solr.receiver.deliver(small_batch("a", "b"))

    assert scripted_solr.receiver.deliver(small_batch("a", "b")) == [Receipt("a", True), Receipt("b", True)]
    assert scripted_solr.received[0] == scripted_solr.received[1]


def test_i7_deliver_when_reset_before_it_is_read_then_unavailable_and_the_next_try_succeeds(
    scripted_solr: ScriptedSolr,
) -> None:
    scripted_solr.script = [scripts.good]
    scripted_solr.unread = 1

    with pytest.raises(IndexUnavailable):
        scripted_solr.receiver.deliver(small_batch("a", "b"))

    assert scripted_solr.receiver.deliver(small_batch("a", "b")) == [Receipt("a", True), Receipt("b", True)]
    assert [request.ids for request in scripted_solr.received] == [["a", "b"]]


@pytest.mark.parametrize("step", [scripts.silent, scripts.drip_header, scripts.drip_body])
def test_i2_deliver_when_the_answer_takes_too_long_then_the_total_time_is_the_limit(
    scripted_solr: ScriptedSolr, step: Step
) -> None:
    scripted_solr.script = [step]

    with pytest.raises(IndexUnavailable, match="no complete answer within 2 s"):
        scripted_solr.receiver.deliver(small_batch("a"))


@pytest.mark.parametrize("content", ["word", "word " * 2_000_000], ids=["no-answer", "not-even-read"])
@pytest.mark.parametrize("first", ["whole", "socket"])
def test_i2_deliver_when_the_server_reads_nothing_then_unavailable_whichever_time_ends_first(
    receiver_of_a_wall: SolrReceiver, content: str, first: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if first == "socket":
        # A busy machine may see the end of one read or write before that of the whole.
        monkeypatch.setattr(transport.Deadline, "_expire", lambda _: None)
    document = IndexedDocument(id="a", fields={"content": content})

    with pytest.raises(IndexUnavailable, match=r"no complete answer within 0\.5 s"):
        receiver_of_a_wall.deliver(Batch(number=1, source="s", crawl_version=1, documents=[document]))


def test_i2_deliver_when_the_server_falls_silent_on_a_kept_connection_then_the_time_to_connect_is_no_limit(
    receiver_of_a_silent_one: SolrReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "_MAX_CONNECT_SECONDS", 0.1)
    document = IndexedDocument(id="a", fields={"content": "word " * 2_000_000})

    with pytest.raises(IndexUnavailable, match=r"no complete answer within 0\.5 s"):
        receiver_of_a_silent_one.deliver(Batch(number=1, source="s", crawl_version=1, documents=[document]))


def test_i2_deliver_when_there_is_no_handshake_in_time_then_the_message_names_no_other_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transport, "_MAX_CONNECT_SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as wall:
        receiver = SolrReceiver(f"https://127.0.0.1:{wall.getsockname()[1]}/solr/wall", timeout_seconds=30)

        with pytest.raises(IndexUnavailable, match="timed out") as caught:
            receiver.deliver(small_batch("a"))

        receiver.close()
    assert "30 s" not in str(caught.value)


class Silent(TcpServer):
    """Answers the first request of a connection and reads nothing more."""

    def serve(self, connection: socket.socket) -> None:
        body = b'{"responseHeader":{"status":0},"metrics":{}}'
        connection.recv(65_536)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
        self.stopping.wait(60)


@pytest.fixture
def receiver_of_a_silent_one() -> Iterator[SolrReceiver]:
    with Silent() as server:
        receiver = SolrReceiver(f"{server.url}/solr/silent", timeout_seconds=0.5)
        yield receiver
        receiver.close()


@pytest.fixture
def receiver_of_a_wall() -> Iterator[SolrReceiver]:
    """A receiver of a server that takes connections and reads nothing."""
    with socket.create_server(("127.0.0.1", 0)) as wall:
        receiver = SolrReceiver(f"http://127.0.0.1:{wall.getsockname()[1]}/solr/wall", timeout_seconds=0.5)
        yield receiver
        receiver.close()


def test_i1_deliver_when_nobody_listens_then_unavailable_and_says_so() -> None:
    receiver = SolrReceiver(f"http://127.0.0.1:{free_port()}/solr/none", timeout_seconds=1)

    with pytest.raises(IndexUnavailable, match=r"/solr/none/update: Connection refused"):
        receiver.deliver(small_batch("a"))


def test_i1_deliver_when_the_name_is_unknown_then_unavailable_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    receiver = SolrReceiver("http://solr.invalid:8983/solr/none", timeout_seconds=1)

    with pytest.raises(IndexUnavailable, match=r"/solr/none/update: .*Name or service not known"):
        receiver.deliver(small_batch("a"))


@pytest.mark.parametrize(
    ("status", "retry_after", "least", "most"),
    [
        (429, "17", 17, 17),
        (503, "17", 17, 17),
        (429, timedelta(seconds=1800), 60, 1800),
        (429, "999999", 3600, 3600),
        (429, "Wed, 21 Oct 2015 07:28:00 GMT", 0, 0),
        *((503, nonsense, None, None) for nonsense in ("soon", "-5", "1e3", "٣")),
    ],
)
def test_i5_deliver_when_asked_to_come_back_then_the_seconds_are_told_within_bounds(
    scripted_solr: ScriptedSolr,
    status: int,
    retry_after: str | timedelta,
    least: float | None,
    most: float | None,
) -> None:
    # A time to come counts from the test's own begin: it may run half an hour after it was collected.
    if isinstance(retry_after, timedelta):
        retry_after = format_datetime(datetime.now(UTC) + retry_after, usegmt=True)

    def answer(exchange: scripts.Exchange, request: scripts.Received) -> None:
        head = f"HTTP/1.1 {status} Busy\r\nRetry-After: {retry_after}\r\nContent-Length: 4\r\n\r\n"
        exchange.wfile.write(head.encode() + b"busy")

    scripted_solr.script = [answer]

    with pytest.raises(IndexUnavailable) as raised:
        scripted_solr.receiver.deliver(small_batch("a"))

    told = raised.value.retry_after_seconds
    assert told is None if least is None or most is None else told is not None and least <= told <= most
