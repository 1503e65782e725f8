"""The order of the components, which is written in one place."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest
from scrapy import signals
from scrapy.exceptions import DropItem
from scrapy.utils.misc import load_object
from scrapy.utils.test import get_crawler

from searchcrawl.addon import COMPONENTS
from searchcrawl.exceptions import ConfigurationError
from searchcrawl.items import Document, Outcome, VisitEnds
from searchcrawl.spiders.stage_manager import StageManager
from tests.factories import claim, document


@pytest.mark.parametrize("name", COMPONENTS)
def test_components_when_listed_then_in_the_order_in_which_they_run(name: str) -> None:
    numbers = [number for _, number in COMPONENTS[name]]

    assert numbers == sorted(set(numbers))


def test_item_pipelines_when_listed_then_read_decide_and_digest_before_the_writer() -> None:
    assert [load_object(component).__name__ for component, _ in COMPONENTS["ITEM_PIPELINES"]] == [
        "BrowserPipeline",
        "FetchedFilterPipeline",
        "BodyDigestPipeline",
        "KnownTextPipeline",
        "ConvertPipeline",
        "PlaceholderPagePipeline",
        "FieldsPipeline",
        "PageFilterPipeline",
        "FieldsDigestPipeline",
        "CachePipeline",
        "MembersPipeline",
        "HandOverPipeline",
    ]


class Later:
    """A pipeline that answers later, and notes what it was given."""

    async def process_item(self, item: object) -> object:
        await asyncio.sleep(0)
        return replace(item, code=404) if isinstance(item, Outcome) else item


class Dropping:
    """A pipeline that says no."""

    def process_item(self, item: object) -> object:
        raise DropItem("no")


def test_stage_manager_when_stages_answer_later_or_drop_then_as_with_scrapys_manager(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for kind in (Later, Dropping):
        monkeypatch.setattr(kind, "__module__", "searchcrawl.mine")
    item = Outcome(claim=claim(1), code=200)

    found = asyncio.run(StageManager(Later(), crawler=get_crawler()).process_item_async(item))

    assert isinstance(found, Outcome)
    assert found.code == 404
    with pytest.raises(DropItem):
        asyncio.run(StageManager(Dropping(), crawler=get_crawler()).process_item_async(item))


class Ending:
    """A pipeline that ends the visit of a document."""

    def process_document(self, item: Document) -> Outcome:
        return Outcome(claim=item.claim, code=404)


class Reading:
    """A pipeline that must not be asked about the end of a visit."""

    def process_document(self, item: Document) -> Document:
        raise AssertionError(item)


def test_stage_manager_when_a_visit_ends_without_a_document_then_it_passes_no_stage_that_reads_documents(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for kind in (Ending, Reading):
        monkeypatch.setattr(kind, "__module__", "searchcrawl.mine")
    stages = StageManager(Ending(), Reading(), crawler=get_crawler())

    for item in (Outcome(claim=claim(1), code=304), document(claim=claim(1))):
        assert isinstance(asyncio.run(stages.process_item_async(item)), Outcome)


class Mine:
    """A pipeline of a user."""

    def __init__(self, begin: Callable[[], object], end: Callable[[], object]) -> None:
        self.open_spider, self.close_spider = begin, end


def manage(begin: Callable[[], object], end: Callable[[], object] = int) -> StageManager:
    crawler: Any = get_crawler(settings_dict={"SEARCHCRAWL_STALL_SECONDS": 0.1})
    source = SimpleNamespace(has_document_plugins=False, locate=lambda key: ("sources/demo.toml", key))
    manager = StageManager(crawler=crawler)
    crawler.spider = SimpleNamespace(run=SimpleNamespace(source=source))
    manager._add_middleware(Mine(begin, end))
    return manager


def leave() -> NoReturn:
    sys.exit(0)


async def leave_later() -> None:
    await asyncio.sleep(0)
    raise asyncio.CancelledError("mine")


async def hang() -> None:
    await asyncio.sleep(60)


@pytest.mark.parametrize(
    ("hook", "why"),
    [
        (leave, "SystemExit(0)"),
        (leave_later, "CancelledError('mine')"),
        (hang, "TimeoutError('no answer within 0.1 s')"),
    ],
)
def test_stage_manager_when_a_pipeline_of_a_user_ends_the_process_or_hangs_then_it_cannot_begin_and_a_run_ends_well(
    hook: Callable[[], object], why: str, caplog: pytest.LogCaptureFixture
) -> None:
    name = f"{Mine.__module__}.Mine"

    with pytest.raises(ConfigurationError) as caught:
        asyncio.run(manage(hook).open_spider_async())
    asyncio.run(manage(int, hook).close_spider_async())

    assert str(caught.value) == f"sources/demo.toml: settings.ITEM_PIPELINES: {name} cannot begin: {why}"
    warned = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert warned == [f"pipeline {name} failed to close: {why}"]


class Failing:
    """A stage that fails at one visit, and notes the others."""

    __module__ = "searchcrawl.tests"

    def __init__(self) -> None:
        self.seen: list[int] = []

    def process_item(self, item: Outcome) -> object:
        if item.claim.url_id == 2:
            raise ValueError("broken")
        self.seen.append(item.claim.url_id)
        return item


def test_stages_when_one_of_several_visits_fails_then_it_is_reported_and_the_others_go_on() -> None:
    stage, crawler, failed = Failing(), get_crawler(), list[int]()

    def note(item: Outcome, failure: object) -> None:
        failed.append(item.claim.url_id)

    crawler.signals.connect(note, signal=signals.item_error)
    ends = VisitEnds([Outcome(claim=claim(number), code=200) for number in (1, 2, 3)])

    asyncio.run(StageManager(stage, crawler=crawler).process_item_async(ends))

    assert (stage.seen, failed) == ([1, 3], [2])
