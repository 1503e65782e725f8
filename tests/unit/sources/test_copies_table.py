"""The [copies] table: what a copy is, and what becomes of near copies (F2, F6)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from searchcrawl.exceptions import ConfigurationError
from searchcrawl.sources.config import Source
from searchcrawl.sources.fingerprint import find_effect
from searchcrawl.sources.loading import load_project, load_source
from tests.site.client import write_project


def loaded(folder: Path, **copies: Any) -> Source:
    write_project(folder, 80, copies=copies)
    return load_source(load_project(folder), "demo")


@pytest.mark.parametrize("copies", [{}, {"scope": "off"}, {"scope": "collection"}, {"near": "off"}, {"near": "remove"}])
def test_copies_when_they_are_right_then_they_are_taken(tmp_path: Path, copies: dict[str, Any]) -> None:
    assert loaded(tmp_path, **copies).copies.model_dump(mode="json", exclude_defaults=True) == copies


@pytest.mark.parametrize(
    ("copies", "message"),
    [
        ({"scope": "host"}, 'copies.scope: must be "source", "collection" or "off" (got "host")'),
        ({"scope": True}, "copies.scope: must be a string (got true)"),
        ({"near": "on"}, 'copies.near: must be "group", "remove" or "off" (got "on")'),
        ({"near": "remove", "scope": "off"}, 'copies.near: not with scope = "off" (got "remove")'),
        ({"nears": "off"}, "copies.nears: unknown key (did you mean near?)"),
    ],
)
def test_copies_when_something_is_wrong_then_file_key_and_value_are_named(
    tmp_path: Path, copies: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigurationError) as raised:
        loaded(tmp_path, **copies)

    assert str(raised.value) == f"sources/demo.toml: {message}"


def test_copies_when_they_are_edited_then_nothing_is_fetched_and_texts_are_read_where_their_digests_are_needed() -> (
    None
):
    effects = [find_effect([key]) for key in ("copies.scope", "copies.near")]

    assert [(effect.reading, effect.answers, effect.links, effect.refusals) for effect in effects] == [
        (True, False, False, False),
        (False, False, False, False),
    ]
