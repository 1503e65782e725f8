"""Delivery to a real Solr: receipts, versions, tombstones, kill -9 (G3, X-I3, X-I8; docs: decisions/receipts)."""

from __future__ import annotations

import re
import threading
import urllib.error

import pytest

from searchcrawl.exceptions import IndexMisconfigured, IndexUnavailable
from searchcrawl.index.receiver import Batch, SearchIndex
from searchcrawl.index.solr import receiver as solr_receiver_module
from searchcrawl.index.solr.receiver import REQUIRED_FIELDS, SolrReceiver
from tests.index_documents import answer, batch, document, found, put, when_up
from tests.solr_server import RunningSolr

pytestmark = pytest.mark.solr


def test_deliver_when_not_committed_then_not_visible(solr_receiver: SolrReceiver) -> None:
    solr_receiver.deliver(batch(document("a", content="word")))

    before = found(solr_receiver, "word"), dict(solr_receiver.find_versions(["a"]))
    solr_receiver.commit()

    assert before == (set(), {})
    assert (found(solr_receiver, "word"), dict(solr_receiver.find_versions(["a"]))) == ({"a"}, {"a": 1})


def test_i8_deliver_when_the_core_is_of_our_configset_then_its_log_is_synced_and_nothing_is_committed(
    solr_receiver: SolrReceiver, solr_core: str
) -> None:
    solr_receiver.deliver(batch(document("a", content="word")))

    name = solr_core.rpartition("/")[2]
    wanted = "UPDATE.updateHandler.commits"
    metrics = answer(solr_core, f"../admin/metrics?group=core&prefix={wanted}&wt=json")["metrics"]
    assert metrics[f"solr.core.{name}"][wanted]["count"] == 0


def test_i3_deliver_when_one_of_300_is_bad_then_it_is_named_and_the_rest_is_in(solr_receiver: SolrReceiver) -> None:
    documents = [document(f"d{number}", depth="none" if number == 217 else number) for number in range(300)]

    receipts = solr_receiver.deliver(batch(*documents))
    solr_receiver.commit()

    refused = [receipt for receipt in receipts if not receipt.accepted]
    assert [receipt.id for receipt in receipts] == [one.id for one in documents]
    assert [receipt.id for receipt in refused] == ["d217"]
    assert "depth" in str(refused[0].error)
    assert len(list(solr_receiver.scan("site"))) == 299


def test_i3_deliver_when_more_are_bad_than_the_chain_tolerates_then_each_is_named(solr_receiver: SolrReceiver) -> None:
    documents = [document(f"d{number}", depth="none" if number % 2 else number) for number in range(300)]

    receipts = solr_receiver.deliver(batch(*documents))
    solr_receiver.commit()

    assert [receipt.accepted for receipt in receipts] == [number % 2 == 0 for number in range(300)]
    assert len(list(solr_receiver.scan("site"))) == 150


def test_i3_deliver_when_the_schema_knows_none_of_a_field_then_misconfigured(solr_receiver: SolrReceiver) -> None:
    documents = [document(f"d{number}", nowhere="x") for number in range(30)]

    with pytest.raises(IndexMisconfigured, match="unknown field 'nowhere'"):
        solr_receiver.deliver(batch(*documents))


def test_i4_get_when_a_version_is_asked_for_then_uncommitted_documents_and_tombstones_answer(
    solr_receiver: SolrReceiver, solr_core: str
) -> None:
    solr_receiver.deliver(batch(document("a"), document("b"), version=5))
    solr_receiver.deliver(batch(version=6, removed=("b",)))

    held = [
        answer(solr_core, f"get?id={name}&fl=crawl_version&omitHeader=false&wt=json")["doc"] for name in ("a", "b", "c")
    ]

    # What a conflict is decided by.
    assert held == [{"crawl_version": 5}, {"crawl_version": 6}, None]


