"""The stages of a crawl are built in one place, and found by their class."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy.settings import Settings

from searchcrawl import settings as shipped
from searchcrawl.commit.cache_pipeline import CachePipeline
from searchcrawl.composition import compose, compose_dry_run, has_members
from searchcrawl.delivery.delivery_extension import DeliveryExtension
from searchcrawl.frontier.frontier import Frontier
from searchcrawl.politeness.rate_limiter import DryRunRateLimiter, RateLimiter, SharedRateLimiter
from searchcrawl.run import Run
from searchcrawl.sources.loading import load_project, load_source
from searchcrawl.stages import Stages, stages_of
from tests.filled_store import PORT, FilledStore
from tests.site.client import write_project


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


@pytest.mark.parametrize(
    ("tables", "expected"),
    [
        ({"fetch": {"processes": 3}}, True),
        ({}, False),
        ({"fetch": {"processes": 3}, "render": {"mode": "auto"}}, False),
        ({"fetch": {"processes": 3}, "login": {"type": "basic", "username": "me", "password": "secret"}}, False),
    ],
    ids=["several", "one", "renders", "logs in"],
)
def test_members_when_a_source_renders_or_logs_in_then_it_has_none(
    tmp_path: Path, tables: dict[str, Any], expected: bool
) -> None:
    project = load_project(write_project(tmp_path, PORT, **tables))

    assert has_members(load_source(project, "demo")) is expected


def test_compose_when_a_source_logs_in_then_says_that_one_process_crawls_it(
    tmp_path: Path, store_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "searchcrawl")
    source = {"fetch": {"processes": 3}, "login": {"type": "basic", "username": "me", "password": "secret"}}
    filled = FilledStore(tmp_path, store_url, **source)

    compose(crawler(), filled.run)

    filled.close()
    assert "crawled by one process" in caplog.text
