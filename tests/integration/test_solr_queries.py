"""Commit, search, scan and ping of a Solr that fails, and addresses that cannot be one (X-D13, X-I1, X-I6–X-I8)."""

from __future__ import annotations

import logging

import orjson
import pytest

from searchcrawl.exceptions import IndexMisconfigured, IndexUnavailable, UnsupportedByIndex
from searchcrawl.index.receiver import Receipt, SearchQuery
from searchcrawl.index.solr.receiver import REQUIRED_FIELDS, SolrReceiver
from tests import scripted_solr as scripts
from tests.scripted_solr import ScriptedSolr, Step, small_batch


def test_all_that_relies_on_versions_or_commits_when_solr_replays_its_log_then_unavailable_and_nothing_is_sent(
    scripted_solr: ScriptedSolr,
) -> None:
    scripted_solr.script = [scripts.good]
    scripted_solr.metrics = b'{"solr.core.scripted":{"TLOG.state":0}}'

    with pytest.raises(IndexUnavailable, match="replaying") as raised:
        scripted_solr.receiver.commit()
    with pytest.raises(IndexUnavailable, match="replaying"):
        scripted_solr.receiver.deliver(small_batch("a"))
    with pytest.raises(IndexUnavailable, match="replaying"):
        list(scripted_solr.receiver.scan(None))

    assert scripted_solr.received == []
    assert raised.value.retry_after_seconds == 1


def test_versions_when_they_are_asked_for_again_at_once_then_solr_is_not_asked_again_whether_it_answers(
    scripted_solr: ScriptedSolr,
) -> None:
    answer = b'{"responseHeader":{"status":0},"status":"OK","response":{"numFound":0,"start":0,"docs":[]}}'
    scripted_solr.script = [scripts.status(200, answer)]

    found = [dict(scripted_solr.receiver.find_versions([f"demo:{number}"])) for number in range(3)]

    asked = [request.path.partition("?")[0].rstrip("/").rpartition("/")[2] for request in scripted_solr.received]
    assert (found, asked) == ([{}, {}, {}], ["ping", "select", "select", "select"])


@pytest.mark.parametrize(
    "metrics",
    [
        b"{}",
        b"null",
        b"[1]",
        b'{"solr.core.scripted":1}',
        b'{"solr.core.scripted":{"TLOG.state":3}}',
        b'{"solr.core.scripted_too":{"TLOG.state":0}}',
        b'{"solr.core.scripted.shard1.replica_n1":{"TLOG.state":1}}',
        b"<html>",
    ],
)
def test_deliver_when_no_replay_is_known_of_then_documents_are_sent(
    scripted_solr: ScriptedSolr, metrics: bytes
) -> None:
    scripted_solr.script = [scripts.good]
    scripted_solr.metrics = metrics

    assert scripted_solr.receiver.deliver(small_batch("a")) == [Receipt("a", True)]


def test_commit_when_the_answer_is_bad_then_raises(scripted_solr: ScriptedSolr) -> None:
    scripted_solr.script = [scripts.status(500), scripts.status(200), scripts.good]

    with pytest.raises(IndexUnavailable):
        scripted_solr.receiver.commit()
    with pytest.raises(IndexMisconfigured):
        scripted_solr.receiver.commit()
    scripted_solr.receiver.commit()

    assert scripted_solr.received[2].body == {"commit": {"openSearcher": True, "waitSearcher": True}}


@pytest.mark.parametrize(
    ("step", "error"),
    [
        (scripts.status(200), IndexMisconfigured),
        (scripts.status(302, b"", Location="/login"), IndexMisconfigured),
        (scripts.status(404), IndexMisconfigured),
        (scripts.status(503), IndexUnavailable),
        (scripts.reset, IndexUnavailable),
        (scripts.drip_body, IndexUnavailable),
    ],
)
def test_search_scan_and_ping_when_solr_is_ill_then_raise_alike(
    scripted_solr: ScriptedSolr, step: Step, error: type[Exception]
) -> None:
    scripted_solr.script = [step]

    with pytest.raises(error):
        scripted_solr.receiver.search(SearchQuery(words="x"))
    with pytest.raises(error):
        list(scripted_solr.receiver.scan(None))
    with pytest.raises(error):
        scripted_solr.receiver.ping()

    assert len(scripted_solr.received) == 3


