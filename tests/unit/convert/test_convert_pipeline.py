"""What becomes of documents on their way to a page: read, passed unread, or ended with a code."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Iterator
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

import pytest
from scrapy.statscollectors import StatsCollector
from scrapy.utils.test import get_crawler

from searchcrawl.codes import Code
from searchcrawl.commit.document_rows import build_record
from searchcrawl.convert import registry
from searchcrawl.convert.conversion_pool import ConversionPool
from searchcrawl.convert.convert_pipeline import ConvertPipeline
from searchcrawl.convert.converter import Converter, RunsIn
from searchcrawl.exceptions import WorkersUnavailable
from searchcrawl.html.context import ConversionContext
from searchcrawl.items import ARCHIVE_ETAG, CANONICAL_ETAG, CachedAnswer, Document, Hop, Outcome, Page, Unread
from searchcrawl.rules.lifecycle import digest_unread
from searchcrawl.run import Shutdown
from tests import factories

CONTEXT = ConversionContext(user_agent="searchcrawl")


def shout(body: bytes, context: ConversionContext) -> Page:
    if body == b"bug":
        raise LookupError(context.url)
    return Page(text=body.decode().upper())


@pytest.fixture(params=list(RunsIn), ids=[place.value for place in RunsIn])
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> RunsIn:
    """A format of its own is known, and runs there."""
    place: RunsIn = request.param
    shouts = Converter(name="shouts", mime_types=("text/x-shout",), convert=shout, choose_place=lambda body: place)
    monkeypatch.setattr(registry, "CONVERTERS", (*registry.CONVERTERS, shouts))
    return place


@pytest.fixture
def stats() -> StatsCollector:
    return StatsCollector(get_crawler())


@pytest.fixture
def pipeline(stats: StatsCollector) -> Iterator[ConvertPipeline]:
    pipeline = ConvertPipeline(stats, CONTEXT)
    yield pipeline
    asyncio.run(pipeline.close_spider())


def process(pipeline: ConvertPipeline, item: Document) -> Any:
    async def process() -> Any:
        found = pipeline.process_document(item)
        return await found if isinstance(found, Awaitable) else found

    return asyncio.run(process())


def unread(body: str, **values: Any) -> Document:
    return replace(factories.document(body), **{"page": None, "mimetype": "text/x-shout", **values})


@pytest.mark.usefixtures("place")
def test_document_when_its_format_has_a_converter_then_gets_its_page(pipeline: ConvertPipeline) -> None:
    document = process(pipeline, unread("words"))

    assert (document.page, document.converter) == (Page(text="WORDS"), "shouts")


@pytest.mark.usefixtures("place")
def test_document_when_a_converter_has_a_bug_then_its_visit_ends_with_903(
    pipeline: ConvertPipeline, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.CRITICAL):
        outcome = process(pipeline, unread("bug"))

    assert (type(outcome), outcome.code) == (Outcome, Code.CONVERSION_FAILED)
    assert "LookupError" in outcome.error


@pytest.mark.parametrize(
    ("mimetype", "body"),
    [("image/png", "\x89PNG"), ("text/plain", "binary \x00\x01\x02" * 50)],
    ids=["no converter", "a lie"],
)
def test_document_when_a_rule_keeps_it_out_then_nothing_has_to_read_it(
    pipeline: ConvertPipeline, mimetype: str, body: str
) -> None:
    rule = f"keep.exclude_mime_types: {mimetype}"
    refused = process(pipeline, unread(body, mimetype=mimetype, refusal=rule))
    wanted = process(pipeline, unread(body, mimetype=mimetype))

    assert (refused.page, refused.refusal) == (Page(), rule)
    assert wanted.code in {Code.NO_CONVERTER, Code.BINARY_AS_TEXT}


def test_document_when_no_worker_can_read_it_then_its_row_is_released_and_the_run_ends(
    stats: StatsCollector, monkeypatch: pytest.MonkeyPatch
) -> None:
    failure = WorkersUnavailable("six were lost")
    shutdown = Shutdown()
    reads = Converter(name="pdf", mime_types=("text/x-shout",), convert=shout, choose_place=lambda body: RunsIn.PROCESS)
    monkeypatch.setattr(registry, "CONVERTERS", (reads,))
    monkeypatch.setattr(ConversionPool, "submit", lambda *_: failed(failure))
    pipeline = ConvertPipeline(stats, CONTEXT, shutdown=shutdown)

    outcome = process(pipeline, unread("words"))

    assert (outcome.released, outcome.stopped_worker) == (True, False)
    assert shutdown.failure is failure


def failed(error: Exception) -> Future[Page]:
    future: Future[Page] = Future()
    future.set_exception(error)
    return future


def test_document_when_nobody_reads_its_format_then_its_visit_ends_with_908(pipeline: ConvertPipeline) -> None:
    outcome = process(pipeline, unread("x", mimetype="image/png", etag='"1"', last_modified="yesterday"))

    assert outcome == Outcome(
        claim=outcome.claim,
        code=Code.NO_CONVERTER,
        error=f"no converter for image/png: {outcome.claim.url}",
        unread=Unread(mimetype="image/png", digest=digest_unread(b"x"), etag='"1"', last_modified="yesterday"),
    )


@pytest.mark.parametrize(
    "values", [{"etag": '"1"', "redirects": (Hop("http://a.test/", 302),)}, {"etag": CANONICAL_ETAG}, {"etag": None}]
)
def test_document_when_nobody_reads_it_and_its_validators_say_nothing_then_its_bytes_are_known(
    pipeline: ConvertPipeline, values: dict[str, Any]
) -> None:
    outcome = process(pipeline, unread("x", mimetype="image/png", **values))

    assert outcome.unread == Unread(mimetype="image/png", digest=digest_unread(b"x"))


def test_document_when_nobody_reads_it_in_an_archive_then_nothing_is_kept_of_it(pipeline: ConvertPipeline) -> None:
    assert process(pipeline, unread("x", mimetype="image/png", etag=f'{ARCHIVE_ETAG}1"')).unread is None


def test_document_when_its_bytes_are_those_of_the_last_visit_then_passes_unread(pipeline: ConvertPipeline) -> None:
    document = unread("x")
    same = replace(document, claim=replace(document.claim, body_digest=document.body_digest))

    assert process(pipeline, same) is same


@pytest.mark.parametrize(("mimetype", "text"), [("text/html", "x"), ("text/plain", "")])
def test_document_when_a_filter_refuses_it_then_is_read_only_where_it_may_have_links(
    pipeline: ConvertPipeline, mimetype: str, text: str
) -> None:
    document = process(pipeline, unread("<p>x", mimetype=mimetype, refusal="keep.max_bytes: max_bytes = 1"))

    assert (document.code, document.page.text) == (200, text)


@pytest.mark.parametrize("changed", ["", "body", "headers"])
def test_document_when_a_component_changed_an_answer_of_the_cache_then_it_is_converted_whole(
    pipeline: ConvertPipeline, monkeypatch: pytest.MonkeyPatch, changed: str
) -> None:
    shouts = Converter(
        name="shouts",
        mime_types=("text/x-shout",),
        convert=shout,
        choose_place=lambda body: RunsIn.REACTOR,
        convert_again=lambda body, context, text: Page(text=text),
    )
    monkeypatch.setattr(pipeline, "_registry", registry.Registry([shouts]))
    document = unread("words")
    cached = CachedAnswer(document.body, document.headers, "known", b"record", "id")
    values = {"": {}, "body": {"body": b"others"}, "headers": {"headers": ((b"X-Other", b"1"),)}}

    document = process(pipeline, replace(document, cached=cached, **values[changed]))

    text = {"": "known", "body": "OTHERS", "headers": "WORDS"}[changed]
    assert document.page == Page(text=text)
    record = build_record(document)
    assert (record.record, record.record_id) == ((b"", "") if changed else (b"record", "id"))
    assert (record.body, record.fields["content"]) == (document.body, text)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, "known"),
        # What a converter of a user may have besides is in no record.
        ({"is_kept": False}, "WORDS"),
        ({"name": "another"}, "WORDS"),
        ({"convert_again": lambda body, context, text: Page(text=f"{text} again")}, "known again"),
        (
            {"convert_again": lambda *_: Page(text="x"), "choose_place": lambda body: RunsIn.THREAD, "is_kept": False},
            "WORDS",
        ),
    ],
)
def test_document_when_its_bytes_were_read_before_then_it_is_converted_only_where_it_must_be(
    stats: StatsCollector, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], text: str
) -> None:
    counted: list[None] = []
    pipeline = ConvertPipeline(stats, CONTEXT, count_known=lambda: counted.append(None))
    given = {"name": "shouts", "choose_place": lambda body: RunsIn.REACTOR, "is_kept": True, **changes}
    shouts = Converter(mime_types=("text/x-shout",), convert=shout, **given)
    monkeypatch.setattr(pipeline, "_registry", registry.Registry([shouts]))
    document = unread("words")
    page = Page(text="known")
    cached = CachedAnswer(document.body, document.headers, "known", b"", "", page=page, converter="shouts")

    document = process(pipeline, replace(document, cached=cached))

    assert document.page == Page(text=text)
    assert len(counted) == (text != "WORDS")


@pytest.mark.parametrize(
    ("body", "shells"),
    [
        ('<body><div id="root"></div><script src="app.js"></script></body>', 1),
        ("<noscript>Enable JavaScript</noscript><p>Loading</p><script>go()</script>", 1),
        ('<div id="root"></div>', 0),
        ("<p>Few words</p><script>count()</script>", 0),
        (f'<p>{"words " * 100}</p><div id="root"></div><script src="app.js"></script>', 0),
    ],
)
def test_page_when_it_is_next_to_empty_without_its_scripts_then_it_is_counted(
    stats: StatsCollector, body: str, shells: int
) -> None:
    counted: list[None] = []
    pipeline = ConvertPipeline(stats, CONTEXT, count_shell=lambda: counted.append(None))

    process(pipeline, unread(body, mimetype="text/html"))

    assert len(counted) == shells
