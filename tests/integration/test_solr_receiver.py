"""The receiver and the configset against a real Solr (G1–G3, I3, I8, decision 6)."""

from __future__ import annotations

import math
import re
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, TypeVar

import orjson
import pytest

from searchcrawl.exceptions import IndexMisconfigured, IndexUnavailable, UnsupportedByIndex
from searchcrawl.index.receiver import Batch, Receipt, SearchIndex, SearchQuery
from searchcrawl.index.solr_receiver import REQUIRED_FIELDS, SolrReceiver
from searchcrawl.items import IndexedDocument, Removal
from tests.solr_server import RunningSolr

T = TypeVar("T")
pytestmark = pytest.mark.solr


@pytest.fixture
def receiver(solr_core: str) -> Iterator[SolrReceiver]:
    made = SolrReceiver(solr_core, timeout_seconds=30)
    yield made
    made.close()


def document(name: str, **fields: Any) -> IndexedDocument:
    return IndexedDocument(id=name, fields={"source": "site", "url": f"http://example.com/{name}", **fields})


def batch(*documents: IndexedDocument, version: int = 1, removed: tuple[str, ...] = ()) -> Batch:
    removals = [Removal(id=name, url=f"http://example.com/{name}", code=404) for name in removed]
    return Batch(number=version, source="site", crawl_version=version, documents=documents, removals=removals)


def put(receiver: SolrReceiver, *documents: IndexedDocument) -> None:
    assert all(receipt.accepted for receipt in receiver.deliver(batch(*documents)))
    receiver.commit()


def found(receiver: SolrReceiver, words: str, **asked: Any) -> set[str]:
    return {hit.id for hit in receiver.search(SearchQuery(words=words, rows=1000, **asked)).hits}


def when_up(call: Callable[[], T]) -> T:
    """What ``call`` gives once Solr has read its log back, asked again as a delivery does."""
    for _ in range(300):
        try:
            return call()
        except IndexUnavailable as error:
            if error.retry_after_seconds != 1:
                raise
            time.sleep(0.1)
    pytest.fail("Solr did not come back")


def answer(url: str, path: str) -> dict[str, Any]:
    with urllib.request.urlopen(f"{url}/{path}", timeout=10) as response:
        return dict(orjson.loads(response.read()))


@pytest.mark.parametrize("field", ["content", "title", "description"])
def test_search_when_stop_words_are_in_a_phrase_then_they_hold_their_place(receiver: SolrReceiver, field: str) -> None:
    texts = {
        "on": "oracle on demand",
        "none": "oracle demand",
        "technology": "oracle technology on demand",
    }
    put(receiver, *(document(name, **{field: text}) for name, text in texts.items()))

    assert found(receiver, '"oracle on demand"') == {"on"}
    assert found(receiver, '"oracle on on demand"') == {"technology"}
    assert found(receiver, '"oracle demand"') == {"none"}
    assert found(receiver, "oracle on demand") == {"on", "none", "technology"}


