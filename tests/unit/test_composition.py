"""The stages of a crawl are built in one place, and found by their class."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy.settings import Settings

from searchcrawl import settings as shipped
from searchcrawl.commit.cache_pipeline import CachePipeline
from searchcrawl.composition import compose, compose_dry_run
from searchcrawl.delivery.delivery_extension import DeliveryExtension
from searchcrawl.frontier.frontier import Frontier
from searchcrawl.politeness.dry_run_limiter import DryRunRateLimiter
from searchcrawl.politeness.rate_limiter import RateLimiter, SharedRateLimiter
from searchcrawl.run import Run
from searchcrawl.stages import Stages, stages_of
from tests.filled_store import FilledStore


@pytest.fixture
def filled(tmp_path: Path, store_url: str) -> Iterator[FilledStore]:
    store = FilledStore(tmp_path, store_url)
    yield store
    store.close()


def crawler() -> Any:
    """As much of a crawler as there is before its engine is made."""
    settings = Settings()
    settings.setmodule(shipped, priority="project")
    return SimpleNamespace(settings=settings)


def test_stages_when_a_base_class_is_named_then_are_found_under_it_alone() -> None:
    stages = Stages()
    limiter = stages.add(RateLimiter(), RateLimiter)

    assert stages.get(RateLimiter) is limiter
    assert stages.find(SharedRateLimiter) is None
    with pytest.raises(KeyError):
        stages.get(SharedRateLimiter)


def test_compose_when_a_source_is_crawled_then_all_stages_are_there(filled: FilledStore) -> None:
    spider = SimpleNamespace(stages=compose(crawler(), filled.run))

    stages = stages_of(SimpleNamespace(spider=spider))  # type: ignore[arg-type]  # as much of a crawler as it asks

    assert stages.get(Run) is filled.run
    assert isinstance(stages.get(RateLimiter), SharedRateLimiter)
    assert all(stages.find(kind) is not None for kind in (Frontier, CachePipeline, DeliveryExtension))


def test_compose_when_one_page_is_tried_then_nothing_stores_or_delivers(filled: FilledStore) -> None:
    stages = compose_dry_run(crawler(), filled.run)

    assert isinstance(stages.get(RateLimiter), DryRunRateLimiter)
    assert [stages.find(kind) for kind in (Frontier, CachePipeline, DeliveryExtension)] == [None, None, None]
