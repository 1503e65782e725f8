"""Folders of projects with names that mean something else elsewhere, or that cannot be read."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from searchcrawl.sources.loading import load_project
from searchcrawl.store.engine.database import Database


@pytest.mark.parametrize("name", ["what?", "is?it=so", "100%", "a%41b", "part#1", "a b+c", "it's @ [here]: 1;2", "größe 日本"])
def test_database_url_when_the_folder_has_characters_of_urls_then_the_store_is_in_it(tmp_path: Path, name: str) -> None:
    root = tmp_path / name
    root.mkdir()
    (root / "searchcrawl.toml").write_text('contact = "a@example.org"\n')
    project = load_project(root)

    with closing(Database(project.database_url, project.root)) as database:
        folder = database.folder

    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert project.has_store
    assert project.stored_paths[0].is_file()
    assert folder == root / "var"
