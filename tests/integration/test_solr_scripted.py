"""Receipts for the documents of a delivery, for each answer that Solr may give (X-D13, X-I3, X-I4, X-I9, X-I10)."""

from __future__ import annotations

from typing import Final

import pytest

from searchcrawl.exceptions import IndexMisconfigured, IndexUnavailable
from searchcrawl.index.receiver import Batch, Receipt
from tests import scripted_solr as scripts
from tests.scripted_solr import ScriptedSolr, small_batch

REFUSED_ALIKE = b'{"error":{"msg":"unknown update chain","code":400}}'
CONFLICT = b'{"error":{"msg":"version conflict for a","code":409}}'


def repr_of_id(value: str) -> str:
    return ascii(value[:3])


def test_deliver_when_all_is_taken_then_documents_are_streamed_and_acknowledged(scripted_solr: ScriptedSolr) -> None:
    scripted_solr.script = [scripts.good]

    receipts = scripted_solr.receiver.deliver(small_batch("a", "b"))

    assert receipts == [Receipt("a", True), Receipt("b", True)]
    assert scripted_solr.received[0].path == "/solr/scripted/update"
    assert scripted_solr.received[0].body == [
        {"title": "Page a", "source": "site", "id": "a", "crawl_version": 7},
        {"title": "Page b", "source": "site", "id": "b", "crawl_version": 7},
    ]
    assert "commit" not in scripted_solr.received[0].parameters


def test_deliver_when_ids_are_removed_then_their_version_travels_with_them(scripted_solr: ScriptedSolr) -> None:
    scripted_solr.script = [scripts.good]

    receipts = scripted_solr.receiver.deliver(small_batch("a", removals=("b", "c")))

    assert receipts == [Receipt("a", True), Receipt("b", True), Receipt("c", True)]
    assert scripted_solr.received[1].body == {"delete": ["b", "c"]}
    assert scripted_solr.received[1].parameters["del_version"] == ["7"]


def anonymous(exchange: scripts.Exchange, request: scripts.Received) -> None:
    """Refuses c, and does not say whom."""
    errors = b'[{"type":"ADD","id":"(unknown)","message":"odd"}]' if "c" in request.ids else b"[]"
    exchange.send(200, b'{"responseHeader":{"status":0,"errors":' + errors + b"}}")


def refusing(name: str, reason: str, status: int = 400) -> scripts.Step:
    return scripts.refusing(status, when=lambda ids: name in ids, reason=reason)


