"""The order of the components, which is written in one place."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from scrapy.exceptions import DropItem
from scrapy.utils.test import get_crawler

from searchcrawl.addon import COMPONENTS, StageManager
from searchcrawl.items import Outcome
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


@pytest.mark.parametrize("module", ["searchcrawl.mine", "mine"])
def test_stage_manager_when_pipelines_answer_later_or_drop_then_as_with_scrapys_manager(
    module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Later, "__module__", module)
    item = Outcome(claim=claim(1), code=200)

    found = asyncio.run(StageManager(Later(), crawler=get_crawler()).process_item_async(item))

    assert isinstance(found, Outcome)
    assert found.code == 404
    with pytest.raises(DropItem):
        asyncio.run(StageManager(Dropping(), crawler=get_crawler()).process_item_async(item))