@pytest.mark.parametrize("words", ["on", '"on"', "on the", "title:on", "on -oracle", "-on on", "on OR the", ""])
def test_search_when_only_stop_words_are_asked_for_then_nothing_is_found(receiver: SolrReceiver, words: str) -> None:
    put(receiver, document("a", content="oracle on demand", title="on"), document("b", content="on"))

    assert receiver.search(SearchQuery(words=words)).total == 0


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("東京", {"ja"}),
        ("東京タワー", {"ja"}),
        ("京都", set()),
        ("水", {"ja"}),
        ("語oracle", {"ja"}),
        ('"タワーの水"', {"ja"}),
        ('"水のタワー"', set()),
        ("title:日本", {"ja"}),
        ("ｏｒａｃｌｅ", {"ja"}),
        ("ﾀﾜｰ", {"ja"}),
        ("서울", {"ko"}),
        ("cafe", {"fr"}),
        ("Été", {"fr"}),
        ("path", {"code"}),
        ("searchcrawl.toml", {"code"}),
        ("E-Mail", {"code"}),
        ('"mail e"', set()),
    ],
)
def test_search_when_a_text_is_of_any_script_then_its_words_are_found(
    receiver: SolrReceiver, words: str, expected: set[str]
) -> None:
    put(
        receiver,
        document("ja", content="日本語oracleの東京タワーの水です。", title="日本"),
        document("ko", content="서울특별시"),
        document("fr", content="un café en été"),
        document("code", content="see os.path, searchcrawl.toml, and e-mail"),
    )

    assert found(receiver, words) == expected


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("*", {"a", "b", "c"}),
        ("red car", {"a"}),
        ("red -car", {"b"}),
        ("-car", {"b", "c"}),
        ("car OR blue", {"a", "c"}),
        ("red OR -red", {"a", "b", "c"}),
        ("title:first", {"a"}),
        ("author:lee", {"b"}),
        ("lee", {"b"}),
        ("url:c host:example", set()),
        ("host:example.com red", {"a"}),
        ("source:site blue", {"c"}),
        ('"', set()),
        ("{!func}sum(1)", set()),
        ("_query_:red", set()),
        ("id:a", set()),
        (r"red\ ) AND (", {"a", "b"}),
        ("/.*/", set()),
        ("re*", set()),
        ("x" * 5000, set()),
    ],
)
def test_search_when_words_are_typed_then_the_query_language_holds(
    receiver: SolrReceiver, words: str, expected: set[str]
) -> None:
    put(
        receiver,
        document("a", content="red car", title="first", host="www.example.com"),
        document("b", content="red and bike", author="Ann Lee"),
        document("c", content="blue"),
    )

    assert found(receiver, words) == expected


def test_search_when_filtered_sorted_and_counted_then_whole_values_are_used(receiver: SolrReceiver) -> None:
    put(
        receiver,
        document("a", title="Zoo", groups=["g1", "g2"], author="Ann Lee", color_s=["red"], size_l=5, depth=1),
        document("b", title="apple", groups=["g2"], author="Ann", note_t="hello world", size_l=1.5),
        IndexedDocument(id="c", fields={"source": "other", "last_modified": datetime(2020, 1, 1, tzinfo=UTC)}),
    )

    assert found(receiver, "*", source="site") == {"a", "b"}
    assert found(receiver, "*", groups=["g1"]) == {"a"}
    assert found(receiver, "*", groups=["g1", "g2", 'odd") OR *:*']) == {"a", "b"}
    assert found(receiver, "*", filters=[("author", "Ann")]) == {"b"}
    assert found(receiver, "*", filters=[("color", "red"), ("size", "5")]) == {"a"}
    assert found(receiver, "*", filters=[("note", "hello world")]) == {"b"}
    assert found(receiver, "*", filters=[("last_modified", "2020-01-01T01:00:00+01:00")]) == {"c"}
    assert found(receiver, "*", filters=[("depth", "1")]) == {"a"}
    assert found(receiver, "*", filters=[("unheard_of", "1")]) == set()
    ordered = receiver.search(SearchQuery(words="*", sort="-title", facets=["groups", "size", "source"]))
    assert [hit.id for hit in ordered.hits] == ["b", "a", "c"]
    assert ordered.facets == {
        "groups": {"g2": 2, "g1": 1},
        "size": {"5": 1, "1.5": 1},
        "source": {"site": 2, "other": 1},
    }
    assert ordered.hits[0].fields["size_l"] == 1.5
    assert ordered.hits[1].fields["color_s"] == "red"


def test_search_when_a_field_cannot_be_sorted_then_unsupported(receiver: SolrReceiver) -> None:
    with pytest.raises(UnsupportedByIndex):
        receiver.search(SearchQuery(words="*", sort="content"))


def test_search_when_hits_are_shown_then_snippets_mark_them_in_plain_text(receiver: SolrReceiver) -> None:
    text = "Nothing here. " * 200 + "Then <b>Oracle</b> &amp; friends on demand. " + "More of the same. " * 200
    put(receiver, document("a", content=text, title="A title"), document("b", content="no words", title="oracle"))

    hits = {hit.id: hit for hit in receiver.search(SearchQuery(words="oracle")).hits}

    assert "<b>\ue000Oracle\ue001</b> &amp; friends" in hits["a"].snippet
    assert len(hits["a"].snippet) < 500
    assert hits["b"].snippet == "no words"
    assert "content" not in hits["a"].fields
    assert hits["a"].fields["title"] == "A title"


