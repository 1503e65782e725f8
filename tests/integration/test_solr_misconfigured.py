"""What answers in place of Solr: delivering stops with one line that names the key to mend (X-D13, X-I6)."""

from __future__ import annotations

import ssl
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import orjson
import pytest

from searchcrawl.exceptions import IndexMisconfigured
from searchcrawl.index.receiver import Receipt, SearchQuery
from searchcrawl.index.solr.receiver import SolrReceiver
from tests import scripted_solr as scripts
from tests.certificates import write_certificate
from tests.hostile_server import HostileServer
from tests.scripted_solr import ScriptedSolr, Step, small_batch


def test_i6_deliver_when_https_is_spoken_to_a_server_without_then_misconfigured(scripted_solr: ScriptedSolr) -> None:
    receiver = SolrReceiver(scripted_solr.core_url.replace("http:", "https:"), timeout_seconds=5)

    with pytest.raises(IndexMisconfigured, match=r"searchcrawl\.toml: index\.url: .*does not speak HTTPS"):
        receiver.deliver(small_batch("a"))


def test_i6_deliver_when_the_certificate_is_not_trusted_then_misconfigured(tls_url: str) -> None:
    receiver = SolrReceiver(tls_url, timeout_seconds=5)

    with pytest.raises(IndexMisconfigured, match=r"searchcrawl\.toml: index\.url: .*certificate is refused"):
        receiver.deliver(small_batch("a"))


@pytest.fixture
def tls_url(tmp_path: Path) -> Iterator[str]:
    """A core behind a certificate that nobody signed."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(write_certificate(tmp_path))
    with HostileServer(tls=context) as server:
        yield f"https://127.0.0.1:{server.port}/solr/pages"


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (scripts.status(200), "not Solr's: <html>Sorry</html>"),
        (scripts.status(200, b'{"ok": true}'), "not Solr's"),
        (scripts.status(200, b"[1, 2]"), "not Solr's"),
        (scripts.status(200, b'{"responseHeader":{"status":0,"errors":["a"]}}'), "not Solr's"),
        (scripts.status(200, b'{"responseHeader":{"status":0,"errors":{"id":1}}}'), "not Solr's"),
        (scripts.status(200, b" " * 200_000), "longer than 100000 bytes"),
        (scripts.endless, "longer than 100000 bytes"),
        (scripts.bomb, "longer than 100000 bytes"),
        (scripts.status(302, b"", Location="http://127.0.0.1:1/login"), "redirect"),
        (scripts.status(307, b"", Location="/elsewhere"), "redirect"),
        (scripts.status(401), "asks for a login"),
        (scripts.status(403), "forbidden"),
        (scripts.status(404), "no such core"),
        (scripts.status(405), "no such core"),
        (scripts.status(415), "HTTP 415"),
    ],
)
def test_i6_deliver_when_this_is_no_index_then_misconfigured_and_asked_once(
    scripted_solr: ScriptedSolr, step: Step, words: str
) -> None:
    scripted_solr.script = [step]

    with pytest.raises(IndexMisconfigured, match=rf"^searchcrawl\.toml: index\.url: .*{words}"):
        scripted_solr.receiver.deliver(small_batch("a", "b"))

    assert len(scripted_solr.received) == 1


@pytest.mark.parametrize(
    "ask",
    [
        lambda receiver: list(receiver.scan("acme")),
        lambda receiver: receiver.search(SearchQuery(words="word")),
    ],
    ids=["scan", "search"],
)
def test_i6_ask_when_the_core_has_another_schema_then_misconfigured(
    scripted_solr: ScriptedSolr, ask: Callable[[SolrReceiver], object]
) -> None:
    reason = "Cursor functionality requires a sort containing a uniqueKey field tie breaker"
    refused = scripts.status(400, orjson.dumps({"responseHeader": {"status": 400}, "error": {"msg": reason}}))
    scripted_solr.script = [refused] * 9

    with pytest.raises(IndexMisconfigured, match=rf"^searchcrawl\.toml: index\.url: .*{reason}"):
        ask(scripted_solr.receiver)


def test_i6_deliver_when_the_answer_is_a_bomb_then_little_memory_is_taken(scripted_solr: ScriptedSolr) -> None:
    scripted_solr.script = [scripts.status(404)]
    with pytest.raises(IndexMisconfigured):
        scripted_solr.receiver.deliver(small_batch("a"))
    scripted_solr.script = [scripts.bomb]

    tracemalloc.start()
    try:
        with pytest.raises(IndexMisconfigured):
            scripted_solr.receiver.deliver(small_batch("a"))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < 20_000_000


def test_deliver_when_the_answer_is_compressed_then_it_is_read(scripted_solr: ScriptedSolr) -> None:
    scripted_solr.script = [scripts.zipped]

    assert scripted_solr.receiver.deliver(small_batch("a")) == [Receipt("a", True)]
