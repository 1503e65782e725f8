"""What documents of many hosts have in common is found out for all of them at once, and once (C8, C9)."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest

from searchcrawl.delivery.freezing import COMMON_LANGUAGES, freeze
from searchcrawl.items import Place
from searchcrawl.run import Run
from searchcrawl.store.documents import document_queries
from searchcrawl.store.documents.document_queries import SampledDocument
from searchcrawl.store.documents.frozen_table import LANGUAGES
from searchcrawl.store.engine.database import Database
from searchcrawl.store.runs import run_table
from tests.unit.store.support_store import SOURCE

#: More than are written at once; documents of each.
HOSTS: Final = 620
DOCUMENTS: Final = 10


class FakeRun:
    """The parts of a run that freezing needs."""

    source_id = SOURCE

    def __init__(self, database: Database) -> None:
        self.database = database
        self.project = SimpleNamespace(cache=SimpleNamespace(preserve=True))
        self.source = SimpleNamespace(content=SimpleNamespace(language=""))
        self.writes = 0

    def read(self, work: Callable[..., Any], *args: Any, **names: Any) -> Any:
        return self.database.read(work, *args, **names)

    def write(self, work: Callable[..., Any], *args: Any, **names: Any) -> Any:
        self.writes += 1
        return self.database.write(work, *args, **names)

    read_pages: Any = Run.read_pages


class FakeCache:
    """Records that say the language of their host: every third one has none."""

    def __init__(self) -> None:
        self.read: list[Place] = []

    def read_fields(self, place: Place, *, url: str) -> dict[str, Any]:
        self.read.append(place)
        return {"language": language_of(int(url.split("//")[1].partition(".")[0])), "language_guess": None}


def language_of(number: int) -> str:
    return ("en-gb", "de", "")[number % 3]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeRun]:
    places = random.Random(1).sample(range(HOSTS * DOCUMENTS), HOSTS * DOCUMENTS)
    sample = [
        SampledDocument(at, f"http://{at // DOCUMENTS}.test:80/{at}", b"%d" % at, b"%d" % at, 1, places[at], 1, 1)
        for at in range(HOSTS * DOCUMENTS)
    ]
    monkeypatch.setattr(document_queries, "find_sample", lambda *_, **names: sample)
    with closing(Database("sqlite:///store.db", tmp_path)) as database:
        database.write(run_table.find_or_add_source, "demo")
        yield FakeRun(database)


def test_freezing_when_there_are_many_hosts_then_all_are_known_and_the_first_are_named(
    run: FakeRun, caplog: pytest.LogCaptureFixture
) -> None:
    cache: Any = FakeCache()
    caplog.set_level(logging.INFO)

    freeze(run, cache, COMMON_LANGUAGES)  # type: ignore[arg-type]
    writes, records = run.writes, len(cache.read)
    freeze(run, cache, COMMON_LANGUAGES)  # type: ignore[arg-type]

    known = {f"{number}.test:80": language_of(number).partition("-")[0] for number in range(HOSTS)}
    assert run.read(LANGUAGES.load_values, source_id=SOURCE) == {host: said for host, said in known.items() if said}
    assert len(run.read(LANGUAGES.load, source_id=SOURCE)) == HOSTS
    # The first time a transaction for some hundreds of hosts, and one that all were found; then nothing.
    assert (writes, run.writes) == (3, 3)
    assert (records, len(cache.read)) == (HOSTS * DOCUMENTS, HOSTS * DOCUMENTS)
    *named, rest = [record.getMessage() for record in caplog.records]
    assert len(named) == 100
    assert rest == f"languages of {sum(map(bool, known.values())) - 100} more hosts are other ones"


def test_freezing_when_hosts_have_their_records_anywhere_then_those_of_several_are_read_in_the_order_of_the_cache(
    run: FakeRun,
) -> None:
    cache: Any = FakeCache()

    freeze(run, cache, COMMON_LANGUAGES)  # type: ignore[arg-type]

    turns = sum(one > other for one, other in zip(cache.read, cache.read[1:], strict=False))
    assert turns < HOSTS / 10
