"""The receiver of a project, as commands use it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast, get_args

import pytest

from searchcrawl.index import opening
from searchcrawl.index.local.receiver import LocalReceiver
from searchcrawl.sources.project import Index, Project


class Queue:
    """A receiver that cannot be searched, and has nothing to close."""

    def begin(self, source: str, run: int) -> None:
        pass

    def deliver(self, batch: Any) -> list[Any]:
        return []

    def end(self, outcome: str) -> None:
        pass


@pytest.mark.parametrize("kind", get_args(Index.model_fields["type"].annotation))
def test_receiver_when_its_type_may_be_written_then_the_package_of_this_name_has_it(kind: str, tmp_path: Path) -> None:
    index: Any = {"type": kind} | ({"url": "http://127.0.0.1:1/solr/pages"} if kind == "solr" else {})
    project = Project(root=tmp_path, contact="crawl@example.test", index=index)

    assert callable(opening.open_index(project).deliver)


def test_use_index_when_it_can_be_searched_then_closes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[str] = []
    monkeypatch.setattr(LocalReceiver, "close", lambda _: closed.append("closed"))
    monkeypatch.setattr(opening, "open_index", lambda _: LocalReceiver(tmp_path))

    with opening.use_index(cast("Project", None)):
        before = list(closed)

    assert (before, closed) == ([], ["closed"])


def test_use_index_when_a_receiver_only_takes_documents_then_it_can_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "open_index", lambda _: Queue())

    with opening.use_index(cast("Project", None)) as receiver:
        receiver.end("finished")