NO_SPACE: Final = "ERROR: [doc=b] Error adding field 'depth'='No space left, ZooKeeper'"
#: What Solr does, what is delivered, and who is refused with which error.
REFUSED: Final[dict[str, tuple[scripts.Step, Batch, dict[str, str]]]] = {
    "200 carries errors": (
        scripts.tolerant({"b": "[doc=b] no number"}),
        small_batch("a", "b", "c"),
        {"b": "[doc=b] no number"},
    ),
    "an error names nobody": (anonymous, small_batch("a", "b", "c", "d"), {"c": "odd"}),
    "a removal spoils the request": (refusing("b", "odd id"), small_batch(removals=("a", "b", "c")), {"b": "odd id"}),
    "the only document is refused": (refusing("a", "bad value"), small_batch("a"), {"a": "bad value"}),
    "a bad value reads like a failure of the server": (
        scripts.tolerant({"b": NO_SPACE}),
        small_batch("a", "b"),
        {"b": NO_SPACE},
    ),
    "a removal conflicts with a newer version": (
        refusing("z", "version conflict for z", 409),
        small_batch(removals=("a", "z")),
        {},
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_i3_i4_deliver_when_some_are_refused_then_these_are_named_and_all_others_acknowledged(
    scripted_solr: ScriptedSolr, name: str
) -> None:
    step, batch, errors = REFUSED[name]
    scripted_solr.script = [step]
    scripted_solr.versions = {"z": 9}

    receipts = scripted_solr.receiver.deliver(batch)

    ids = [each.id for each in (*batch.documents, *batch.removals)]
    assert receipts == [Receipt(each, each not in errors, errors.get(each)) for each in ids]


@pytest.mark.parametrize("status", [400, 413, 422])
def test_i3_deliver_when_one_document_spoils_the_request_then_halving_finds_it(
    scripted_solr: ScriptedSolr, status: int
) -> None:
    names = [f"d{number}" for number in range(50)]
    scripted_solr.script = [scripts.refusing(status, when=lambda ids: "d31" in ids, reason="bad value")]

    receipts = scripted_solr.receiver.deliver(small_batch(*names))

    assert [receipt for receipt in receipts if not receipt.accepted] == [Receipt("d31", False, "bad value")]
    assert [receipt.id for receipt in receipts] == names
    assert len(scripted_solr.received) <= 13


@pytest.mark.parametrize("held", [7, 8])
@pytest.mark.parametrize("by_status", [True, False], ids=["409", "200"])
def test_i4_deliver_when_the_index_has_this_version_or_a_newer_one_then_the_document_is_done(
    scripted_solr: ScriptedSolr, held: int, *, by_status: bool
) -> None:
    refusing = scripts.refusing(409, when=lambda ids: "b" in ids, reason="version conflict for b")
    tolerant = scripts.tolerant({"b": "user version is not high enough: 7"})
    scripted_solr.script = [refusing if by_status else tolerant]
    scripted_solr.versions = {"b": held}

    receipts = scripted_solr.receiver.deliver(small_batch("a", "b", "c"))

    assert [receipt.accepted for receipt in receipts] == [True, True, True]
    assert scripted_solr.read_back == ["b"]


def test_i4_deliver_when_a_conflict_passes_then_the_document_is_sent_again(scripted_solr: ScriptedSolr) -> None:
    scripted_solr.script = [scripts.status(409, CONFLICT), scripts.status(409, CONFLICT), scripts.good]
    scripted_solr.versions = {"a": 6}

    receipts = scripted_solr.receiver.deliver(small_batch("a"))

    assert receipts == [Receipt("a", True)]
    assert [request.ids for request in scripted_solr.received] == [["a"]] * 3


def test_i4_deliver_when_a_conflict_stays_then_the_tries_are_bounded_and_the_document_is_named(
    scripted_solr: ScriptedSolr,
) -> None:
    scripted_solr.script = [scripts.refusing(409, when=lambda ids: "b" in ids, reason="version conflict for b")]

    receipts = scripted_solr.receiver.deliver(small_batch("a", "b"))

    assert receipts == [Receipt("a", True), Receipt("b", False, "version conflict for b (the index has none)")]
    assert scripted_solr.read_back == ["b"] * 3
    assert len(scripted_solr.received) <= 6


def test_i3_deliver_when_every_document_is_refused_alike_then_the_index_is_misconfigured(
    scripted_solr: ScriptedSolr,
) -> None:
    scripted_solr.script = [scripts.status(400, REFUSED_ALIKE)]

    with pytest.raises(IndexMisconfigured, match="unknown update chain"):
        scripted_solr.receiver.deliver(small_batch(*(f"d{number}" for number in range(200))))

    assert len(scripted_solr.received) < 60


def test_i3_deliver_when_few_are_refused_and_an_empty_update_too_then_misconfigured(
    scripted_solr: ScriptedSolr,
) -> None:
    scripted_solr.script = [scripts.status(400, REFUSED_ALIKE)]

    with pytest.raises(IndexMisconfigured, match=r"searchcrawl\.toml: index\.url: .*unknown update chain"):
        scripted_solr.receiver.deliver(small_batch("a"))

    assert [request.body for request in scripted_solr.received][1:] == [[]]


@pytest.mark.parametrize("message", ["No space left on device", "Server error writing document id b to the index"])
def test_i3_deliver_when_the_server_fails_on_a_document_then_no_document_is_to_blame(
    scripted_solr: ScriptedSolr, message: str
) -> None:
    scripted_solr.script = [scripts.tolerant({"b": message})]

    with pytest.raises(IndexUnavailable, match=message):
        scripted_solr.receiver.deliver(small_batch("a", "b"))


@pytest.mark.parametrize("bad", ["", " ", "\t\n", "a\x00", "a\ud800", "x" * 40_000, "é" * 20_000], ids=repr_of_id)
def test_i9_deliver_when_an_id_cannot_be_stored_then_it_is_refused_and_never_sent(
    scripted_solr: ScriptedSolr, bad: str
) -> None:
    scripted_solr.script = [scripts.good]

    receipts = scripted_solr.receiver.deliver(small_batch("a", bad, removals=(bad, "c")))

    assert [receipt.accepted for receipt in receipts] == [True, False, False, True]
    assert all("the id" in str(receipt.error) for receipt in receipts if not receipt.accepted)
    assert [request.ids for request in scripted_solr.received] == [["a"], ["c"]]


@pytest.mark.parametrize(
    "update_log",
    [
        pytest.param(b'{"dir":""}', id="default"),
        pytest.param(b'{"dir":"","syncLevel":"FLUSH"}', id="flush"),
        pytest.param(b'{"dir":"","syncLevel":"NONE"}', id="none"),
        pytest.param(b"[]", id="odd"),
        pytest.param(None, id="forbidden"),
    ],
)
@pytest.mark.parametrize("ids", [{"documents": ("a",)}, {"removals": ("b",)}], ids=["documents", "removals"])
def test_i8_deliver_when_the_update_log_is_not_known_to_be_synced_then_a_commit_comes_before_receipts(
    scripted_solr: ScriptedSolr,
    update_log: bytes | None,
    ids: dict[str, tuple[str, ...]],
) -> None:
    scripted_solr.script = [scripts.good]
    scripted_solr.update_log = update_log

    receipts = scripted_solr.receiver.deliver(small_batch(*ids.get("documents", ()), removals=ids.get("removals", ())))

    assert [receipt.accepted for receipt in receipts] == [True]
    assert [request.body for request in scripted_solr.received[1:]] == [{"commit": {"openSearcher": False}}]


@pytest.mark.parametrize("level", [b"FSYNC", b"fsync"])
def test_i8_deliver_when_the_update_log_is_synced_then_nothing_is_committed(
    scripted_solr: ScriptedSolr, level: bytes
) -> None:
    scripted_solr.script = [scripts.good]
    scripted_solr.update_log = b'{"dir":"","syncLevel":"%s"}' % level

    scripted_solr.receiver.deliver(small_batch("a"))

    assert len(scripted_solr.received) == 1


def test_i8_deliver_when_the_commit_of_an_unsynced_log_fails_then_there_are_no_receipts(
    scripted_solr: ScriptedSolr,
) -> None:
    scripted_solr.script = [scripts.good, lambda exchange, request: exchange.send(503, b"{}")]
    scripted_solr.update_log = b'{"dir":""}'

    with pytest.raises(IndexUnavailable):
        scripted_solr.receiver.deliver(small_batch("a"))
