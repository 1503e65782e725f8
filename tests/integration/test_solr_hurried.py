"""Deliveries once no page is fetched any more: two requests at once, with the receipts of one."""

from __future__ import annotations

import threading
from typing import Any, Final

import pytest

from searchcrawl.exceptions import IndexMisconfigured, IndexUnavailable
from searchcrawl.index.receiver import Batch
from searchcrawl.index.solr.receiver import SolrReceiver
from searchcrawl.items import IndexedDocument
from tests import scripted_solr as scripts
from tests.index_documents import batch, document
from tests.scripted_solr import Exchange, Received, ScriptedSolr

_LONG: Final = "word " * 1_000


def large_batch(count: int, **odd: Any) -> Batch:
    """Documents of 5 KB; those whose number is a key of ``odd``, after a d, have that field instead of a depth."""
    return batch(
        *(document(f"d{number}", content=_LONG, depth=odd.get(f"d{number}", number)) for number in range(count))
    )


@pytest.fixture
def hurried(scripted_solr: ScriptedSolr) -> SolrReceiver:
    scripted_solr.receiver.hurry()
    return scripted_solr.receiver


def test_deliver_when_it_hurries_then_two_requests_are_under_way_at_once_and_have_all_documents(
    scripted_solr: ScriptedSolr, hurried: SolrReceiver
) -> None:
    both = threading.Barrier(2, timeout=2)

    def wait_for_other(exchange: Exchange, request: Received) -> None:
        both.wait()
        scripts.good(exchange, request)

    scripted_solr.script = [wait_for_other]

    receipts = hurried.deliver(large_batch(300))

    assert [receipt.id for receipt in receipts if receipt.accepted] == [f"d{number}" for number in range(300)]
    assert [len(request.ids) // 100 for request in scripted_solr.received] == [1, 1]
    assert sorted(set().union(*(request.ids for request in scripted_solr.received))) == sorted(
        receipt.id for receipt in receipts
    )


@pytest.mark.parametrize(
    "documents",
    [[document(f"d{number}") for number in range(300)], [document("d0", content=_LONG * 200)], []],
    ids=["small", "one", "none"],
)
def test_deliver_when_there_is_little_to_cut_then_one_request_has_it(
    scripted_solr: ScriptedSolr, hurried: SolrReceiver, documents: list[IndexedDocument]
) -> None:
    scripted_solr.script = [scripts.good]

    receipts = hurried.deliver(batch(*documents))

    assert all(receipt.accepted for receipt in receipts)
    assert [request.ids for request in scripted_solr.received] == ([[one.id for one in documents]] if documents else [])


@pytest.mark.parametrize("fails", [scripts.status(503), scripts.cut, scripts.silent], ids=["503", "cut", "silent"])
@pytest.mark.parametrize("which", ["d0", "d299"])
def test_deliver_when_one_of_two_requests_fails_then_the_batch_counts_as_not_sent(
    scripted_solr: ScriptedSolr, hurried: SolrReceiver, fails: scripts.Step, which: str
) -> None:
    def step(exchange: Exchange, request: Received) -> None:
        (fails if which in request.ids else scripts.good)(exchange, request)

    scripted_solr.script = [step]

    with pytest.raises(IndexUnavailable):
        hurried.deliver(large_batch(300))

    assert len(scripted_solr.received) == 2
    scripted_solr.script = [scripts.good]
    assert all(receipt.accepted for receipt in hurried.deliver(large_batch(300)))


def test_deliver_when_both_requests_are_refused_for_some_documents_then_only_these_are(
    scripted_solr: ScriptedSolr, hurried: SolrReceiver
) -> None:
    bad = {"d7", "d290"}
    scripted_solr.script = [scripts.refusing(400, when=lambda ids: not bad.isdisjoint(ids))]

    receipts = hurried.deliver(large_batch(300))

    assert {receipt.id for receipt in receipts if not receipt.accepted} == bad
    assert len(receipts) == 300


@pytest.mark.solr
def test_deliver_when_it_hurries_then_solr_has_all_but_what_it_refuses(solr_receiver: SolrReceiver) -> None:
    solr_receiver.hurry()

    receipts = solr_receiver.deliver(large_batch(300, d3="none", d250="none"))
    solr_receiver.commit()

    refused = {receipt.id for receipt in receipts if not receipt.accepted}
    assert refused == {"d3", "d250"}
    assert {entry.id for entry in solr_receiver.scan("site")} == {f"d{number}" for number in range(300)} - refused


@pytest.mark.solr
def test_deliver_when_it_hurries_and_every_document_is_refused_then_the_project_is_at_fault(
    solr_receiver: SolrReceiver,
) -> None:
    solr_receiver.hurry()
    documents = [document(f"d{number}", content=_LONG, nowhere="x") for number in range(300)]

    with pytest.raises(IndexMisconfigured, match="unknown field 'nowhere'"):
        solr_receiver.deliver(batch(*documents))