def test_search_when_paged_then_every_document_comes_once(receiver: SolrReceiver) -> None:
    put(receiver, *(document(f"d{number:02}", content="same") for number in range(25)))

    pages = [receiver.search(SearchQuery(words="same", rows=10, start=start)) for start in (0, 10, 20)]

    assert [page.total for page in pages] == [25, 25, 25]
    assert [hit.id for page in pages for hit in page.hits] == [f"d{number:02}" for number in range(25)]


def test_deliver_when_not_committed_then_not_visible(receiver: SolrReceiver) -> None:
    receiver.deliver(batch(document("a", content="word")))

    before = found(receiver, "word")
    receiver.commit()

    assert (before, found(receiver, "word")) == (set(), {"a"})


def test_deliver_when_one_of_300_is_bad_then_it_is_named_and_the_rest_is_in(receiver: SolrReceiver) -> None:
    documents = [document(f"d{number}", depth="none" if number == 217 else number) for number in range(300)]

    receipts = receiver.deliver(batch(*documents))
    receiver.commit()

    refused = [receipt for receipt in receipts if not receipt.accepted]
    assert [receipt.id for receipt in receipts] == [one.id for one in documents]
    assert [receipt.id for receipt in refused] == ["d217"]
    assert "depth" in str(refused[0].error)
    assert len(list(receiver.scan("site"))) == 299


def test_deliver_when_more_are_bad_than_the_chain_tolerates_then_each_is_named(receiver: SolrReceiver) -> None:
    documents = [document(f"d{number}", depth="none" if number % 2 else number) for number in range(300)]

    receipts = receiver.deliver(batch(*documents))
    receiver.commit()

    assert [receipt.accepted for receipt in receipts] == [number % 2 == 0 for number in range(300)]
    assert len(list(receiver.scan("site"))) == 150


def test_deliver_when_the_schema_knows_none_of_a_field_then_misconfigured(receiver: SolrReceiver) -> None:
    documents = [document(f"d{number}", nowhere="x") for number in range(30)]

    with pytest.raises(IndexMisconfigured, match="unknown field 'nowhere'"):
        receiver.deliver(batch(*documents))


def test_deliver_when_values_are_odd_then_the_document_is_taken(receiver: SolrReceiver) -> None:
    odd = {
        "content": "a\x00b\ud800c\uffff " + "long" * 20_000,
        "url": "http://example.com/" + "é" * 40_000,
        "title": "t" * 100_000,
        "last_modified": datetime(9999, 12, 31, tzinfo=UTC),
        "first_seen": datetime(1, 1, 1, tzinfo=UTC),
        "size_l": math.nan,
        "description": "",
        "groups": [],
        "content_txt_en": "words",
        "title_txt_it": "parole",
        "content_txt_ja": "日本語",
    }

    receipts = receiver.deliver(batch(document("site:0!a/b c", **odd)))
    receiver.commit()

    assert receipts == [Receipt("site:0!a/b c", True)]
    assert found(receiver, "abc") == {"site:0!a/b c"}


def test_deliver_when_a_batch_is_repeated_then_nothing_changes(receiver: SolrReceiver) -> None:
    same = batch(document("a", checksum="1"), document("b", checksum="2"), removed=("c",))

    receipts = [receiver.deliver(same), receiver.deliver(same)]
    receiver.commit()

    assert receipts[0] == receipts[1]
    assert [(entry.id, entry.crawl_version, entry.checksum) for entry in receiver.scan(None)] == [
        ("a", 1, "1"),
        ("b", 1, "2"),
    ]


def test_deliver_when_a_document_is_late_then_the_newer_one_stays(receiver: SolrReceiver) -> None:
    receiver.deliver(batch(document("a", content="newer"), version=6))
    late = receiver.deliver(batch(document("a", content="older"), version=5))
    receiver.commit()

    assert late == [Receipt("a", True)]
    assert (found(receiver, "newer"), found(receiver, "older")) == ({"a"}, set())


def test_deliver_when_a_removal_is_late_then_the_newer_document_stays(receiver: SolrReceiver) -> None:
    receiver.deliver(batch(document("a", content="newer"), version=6))
    late = receiver.deliver(batch(version=5, removed=("a",)))
    receiver.commit()

    assert late == [Receipt("a", True)]
    assert found(receiver, "newer") == {"a"}


