"""What a crawl registers of its source for searches (A7)."""

from __future__ import annotations

from pathlib import Path

import pytest

from searchcrawl.sources.effective import Registered, dump_registered, load_registered
from searchcrawl.sources.loading import load_project, load_source

FILE = """
groups = ["press", "all"]
[start]
urls = ["http://a.test/"]
[scope]
allow_all = true
[attributes]
"meta:color" = "color"
"meta:size" = "size"
"meta:lang" = "language"
[attributes.types]
size = "number"
[attributes.values.color]
red = {name = "Red", DE = "Rot", fr = {env = "HIDDEN_NAME"}}
blue = "Blue"
green = {env = "HIDDEN_NAME"}
"""


def test_source_when_registered_then_comes_back_and_no_value_of_the_environment_is_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HIDDEN_NAME", "hidden-text")
    (tmp_path / "sources").mkdir()
    (tmp_path / "searchcrawl.toml").write_text('contact = "me@example.org"\n', "utf-8")
    (tmp_path / "sources" / "a.toml").write_text(FILE, "utf-8")

    text = dump_registered(load_source(load_project(tmp_path), "a"))

    assert load_registered(text) == Registered(
        types={"color": "string", "size": "number"},
        values={"color": {"red": {"name": "Red", "de": "Rot"}, "blue": "Blue"}},
        groups=["all", "press"],
    )
    assert "hidden-text" not in text
