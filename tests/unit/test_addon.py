"""The order of the components, which is written in one place."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from scrapy import signals
from scrapy.exceptions import DropItem
from scrapy.utils.test import get_crawler

from searchcrawl.addon import COMPONENTS
from searchcrawl.items import Outcome, VisitEnds
from searchcrawl.spiders.stage_manager import StageManager
from tests.factories import claim


@pytest.mark.parametrize("name", COMPONENTS)
def test_components_when_listed_then_in_the_order_in_which_they_run(name: str) -> None:
    numbers = [number for _, number in COMPONENTS[name]]

    assert numbers == sorted(set(numbers))


def test_item_pipelines_when_listed_then_read_decide_and_digest_before_the_writer() -> None:
    assert [component.__name__ for component, _ in COMPONENTS["ITEM_PIPELINES"]] == [
        "FetchedFilterPipeline",
        "BodyDigestPipeline",
        "ConvertPipeline",
        "PlaceholderPagePipeline",
        "FieldsPipeline",
        "PageFilterPipeline",
        "FieldsDigestPipeline",
        "CachePipeline",
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