def test_deliver_when_a_document_comes_after_its_removal_then_it_stays_removed_until_newer(
    receiver: SolrReceiver,
) -> None:
    receiver.deliver(batch(document("a", content="word"), version=5))
    receiver.deliver(batch(version=6, removed=("a", "never-seen")))
    receiver.deliver(batch(document("a", content="word"), version=5))
    receiver.deliver(batch(document("never-seen", content="word"), version=5))
    receiver.commit()
    removed = found(receiver, "*")

    receiver.deliver(batch(document("a", content="word"), version=7))
    receiver.commit()

    assert (removed, found(receiver, "*")) == (set(), {"a"})


def test_purge_when_there_are_tombstones_then_they_are_gone_for_good(receiver: SolrReceiver, solr_core: str) -> None:
    put(receiver, *(document(f"d{number}", content="word") for number in range(200)))
    receiver.deliver(batch(version=2, removed=("d1", "d2", "d3")))
    receiver.commit()

    purged = receiver.purge()

    index = answer(solr_core, "admin/luke?numTerms=0&wt=json")["index"]
    assert purged == 3
    assert (index["numDocs"], index["maxDoc"]) == (197, 197)
    assert receiver.purge() == 0


def test_scan_when_there_are_thousands_then_each_comes_once_by_id_and_without_tombstones(
    receiver: SolrReceiver,
) -> None:
    names = sorted(f"d{number}" for number in range(2500))
    put(receiver, *(document(name, checksum=f"c{name}") for name in names), IndexedDocument(id="x"))
    receiver.deliver(batch(version=2, removed=("d7",)))
    receiver.commit()

    entries = list(receiver.scan("site"))

    assert [entry.id for entry in entries] == [name for name in names if name != "d7"]
    assert entries[0] == ("d0", 1, "cd0", "http://example.com/d0")
    assert [entry.id for entry in receiver.scan(None)][-1] == "x"


def test_ping_when_the_core_fits_then_returns_and_all_promised_fields_are_there(
    receiver: SolrReceiver, solr_core: str
) -> None:
    receiver.ping()

    fields = answer(solr_core, "schema/fields?wt=json")["fields"]
    assert {entry["name"] for entry in fields} >= REQUIRED_FIELDS
    assert [entry["name"] for entry in fields if entry.get("required")] == ["id"]
    assert isinstance(receiver, SearchIndex)


def test_ping_when_the_core_is_missing_then_misconfigured_and_names_the_url(solr_server: RunningSolr) -> None:
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


def test_deliver_when_solr_is_killed_after_the_receipts_then_all_is_there_after_its_restart(
    receiver: SolrReceiver, solr_server: RunningSolr
) -> None:
    receipts = [
        *receiver.deliver(batch(*(document(f"d{number}", content=f"word {number} " * 300) for number in range(1000)))),
        *receiver.deliver(batch(version=2, removed=("d0",))),
    ]

    solr_server.kill()
    with pytest.raises(IndexUnavailable):
        receiver.deliver(batch(document("d1")))
    solr_server.start()
    # A late one, while the log is read back, does not come before what was acknowledged.
    late = when_up(lambda: receiver.deliver(batch(document("d0"), version=1)))
    when_up(receiver.commit)

    assert all(receipt.accepted for receipt in [*receipts, *late])
    assert len(list(receiver.scan("site"))) == 999


def test_deliver_when_solr_is_killed_in_the_middle_then_sending_again_makes_it_whole(
    receiver: SolrReceiver, solr_server: RunningSolr
) -> None:
    whole = batch(*(document(f"d{number}", content=f"word {number} " * 300) for number in range(1500)))
    killer = threading.Timer(0.3, solr_server.kill)
    killer.start()
    with pytest.raises(IndexUnavailable):
        deliver_for_ever(receiver, whole)
    killer.join()
    solr_server.start()

    receipts = when_up(lambda: receiver.deliver(whole))
    when_up(receiver.commit)

    assert all(receipt.accepted for receipt in receipts)
    assert len(list(receiver.scan("site"))) == 1500


def deliver_for_ever(receiver: SolrReceiver, whole: Batch) -> None:
    while True:
        receiver.deliver(whole)


def test_deliver_when_solr_hangs_then_unavailable_and_the_same_batch_goes_in_once(
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
