"""The list of what is forgotten, looked at before each request."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from searchcrawl.http import boundary_middleware
from searchcrawl.http.boundary_middleware import ForgottenWatch
from searchcrawl.rules.boundary import Boundary
from searchcrawl.sources.config import Source
from searchcrawl.sources.forgotten_list import add_lines
from searchcrawl.sources.loading import load_project, load_source

PAGE = "http://a.test/page"


@pytest.fixture
def source(tmp_path: Path) -> Source:
    (tmp_path / "sources").mkdir()
    (tmp_path / "searchcrawl.toml").write_text('contact = "a@acme.test"\n')
    (tmp_path / "sources" / "a.toml").write_text(
        '[start]\nurls = ["http://a.test/"]\n[scope]\ninclude_hosts = ["a.test"]\n'
    )
    return load_source(load_project(tmp_path), "a")


def test_look_when_lines_come_and_go_then_the_boundary_follows(tmp_path: Path, source: Source) -> None:
    boundary = Boundary(include_hosts=["a.test"])
    watch = ForgottenWatch(tmp_path, source, boundary)
    seen = []
    for change in (lambda: None, lambda: add_lines(tmp_path, [PAGE]), (tmp_path / "forgotten.txt").unlink):
        change()
        watch.look()
        seen.append(boundary.decide(PAGE).allowed)

    assert seen == [True, False, True]


def test_look_when_the_file_is_the_same_then_its_lines_are_not_compared_again(
    tmp_path: Path, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared = []

    class Lines(tuple[str, ...]):
        __slots__ = ()

        def __ne__(self, other: object) -> bool:
            compared.append(other)
            return tuple(self) != other

    lines = Lines([PAGE])
    monkeypatch.setattr(boundary_middleware, "read_list", lambda root: lines)
    boundary: Any = SimpleNamespace(replace_forgotten=lambda forgotten: None)
    watch = ForgottenWatch(tmp_path, source, boundary)
    for _ in range(3):
        watch.look()

    assert len(compared) == 1
