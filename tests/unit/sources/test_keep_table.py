"""The ``[keep]`` table: what is wrong in it is one line that names file, key and value (B8)."""

from __future__ import annotations

from pathlib import Path

import pytest

from searchcrawl.exceptions import ConfigurationError
from searchcrawl.sources.loading import build_index_filter, load_project, load_source

GOOD = 'start.urls = ["http://a.test/"]\nscope.include_hosts = ["a.test"]\n'


def written(root: Path, text: str) -> Path:
    (root / "sources").mkdir()
    (root / "searchcrawl.toml").write_text('contact = "a@example.org"\n', "utf-8")
    (root / "sources" / "x.toml").write_text(GOOD + "[keep]\n" + text, "utf-8")
    return root


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("min_bytes = -1", "keep.min_bytes: must not be negative (got -1)"),
        ("min_bytes = 9\nmax_bytes = 8", "keep.max_bytes: must not be below min_bytes = 9 (got 8)"),
        ("max_age_days = inf", "keep.max_age_days: must be "),
        ('mime_types = "text/*"', "keep.mime_types: must be a list (got "),
        ('exclude_urls = ["re:("]', "keep.exclude_urls: not an RE2 expression: missing ): ( (got "),
        ('include_names = ["re:("]', "keep.include_names: not an RE2 expression: missing ): ( (got "),
        ('exclude_names = ["re:"]', "keep.exclude_names: must not be empty (got "),
        ('include_names = [" "]', "keep.include_names: must not be empty (got "),
    ],
)
def test_b8_keep_table_when_a_value_is_wrong_then_one_line_says_so(tmp_path: Path, text: str, line: str) -> None:
    root = written(tmp_path, text)

    with pytest.raises(ConfigurationError) as caught:
        load_source(load_project(root), "x")
    assert str(caught.value).startswith(f"sources/x.toml: {line}")


def test_b8_keep_table_when_empty_then_nothing_is_filtered(tmp_path: Path) -> None:
    root = written(tmp_path, "")

    rules = build_index_filter(load_source(load_project(root), "x"))

    assert not rules
    assert rules.meta_robots
