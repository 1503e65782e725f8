"""What becomes of a delivery, for each way in which Solr, or what stands before it, may answer (D13, I1–I7, I10)."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from searchcrawl.exceptions import IndexMisconfigured, IndexUnavailable
from searchcrawl.index.receiver import Batch, Receipt
from searchcrawl.index.solr_receiver import SolrReceiver
from searchcrawl.items import IndexedDocument
from tests import scripted_solr as scripts
from tests.scripted_solr import ScriptedSolr, Step, small_batch
from tests.solr_server import free_port

REFUSED_ALIKE = b'{"error":{"msg":"unknown update chain","code":400}}'


def test_deliver_when_all_is_taken_then_documents_are_streamed_and_acknowledged(
    scripted_solr: ScriptedSolr, scripted_receiver: SolrReceiver
) -> None:
    scripted_solr.script = [scripts.good]

    receipts = scripted_receiver.deliver(small_batch("a", "b"))

    assert receipts == [Receipt("a", True), Receipt("b", True)]
    assert scripted_solr.received[0].path == "/solr/scripted/update"
    assert scripted_solr.received[0].body == [
        {"title": "Page a", "source": "site", "id": "a", "crawl_version": 7},
        {"title": "Page b", "source": "site", "id": "b", "crawl_version": 7},
    ]
    assert "commit" not in scripted_solr.received[0].parameters


def test_deliver_when_ids_are_removed_then_their_version_travels_with_them(
    scripted_solr: ScriptedSolr, scripted_receiver: SolrReceiver
) -> None:
    scripted_solr.script = [scripts.good]

    receipts = scripted_receiver.deliver(small_batch("a", removals=("b", "c")))

    assert receipts == [Receipt("a", True), Receipt("b", True), Receipt("c", True)]
    assert scripted_solr.received[1].body == {"delete": ["b", "c"]}
    assert scripted_solr.received[1].parameters["del_version"] == ["7"]


def test_deliver_when_an_id_is_empty_then_it_is_refused_and_never_sent(
    scripted_solr: ScriptedSolr, scripted_receiver: SolrReceiver
) -> None:
    scripted_solr.script = [scripts.good]

    receipts = scripted_receiver.deliver(small_batch("a", "", removals=("", "c")))

    assert [receipt.accepted for receipt in receipts] == [True, False, False, True]
    assert [request.ids for request in scripted_solr.received] == [["a"], ["c"]]


def test_deliver_when_200_carries_errors_then_these_documents_are_refused(
    scripted_solr: ScriptedSolr, scripted_receiver: SolrReceiver
) -> None:
    scripted_solr.script = [scripts.tolerant({"b": "ERROR: [doc=b] no number"})]

    receipts = scripted_receiver.deliver(small_batch("a", "b", "c"))

    assert receipts == [Receipt("a", True), Receipt("b", False, "ERROR: [doc=b] no number"), Receipt("c", True)]


def test_deliver_when_an_error_names_nobody_then_its_document_is_found_by_halving(
    scripted_solr: ScriptedSolr, scripted_receiver: SolrReceiver
) -> None:
    def anonymous(exchange: scripts.Exchange, request: scripts.Received) -> None:
        errors = b'[{"type":"ADD","id":"(unknown)","message":"odd"}]' if "c" in request.ids else b"[]"
        exchange.send(200, b'{"responseHeader":{"status":0,"errors":' + errors + b"}}")

    scripted_solr.script = [anonymous]

    receipts = scripted_receiver.deliver(small_batch("a", "b", "c", "d"))

    assert receipts == [Receipt("a", True), Receipt("b", True), Receipt("c", False, "odd"), Receipt("d", True)]


@pytest.mark.parametrize("status", [400, 413, 422])
def test_deliver_when_one_document_spoils_the_request_then_halving_finds_it(
    scripted_solr: ScriptedSolr, scripted_receiver: SolrReceiver, status: int
) -> None:
    names = [f"d{number}" for number in range(50)]
    scripted_solr.script = [scripts.refusing(status, when=lambda ids: "d31" in ids, reason="bad value")]

    receipts = scripted_receiver.deliver(small_batch(*names))

    assert [receipt for receipt in receipts if not receipt.accepted] == [Receipt("d31", False, "bad value")]
    assert [receipt.id for receipt in receipts] == names
    assert len(scripted_solr.received) <= 13


def test_deliver_when_the_request_is_too_large_then_smaller_ones_are_sent(
    scripted_solr: ScriptedSolr, scripted_receiver: SolrReceiver
) -> None:
    names = [f"d{number}" for number in range(16)]
    scripted_solr.script = [scripts.refusing(413, when=lambda ids: len(ids) > 4)]

    receipts = scripted_receiver.deliver(small_batch(*names))

    assert all(receipt.accepted for receipt in receipts)
    taken = [name for request in scripted_solr.received if len(request.ids) <= 4 for name in request.ids]
    assert taken == names


def test_deliver_when_a_removal_spoils_the_request_then_halving_finds_it(
    scripted_solr: ScriptedSolr, scripted_receiver: SolrReceiver
) -> None:
    scripted_solr.script = [scripts.refusing(400, when=lambda ids: "b" in ids, reason="odd id")]

    receipts = scripted_receiver.deliver(small_batch(removals=("a", "b", "c")))

    assert receipts == [Receipt("a", True), Receipt("b", False, "odd id"), Receipt("c", True)]


def test_deliver_when_the_index_has_a_newer_version_then_the_document_is_done(
    scripted_solr: ScriptedSolr, scripted_receiver: SolrReceiver
) -> None:
    scripted_solr.script = [scripts.refusing(409, when=lambda ids: "b" in ids, reason="version conflict")]

    receipts = scripted_receiver.deliver(small_batch("a", "b", "c"))

    assert [receipt.accepted for receipt in receipts] == [True, True, True]


def test_deliver_when_every_document_is_refused_alike_then_the_index_is_misconfigured(
    scripted_solr: ScriptedSolr, scripted_receiver: SolrReceiver
) -> None:
    scripted_solr.script = [scripts.status(400, REFUSED_ALIKE)]

    with pytest.raises(IndexMisconfigured, match="unknown update chain"):
        scripted_receiver.deliver(small_batch(*(f"d{number}" for number in range(200))))

    assert len(scripted_solr.received) < 60


@pytest.mark.parametrize("message", ["No space left on device", "Server error writing document id b to the index"])
def test_deliver_when_the_server_fails_on_a_document_then_no_document_is_to_blame(
    scripted_solr: ScriptedSolr, scripted_receiver: SolrReceiver, message: str
) -> None:
    scripted_solr.script = [scripts.tolerant({"b": message})]

    with pytest.raises(IndexUnavailable, match=message):
        scripted_receiver.deliver(small_batch("a", "b"))


def test_deliver_when_a_bad_value_reads_like_a_server_failure_then_its_document_is_refused(
    scripted_solr: ScriptedSolr, scripted_receiver: SolrReceiver
) -> None:
    message = "ERROR: [doc=b] Error adding field 'depth'='No space left, ZooKeeper'"
    scripted_solr.script = [scripts.tolerant({"b": message})]

    receipts = scripted_receiver.deliver(small_batch("a", "b"))

    assert receipts == [Receipt("a", True), Receipt("b", False, message)]


@pytest.mark.parametrize(
    "step",
    [
        scripts.status(500),
        scripts.status(502, b""),
        scripts.status(503, b'{"responseHeader":{"status":503},"error":{"msg":"SolrCore is loading","code":503}}'),
        scripts.status(408),
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
def test_deliver_when_the_outcome_is_unknown_then_unavailable_and_the_next_try_succeeds(
    scripted_solr: ScriptedSolr, scripted_receiver: SolrReceiver, step: Step
) -> None:
    scripted_solr.script = [step, scripts.good]

    with pytest.raises(IndexUnavailable):
        scripted_receiver.deliver(small_batch("a", "b"))

    assert scripted_receiver.deliver(small_batch("a", "b")) == [Receipt("a", True), Receipt("b", True)]
    assert scripted_solr.received[0] == scripted_solr.received[1]


@pytest.mark.parametrize("step", [scripts.silent, scripts.drip_header, scripts.drip_body])
def test_deliver_when_the_answer_takes_too_long_then_the_total_time_is_the_limit(
    scripted_solr: ScriptedSolr, scripted_receiver: SolrReceiver, step: Step
) -> None:
    scripted_solr.script = [step]

    with pytest.raises(IndexUnavailable, match=r"no complete answer within 1 s"):
        scripted_receiver.deliver(small_batch("a"))


def test_deliver_when_the_server_reads_nothing_then_unavailable(receiver_of_a_wall: SolrReceiver) -> None:
    text = "word " * 2_000_000

    with pytest.raises(IndexUnavailable, match="no complete answer within"):
        receiver_of_a_wall.deliver(
            Batch(number=1, source="s", crawl_version=1, documents=[IndexedDocument(id="a", fields={"content": text})])
        )


@pytest.fixture
def receiver_of_a_wall() -> Iterator[SolrReceiver]:
    """A receiver of a server that takes connections and reads nothing."""
    with socket.create_server(("127.0.0.1", 0)) as wall:
        receiver = SolrReceiver(f"http://127.0.0.1:{wall.getsockname()[1]}/solr/wall", timeout_seconds=0.5)
        yield receiver
        receiver.close()


def test_deliver_when_nobody_listens_then_unavailable_and_says_so() -> None:
    receiver = SolrReceiver(f"http://127.0.0.1:{free_port()}/solr/none", timeout_seconds=1)

    with pytest.raises(IndexUnavailable, match=r"/solr/none/update: Connection refused"):
        receiver.deliver(small_batch("a"))


@pytest.mark.parametrize("status", [429, 503])
def test_deliver_when_asked_to_come_back_then_the_seconds_are_told(
    scripted_solr: ScriptedSolr, scripted_receiver: SolrReceiver, status: int
) -> None:
    scripted_solr.script = [scripts.status(status, Retry_After="17")]

    with pytest.raises(IndexUnavailable) as raised:
        scripted_receiver.deliver(small_batch("a"))

    assert raised.value.retry_after_seconds == 17


@pytest.mark.parametrize(
    ("retry_after", "least", "most"),
    [
        (format_datetime(datetime.now(UTC) + timedelta(seconds=1800), usegmt=True), 60, 1800),
        ("999999", 3600, 3600),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0, 0),
    ],
    ids=["date", "too-long", "past"],
)
def test_deliver_when_retry_after_is_odd_then_it_is_bounded(
    scripted_solr: ScriptedSolr, scripted_receiver: SolrReceiver, retry_after: str, least: float, most: float
) -> None:
    scripted_solr.script = [scripts.status(429, Retry_After=retry_after)]

    with pytest.raises(IndexUnavailable) as raised:
        scripted_receiver.deliver(small_batch("a"))

    assert raised.value.retry_after_seconds is not None
    assert least <= raised.value.retry_after_seconds <= most


@pytest.mark.parametrize("retry_after", ["soon", "-5", "1e3", "٣"])
def test_deliver_when_retry_after_is_nonsense_then_there_is_none(
    scripted_solr: ScriptedSolr, scripted_receiver: SolrReceiver, retry_after: str
) -> None:
    body = b"busy"

    def answer(exchange: scripts.Exchange, request: scripts.Received) -> None:
        raw = f"HTTP/1.1 503 Busy\r\nRetry-After: {retry_after}\r\nContent-Length: {len(body)}\r\n\r\n"
        exchange.wfile.write(raw.encode() + body)

    scripted_solr.script = [answer]

    with pytest.raises(IndexUnavailable) as raised:
        scripted_receiver.deliver(small_batch("a"))

    assert raised.value.retry_after_seconds is None


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (scripts.status(200), "not Solr's: <html>Sorry</html>"),
        (scripts.status(200, b'{"ok": true}'), "not Solr's"),
        (scripts.status(200, b"[1, 2]"), "not Solr's"),
        (scripts.status(200, b'{"responseHeader":{"status":0,"errors":["a"]}}'), "not Solr's"),
        (scripts.status(200, b'{"responseHeader":{"status":0,"errors":{"id":1}}}'), "not Solr's"),
        (scripts.status(200, b" " * 200_000), "longer than 100000 bytes"),
        (scripts.status(302, b"", Location="http://127.0.0.1:1/login"), "redirect"),
        (scripts.status(307, b"", Location="/elsewhere"), "redirect"),
        (scripts.status(401), "asks for a login"),
        (scripts.status(403), "forbidden"),
        (scripts.status(404), "no such core"),
        (scripts.status(405), "no such core"),
        (scripts.status(415), "HTTP 415"),
    ],
)
def test_deliver_when_this_is_no_index_then_misconfigured_and_asked_once(
    scripted_solr: ScriptedSolr, scripted_receiver: SolrReceiver, step: Step, words: str
) -> None:
    scripted_solr.script = [step]

    with pytest.raises(IndexMisconfigured, match=words):
        scripted_receiver.deliver(small_batch("a", "b"))

    assert len(scripted_solr.received) == 1
