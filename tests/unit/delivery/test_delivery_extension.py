"""The delivery of a run that cannot begin or end: the run fails, and is ended all the same (X-S1)."""

from __future__ import annotations

import asyncio

import pytest
from scrapy import Spider

from searchcrawl.delivery import delivery_extension
from searchcrawl.delivery.delivery_extension import DeliveryExtension, DeliveryThread
from searchcrawl.exceptions import IndexUnavailable, StoreError
from searchcrawl.index.receiver import Batch, Receipt
from tests.filled_store import FilledStore


def ended(filled: FilledStore, reason: str = "finished") -> list[str]:
    """Opens and closes the delivery of a run; what the run is told of its end."""
    told: list[str] = []
    extension = DeliveryExtension(filled.run, at_end=[told.append], retry_seconds=0)

    async def both() -> None:
        await extension.spider_opened(Spider("demo"))
        await extension.spider_closed(Spider("demo"), reason)

    asyncio.run(both())
    return told


@pytest.mark.parametrize(
    ("place", "name"),
    [
        pytest.param(delivery_extension, "open_index", id="the index cannot be opened"),
        pytest.param(DeliveryThread, "finish", id="the delivery cannot end"),
    ],
)
def test_extension_when_it_cannot_begin_or_end_then_the_run_fails_and_is_ended(
    filled: FilledStore, monkeypatch: pytest.MonkeyPatch, place: object, name: str
) -> None:
    error = StoreError("no")

    def refuse(*_: object) -> None:
        raise error

    monkeypatch.setattr(place, name, refuse)

    told = ended(filled)

    assert told == ["finished"]
    assert filled.run.shutdown.failure is error


@pytest.mark.parametrize(
    ("reason", "outcome"), [("finished", "finished"), ("limit", "stopped"), ("shutdown", "stopped")]
)
def test_extension_when_a_crawl_ends_then_its_receiver_hears_how(
    filled: FilledStore, monkeypatch: pytest.MonkeyPatch, reason: str, outcome: str
) -> None:
    heard = listening(monkeypatch)

    ended(filled, reason)

    assert heard == [outcome]


def test_extension_when_documents_wait_then_its_receiver_hears_that_it_failed(
    filled: FilledStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = listening(monkeypatch, error=IndexUnavailable("no"))

    ended(filled, "finished")

    assert heard == ["failed"]
    assert isinstance(filled.run.delivery_failure, IndexUnavailable)
    assert filled.run.shutdown.failure is None


def listening(monkeypatch: pytest.MonkeyPatch, *, error: Exception | None = None) -> list[str]:
    """What the receivers of the project hear at the end of their runs; with an ``error`` they fail before."""
    heard: list[str] = []

    class Listening:
        def begin(self, source: str, run: int) -> None:
            if error is not None:
                raise error

        def deliver(self, batch: Batch) -> list[Receipt]:
            return [Receipt(each.id, accepted=True) for each in [*batch.documents, *batch.removals]]

        def end(self, outcome: str) -> None:
            heard.append(outcome)

    monkeypatch.setattr(delivery_extension, "open_index", lambda _: Listening())
    return heard


def test_extension_when_the_crawl_never_began_then_nothing_is_ended(filled: FilledStore) -> None:
    told: list[str] = []
    extension = DeliveryExtension(filled.run, at_end=[told.append], retry_seconds=0)

    asyncio.run(extension.spider_closed(Spider("demo"), "shutdown"))

    assert told == []
