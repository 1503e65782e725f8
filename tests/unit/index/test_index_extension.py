"""The delivery of a run that cannot begin or end: the run fails, and is ended all the same (S1)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from scrapy import Spider

from searchcrawl.exceptions import StoreError
from searchcrawl.index import index_extension
from searchcrawl.index.delivery import Delivery
from searchcrawl.index.index_extension import IndexExtension
from tests.answer_store import FilledStore


@pytest.fixture
def filled(tmp_path: Path) -> Iterator[FilledStore]:
    store = FilledStore(tmp_path)
    yield store
    store.close()


def ended(filled: FilledStore) -> list[str]:
    """Opens and closes the delivery of a run; what the run is told of its end."""
    told: list[str] = []
    filled.run.wires.finished.append(told.append)
    extension = IndexExtension(filled.run, patience_seconds=0)

    async def both() -> None:
        await extension.spider_opened(Spider("demo"))
        await extension.spider_closed(Spider("demo"), "finished")

    asyncio.run(both())
    return told


def test_extension_when_the_index_cannot_be_opened_then_the_run_fails_and_is_ended(
    filled: FilledStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = StoreError("no")

    def refuse(_: object) -> None:
        raise error

    monkeypatch.setattr(index_extension, "open_index", refuse)

    told = ended(filled)

    assert told == ["finished"]
    assert filled.run.failure is error


def test_extension_when_the_delivery_cannot_end_then_the_run_fails_and_is_ended(
    filled: FilledStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = StoreError("no")

    def refuse(_: Delivery) -> None:
        raise error

    monkeypatch.setattr(Delivery, "finish", refuse)

    told = ended(filled)

    assert told == ["finished"]
    assert filled.run.failure is error


def test_extension_when_the_crawl_never_began_then_nothing_is_ended(filled: FilledStore) -> None:
    told: list[str] = []
    filled.run.wires.finished.append(told.append)

    asyncio.run(IndexExtension(filled.run, patience_seconds=0).spider_closed(Spider("demo"), "shutdown"))

    assert told == []
