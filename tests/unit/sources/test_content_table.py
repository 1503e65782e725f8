"""The [content] table: what of a page's text is indexed (C8)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from searchcrawl.exceptions import ConfigurationError
from searchcrawl.sources.config import Source
from searchcrawl.sources.fingerprint import compute_fingerprint, find_changed_keys, find_effect
from searchcrawl.sources.loading import load_project, load_source
from tests.site.client import write_project


def loaded(folder: Path, **content: Any) -> Source:
    write_project(folder, 80, content=content)
    return load_source(load_project(folder), "demo")


@pytest.mark.parametrize(
    "content",
    [{}, {"mode": "all"}, {"keep": ["#a > p:not(.b), main", "[data-x='y' i]"], "drop": ["div > .ad"]}],
)
def test_c8_content_when_it_is_right_then_is_taken(tmp_path: Path, content: dict[str, Any]) -> None:
    source = loaded(tmp_path, **content)

    assert source.content.model_dump(mode="json", exclude_defaults=True) == content


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"mode": "most"}, 'content.mode: must be "main" or "all" (got "most")'),
        ({"keep": ["main", "p["]}, 'content.keep: not a CSS selector (got "p[")'),
        ({"drop": ["div::before"]}, 'content.drop: not a CSS selector (got "div::before")'),
        ({"drop": [""]}, 'content.drop: must not be empty (got "")'),
        ({"drop": "nav"}, 'content.drop: must be a list (got "nav")'),
        ({"keeps": ["p"]}, "content.keeps: unknown key (did you mean keep?)"),
    ],
)
def test_c8_content_when_something_is_wrong_then_file_key_and_value_are_named(
    tmp_path: Path, content: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigurationError) as raised:
        loaded(tmp_path, **content)

    assert str(raised.value) == f"sources/demo.toml: {message}"


def test_c8_content_when_it_is_edited_then_texts_are_read_again_and_nothing_is_fetched(tmp_path: Path) -> None:
    before, after = (
        compute_fingerprint(source, versions={})
        for source in (loaded(tmp_path), loaded(tmp_path, mode="all", drop=["nav"]))
    )
    changed = find_changed_keys(before, after)
    effect = find_effect(changed)

    assert changed == ["content.drop", "content.mode"]
    assert effect.reading
    assert effect.admission
    assert not effect.answers
    assert not effect.links