def test_i6_deliver_when_the_core_knows_no_such_field_then_ping_says_what_it_lacks(
    solr_receiver: SolrReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(solr_receiver_module, "REQUIRED_FIELDS", REQUIRED_FIELDS | {"of_another_schema"})

    with pytest.raises(
        IndexMisconfigured, match=r"searchcrawl\.toml: index\.url: .*its schema lacks of_another_schema"
    ):
        solr_receiver.ping()


def test_purge_when_there_are_tombstones_then_they_are_gone_for_good(
    solr_receiver: SolrReceiver, solr_core: str
) -> None:
    put(solr_receiver, *(document(f"d{number}", content="word") for number in range(200)))
    solr_receiver.deliver(batch(version=2, removed=("d1", "d2", "d3")))
    solr_receiver.commit()

    purged = solr_receiver.purge()

    index = answer(solr_core, "admin/luke?numTerms=0&wt=json")["index"]
    assert purged == 3
    assert (index["numDocs"], index["maxDoc"]) == (197, 197)
    assert solr_receiver.purge() == 0


def test_ping_when_the_core_fits_then_returns_and_all_promised_fields_are_there(
    solr_receiver: SolrReceiver, solr_core: str
) -> None:
    solr_receiver.ping()

    fields = answer(solr_core, "schema/fields?wt=json")["fields"]
    assert {entry["name"] for entry in fields} >= REQUIRED_FIELDS
    assert [entry["name"] for entry in fields if entry.get("required")] == ["id"]
    assert isinstance(solr_receiver, SearchIndex)


def test_i6_ping_when_the_core_is_missing_then_misconfigured_and_names_the_url(solr_server: RunningSolr) -> None:
    url = solr_server.core_url("nowhere")
    receiver = SolrReceiver(url)

    with pytest.raises(IndexMisconfigured, match=re.escape(url)):
        receiver.ping()
    with pytest.raises(IndexMisconfigured, match="no such core"):
        receiver.deliver(batch(document("a")))


@pytest.mark.parametrize(
    "parameters", ["stream.url=http://127.0.0.1:1/", "stream.file=/etc/hostname", "stream.body=[]"]
)
def test_configset_when_a_request_names_its_body_then_refused(solr_core: str, parameters: str) -> None:
    with pytest.raises(urllib.error.HTTPError) as raised:
        answer(solr_core, f"update?wt=json&{parameters}")

    raised.value.close()
    assert raised.value.code == 400


def test_i8_i7_deliver_when_solr_is_killed_then_all_that_had_receipts_is_there_and_sending_again_makes_it_whole(
    solr_receiver: SolrReceiver, solr_server: RunningSolr
) -> None:
    # One kill says both: Java needs seconds to start again.
    receipts = [
        *solr_receiver.deliver(
            batch(*(document(f"d{number}", content=f"word {number} " * 300) for number in range(500)))
        ),
        *solr_receiver.deliver(batch(version=2, removed=("d0",))),
    ]
    whole = batch(*(document(f"e{number}", content=f"word {number} " * 300) for number in range(1500)))

    killer = threading.Timer(0.3, solr_server.kill)
    killer.start()
    with pytest.raises(IndexUnavailable):
        deliver_for_ever(solr_receiver, whole)
    killer.join()
    with pytest.raises(IndexUnavailable):
        solr_receiver.deliver(batch(document("d1")))
    solr_server.start()
    # A late one, while the log is read back, does not come before what was acknowledged.
    late = when_up(lambda: solr_receiver.deliver(batch(document("d0"), version=1)))
    again = when_up(lambda: solr_receiver.deliver(whole))
    when_up(solr_receiver.commit)

    names = [entry.id for entry in solr_receiver.scan("site")]
    assert all(receipt.accepted for receipt in [*receipts, *late, *again])
    assert sorted(names) == sorted(
        [f"d{number}" for number in range(1, 500)] + [f"e{number}" for number in range(1500)]
    )


def deliver_for_ever(solr_receiver: SolrReceiver, whole: Batch) -> None:
    while True:
        solr_receiver.deliver(whole)


def test_i2_deliver_when_solr_hangs_then_unavailable_and_the_same_batch_goes_in_once(
    solr_core: str, solr_server: RunningSolr
) -> None:
    receiver = SolrReceiver(solr_core, timeout_seconds=1)
    receiver.ping()
    whole = batch(*(document(f"d{number}", content="word") for number in range(50)))

    solr_server.pause()
    try:
        with pytest.raises(IndexUnavailable, match="within 1 s"):
            receiver.deliver(whole)
    finally:
        solr_server.resume()
    patient = SolrReceiver(solr_core, timeout_seconds=30)
    receipts = patient.deliver(whole)
    patient.commit()

    assert all(receipt.accepted for receipt in receipts)
    assert len(list(patient.scan("site"))) == 50
    receiver.close()
    patient.close()
