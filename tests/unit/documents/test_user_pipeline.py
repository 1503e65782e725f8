"""What plug-ins see and change of a document, what they must not, and when a run ends because they fail (K4, X-S11)."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from scrapy.exceptions import DropItem

from searchcrawl import plugins
from searchcrawl.codes import Code
from searchcrawl.documents import shown_document
from searchcrawl.documents.shown_document import show, take_over
from searchcrawl.documents.user_pipeline import PipelineStep, PluginErrors, ServiceStep, UserPipeline
from searchcrawl.items import Document, Link, Outcome, Page
from searchcrawl.run import Shutdown
from searchcrawl.sources.source_settings import PluginLimits, parse_limits
from searchcrawl.testing import read
from tests.factories import claim, document

FOUND = (("meta:price", ("1", "2")), ("jsonld:sku", ("7",)))


def read_document(**changes: Any) -> Document:
    page = Page(title="Title", text="Text", links=(Link("http://a.test/b"),), found=FOUND)
    made = document(claim=claim(1))
    return replace(made, page=page, headers=((b"X-A", b"1"), (b"x-a", b"2")), **changes)


def applied(item: Document, *steps: Any, **limits: Any) -> tuple[Any, Shutdown, Counter[str]]:
    """What becomes of a document, the end of the run, and the statistics."""
    shutdown, counts = Shutdown(), Counter[str]()
    ended: list[str] = []
    shutdown.open(ended.append)
    errors = PluginErrors(shutdown, PluginLimits(20, 5), count=lambda name: counts.update([name]))
    found: Any = UserPipeline(steps, errors, seconds=0.2).process_document(item)
    return asyncio.run(found), shutdown, counts


def test_document_when_shown_then_has_what_was_read_and_its_own_values() -> None:
    item = read_document()
    assert item.page is not None

    shown = show(item, item.page)

    assert (shown.url, shown.title, shown.text, shown.links) == (item.claim.url, "Title", "Text", ("http://a.test/b",))
    assert (shown.headers, shown.values) == ({"x-a": "2"}, {"price": ["1", "2"]})
    assert take_over(item, item.page, shown).page == item.page


def test_document_when_changed_then_the_next_plugin_sees_it_and_what_is_not_shown_stays() -> None:
    def shout(shown: plugins.Document) -> plugins.Document:
        shown.title = shown.title.upper() + "\ud800"
        shown.values = {"Price": ["3"], "colour": "red"}  # type: ignore[dict-item]  # one text is a list of one
        return shown

    async def ask(shown: plugins.Document) -> plugins.Document:
        assert (shown.title, shown.values) == ("TITLE?", {"price": ["3"], "colour": ["red"]})
        return shown

    found, _, counts = applied(read_document(), PipelineStep("mine.Shout", shout), PipelineStep("mine.Ask", ask))

    assert found.page.title == "TITLE?"
    assert found.page.found == (("meta:price", ("3",)), ("meta:colour", ("red",)), ("jsonld:sku", ("7",)))
    assert counts == {}


def test_document_when_a_plugin_sets_a_text_over_the_limit_then_fails_with_904(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shown_document, "MAX_CHARACTERS", 10)
    step = PipelineStep("mine.P", lambda shown: set_on(shown, text="x" * 11))

    found, _, counts = applied(read_document(), step)

    assert found.code == Code.CONVERSION_LIMIT
    assert "mine.P" in found.error
    assert "over 10 characters" in found.error
    assert counts == {"searchcrawl/plugin_errors/pipeline mine.P": 1}


def test_document_when_a_plugin_sets_long_values_then_they_are_cut() -> None:
    long = "x" * 20_000
    item = replace(read_document(), page=Page(found=(("meta:own", (long,)),)))
    step = PipelineStep("mine.P", lambda shown: set_on(shown, title=long, values={**shown.values, "price": [long]}))

    found, _, _ = applied(item, step)

    assert found.page.title == "x" * 8_192
    assert dict(found.page.found) == {"meta:own": (long,), "meta:price": ("x" * 8_192,)}


def test_document_when_a_plugin_sets_lines_and_a_language_then_they_are_written_as_those_of_pages() -> None:
    changes = {"title": " One\n  title\0 ", "author": "Ada\tL.", "language": "en_GB", "text": "two\n lines"}

    found, _, _ = applied(read_document(), PipelineStep("mine.P", lambda shown: set_on(shown, **changes)))

    assert (found.page.title, found.page.author) == ("One title", "Ada L.")
    assert (found.page.language, found.page.text) == ("en-gb", "two\n lines")


def drop(shown: plugins.Document) -> plugins.Document:
    raise DropItem("no\nthanks")


class Service:
    def process(self, document: plugins.Document) -> plugins.Document | None:
        return None


class SlowService:
    async def process(self, document: plugins.Document) -> plugins.Document | None:
        await asyncio.sleep(0)
        return set_on(document, title="of the service") if document.title else None


def test_document_when_a_service_waits_for_something_then_it_has_what_that_gives() -> None:
    named, _, _ = applied(read_document(), ServiceStep("mine:Slow", SlowService()))
    left_out, _, _ = applied(
        read_document(),
        PipelineStep("mine.Bare", lambda shown: set_on(shown, title="")),
        ServiceStep("mine:Slow", SlowService()),
    )

    assert (named.page and named.page.title, left_out.refusal) == ("of the service", "document_service: mine:Slow")


def test_document_when_dropped_then_is_refused_with_the_name_and_no_further_plugin_is_asked() -> None:
    asked: list[str] = []
    last = PipelineStep("mine.Last", lambda shown: asked.append(shown.url))

    dropped, _, _ = applied(read_document(), PipelineStep("mine.Drop", drop), last)
    left_out, _, _ = applied(read_document(), ServiceStep("mine:Service", Service()), last)

    assert dropped.refusal == "settings.ITEM_PIPELINES: mine.Drop: no thanks"
    assert left_out.refusal == "document_service: mine:Service"
    assert asked == []


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda shown: None, "TypeError: returned None, not the document"),
        (lambda shown: {"title": 1}, "TypeError: returned a dict, not the document"),
        (lambda shown: set_on(shown, title=None), "TypeError: title must be a string (got NoneType)"),
        (lambda shown: set_on(shown, url="http://b.test/"), "ValueError: url cannot be changed"),
        (lambda shown: set_on(shown, body=b"other"), "ValueError: body cannot be changed"),
        (lambda shown: set_on(shown, values={"a": [1]}), "TypeError: values['a'] must be a list of strings"),
        (lambda shown: set_on(shown, values={"a": None}), "TypeError: values['a'] must be a list of strings"),
        (lambda shown: set_on(shown, values=None), "TypeError: values must be a mapping (got NoneType)"),
        (lambda shown: set_on(shown, values=["a"]), "TypeError: values must be a mapping (got list)"),
        (
            lambda shown: set_on(shown, language="High Valyrian " * 9),
            'ValueError: language must be a tag as "de" or "en-gb" (got \'High Valyrian High Valyrian High Valyria\')',
        ),
        (
            lambda shown: set_on(shown, language="de-"),
            'ValueError: language must be a tag as "de" or "en-gb" (got \'de-\')',
        ),
        (lambda shown: 1 / 0, "ZeroDivisionError: division by zero"),
        (lambda shown: sys.exit(3), "SystemExit: 3"),
        (lambda shown: cancelled(), "CancelledError:"),
        (lambda shown: throw(GeneratorExit("of mine")), "GeneratorExit: of mine"),
        (lambda shown: panic(), "PanicException: index out of bounds"),
        (lambda shown: throw(Unreadable()), "Unreadable: <Unreadable without a text: ZeroDivisionError>"),
        (lambda shown: asyncio.sleep(60), "TimeoutError: no answer within 0.2 s"),
        (lambda shown: timed_out(), "TimeoutError: of its own"),
    ],
)
def test_document_when_a_plugin_fails_at_it_then_its_visit_ends_with_one_line(
    change: Any, error: str, caplog: pytest.LogCaptureFixture
) -> None:
    found, _, counts = applied(read_document(), PipelineStep("mine.P", change))

    assert isinstance(found, Outcome)
    assert (found.code, found.error) == (903, f"pipeline mine.P: {error}")
    assert counts == {"searchcrawl/plugin_errors/pipeline mine.P": 1}
    # Those of asyncio are shown where a test before asked for them.
    warned = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert [record.getMessage() for record in warned] == [f"{found.error} ({found.claim.url})"]


class PanicException(BaseException):
    """As an extension module in Rust raises it."""


class Unreadable(Exception):
    def __str__(self) -> str:
        raise ZeroDivisionError

    __repr__ = __str__


def throw(error: BaseException) -> plugins.Document:
    raise error


async def panic() -> None:
    await asyncio.sleep(0)
    raise PanicException("index out of bounds")


async def cancelled() -> None:
    raise asyncio.CancelledError


async def timed_out() -> None:
    raise TimeoutError("of its own")


def test_document_when_it_is_interrupted_or_the_loop_is_gone_then_no_plugin_is_blamed() -> None:
    with pytest.raises(KeyboardInterrupt):
        applied(read_document(), PipelineStep("mine.P", lambda shown: throw(KeyboardInterrupt())))

    counts = Counter[str]()
    errors = PluginErrors(Shutdown(), PluginLimits(0, 0), count=lambda name: counts.update([name]))
    answers: list[Any] = []

    async def begin() -> None:
        step = PipelineStep("mine.P", lambda shown: asyncio.sleep(60))
        found: Any = UserPipeline([step], errors).process_document(read_document())
        answers.append(found)
        found.send(None)

    asyncio.run(begin())
    answers[0].close()

    assert counts == {}


def test_document_when_the_reason_of_a_drop_cannot_be_read_then_it_is_refused_nevertheless() -> None:
    class Unsaid(Unreadable, DropItem):
        pass

    found, _, _ = applied(read_document(), PipelineStep("mine.P", lambda shown: throw(Unsaid("no"))))

    assert found.refusal == "settings.ITEM_PIPELINES: mine.P: <Unsaid without a text: ZeroDivisionError>"


def set_on(shown: plugins.Document, **changes: Any) -> plugins.Document:
    for name, value in changes.items():
        setattr(shown, name, value)
    return shown


def test_stage_when_nothing_was_read_or_it_is_refused_then_no_plugin_is_asked() -> None:
    step = PipelineStep("mine.P", lambda shown: 1 / 0)
    unread = replace(document(claim=claim(1)), page=None)

    refused, _, _ = applied(read_document(refusal="keep.max_bytes: 1"), step)

    assert refused.refusal == "keep.max_bytes: 1"
    errors = PluginErrors(Shutdown(), PluginLimits(1, 0), count=lambda name: None)
    assert UserPipeline([step], errors).process_document(unread) is unread


@pytest.mark.parametrize(
    ("limits", "outcomes", "ends_after"),
    [
        (PluginLimits(3, 0), "gbbgbbb", 7),
        (PluginLimits(3, 50), "gbgbgbgbbg", 9),
        (PluginLimits(0, 50), "gb" * 4 + "b", 9),
        (PluginLimits(0, 0), "b" * 50, None),
        (PluginLimits(20, 5), "b" * 19 + "g" + "b", 22),
    ],
)
def test_run_when_a_plugin_fails_again_and_again_then_it_ends_once(
    limits: PluginLimits, outcomes: str, ends_after: int | None, caplog: pytest.LogCaptureFixture
) -> None:
    shutdown, ended = Shutdown(), list[int]()
    done = 0
    shutdown.open(lambda reason: ended.append(done))
    errors = PluginErrors(shutdown, limits, count=lambda name: None)

    for outcome in outcomes + outcomes[-1]:
        done += 1
        if outcome == "g":
            errors.note_good("pipeline mine.P")
        else:
            errors.note_error("pipeline mine.P", read_document().claim, ValueError("no"), redirects=())

    assert ended == ([] if ends_after is None else [ends_after])
    # One line each for the first twenty, and one for the end.
    assert len([r for r in caplog.records if r.levelno == logging.WARNING]) <= 20


@pytest.mark.parametrize(("value", "limits"), [([20, 5], (20, 5)), ("7, 2.5", (7, 2.5)), ((0, 0), (0, 0))])
def test_limits_when_written_as_list_or_text_then_are_read(value: Any, limits: tuple[float, float]) -> None:
    assert parse_limits(value) == limits


@pytest.mark.parametrize("value", ["20", [20], [20, 5, 1], [-1, 5], [1, 101], [True, 5], ["a", 5], 20, None, {}])
def test_limits_when_they_are_none_then_the_message_says_what_is_wanted(value: Any) -> None:
    with pytest.raises(ValueError, match=r"must be two numbers: .*, as \[20, 5\]"):
        parse_limits(value)


def test_testing_when_html_is_read_then_the_document_is_that_of_a_crawl() -> None:
    html = '<title>T</title><meta name="Price" content="5"><p>Some text <a href="/b">b</a>'

    shown = read(html, url="http://a.test/x", attribute_origins=["meta:price"])

    assert (shown.title, shown.text, shown.links) == ("T", "Some text b", ("http://a.test/b",))
    assert shown.values == {"price": ["5"]}