def test_search_when_solr_takes_no_query_of_this_size_then_the_query_is_refused_and_solr_is_not_ill(
    scripted_solr: ScriptedSolr,
) -> None:
    reason = b"Query contains too many nested clauses; maxClauseCount is set to 1024"
    scripted_solr.script = [
        scripts.good,
        scripts.status(500, b'{"responseHeader":{"status":500},"error":{"msg":"%s","code":500}}' % reason),
    ]

    with pytest.raises(UnsupportedByIndex, match="too many nested clauses"):
        scripted_solr.receiver.search(SearchQuery(words="x"))


def test_ping_when_fields_have_other_types_then_misconfigured_and_names_them(scripted_solr: ScriptedSolr) -> None:
    types = {"crawl_version": "string", "title": "string", "first_seen": "pdate", "id": "string"}
    fields = [{"name": name, "type": types.get(name, "unknown")} for name in REQUIRED_FIELDS]
    classes = {"string": "solr.StrField", "pdate": "solr.DatePointField"}
    kinds = [{"name": name, "class": each} for name, each in classes.items()]
    scripted_solr.script = [
        scripts.good,
        scripts.status(200, orjson.dumps({"responseHeader": {"status": 0}, "fields": fields})),
        scripts.status(200, orjson.dumps({"responseHeader": {"status": 0}, "fieldTypes": kinds})),
    ]

    named = (
        r"fields of ours with other types, crawl_version \(solr.StrField\), title \(solr.StrField\): create the core"
    )
    with pytest.raises(IndexMisconfigured, match=named):
        scripted_solr.receiver.ping()


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (b'[{"name":"id"},{"name":"url"}]', r"/solr/scripted: its schema lacks .*crawl_version.*solr/configset"),
        *((odd, "no core of searchcrawl") for odd in (b"1", b"null", b'["id"]', b'[{"type":"id"}]')),
    ],
)
def test_ping_when_the_schema_is_a_stranger_or_none_then_misconfigured_and_says_what_is_missing(
    scripted_solr: ScriptedSolr, fields: bytes, words: str
) -> None:
    schema = scripts.status(200, b'{"responseHeader":{"status":0},"fields":%s}' % fields)
    scripted_solr.script = [scripts.good, schema]

    with pytest.raises(IndexMisconfigured, match=words):
        scripted_solr.receiver.ping()


@pytest.mark.parametrize(
    "url",
    ["", "solr", "ftp://host/solr/x", "http:///solr/x", "http://host:8983", "http://host:port/solr/x", "http://[::1/x"],
)
def test_receiver_when_the_url_cannot_be_one_then_misconfigured(url: str) -> None:
    with pytest.raises(IndexMisconfigured, match=r"index\.url"):
        SolrReceiver(url)


def test_receiver_when_the_url_has_a_password_then_it_is_sent_and_never_shown(
    scripted_solr: ScriptedSolr, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    receiver = SolrReceiver(scripted_solr.core_url.replace("http://", "http://crawler:canary%21@"), timeout_seconds=1)
    seen: list[str | None] = []

    def answer(exchange: scripts.Exchange, request: scripts.Received) -> None:
        seen.append(exchange.headers.get("Authorization"))
        exchange.send(500, b"{}")

    scripted_solr.script = [answer]
    with pytest.raises(IndexUnavailable) as raised:
        receiver.deliver(small_batch("a"))
    with pytest.raises(IndexUnavailable):
        receiver.search(SearchQuery(words="x"))
    receiver.close()

    assert seen == ["Basic Y3Jhd2xlcjpjYW5hcnkh"] * 2
    assert "canary" not in f"{raised.value} {caplog.text} {receiver.url}"
