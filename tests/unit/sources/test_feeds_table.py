"""The [feeds] table: which files may be written, and where (K4)."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from searchcrawl.exceptions import ConfigurationError, InvalidFile
from searchcrawl.sources import receivers
from searchcrawl.sources.config import Source
from searchcrawl.sources.fingerprint import VERSIONS, compute_fingerprint
from searchcrawl.sources.loading import load_project, load_source, load_sources
from searchcrawl.sources.receivers_table import FeedFile, list_files
from tests.site.client import source_toml, write_project

MOMENT = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)


def loaded(folder: Path, project: dict[str, Any] | None = None, **feeds: Any) -> Source:
    write_project(folder, 80, feeds=feeds, project=project)
    return load_source(load_project(folder), "demo")


def find_error(folder: Path, project: dict[str, Any] | None = None, **feeds: Any) -> str:
    with pytest.raises(ConfigurationError) as raised:
        loaded(folder, project, **feeds)
    return str(raised.value)


def test_feeds_when_they_are_right_then_they_are_taken_and_change_no_fingerprint(tmp_path: Path) -> None:
    plain = compute_fingerprint(loaded(tmp_path), versions=VERSIONS)
    feeds = {"a.jsonl": {}, "b": {"format": "csv"}, "%(name)s-%(delta)s%%-%(time)s.parquet": {"delta": True}}

    source = loaded(tmp_path, **feeds)

    assert [feed.format for feed in list_files(source.feeds)] == ["jsonl", "csv", "parquet"]
    assert compute_fingerprint(source, versions=VERSIONS) == plain


@pytest.mark.parametrize(
    ("name", "feed", "message"),
    [
        ("a.xls", {}, "the name must end in .jsonl, .json, .csv, .xml, .parquet, or format says what is written"),
        ("a.xls", {"format": "xls"}, 'format: must be "jsonl", "json", "csv", "xml" or "parquet" (got "xls")'),
        ("a.jsonl", {"deltas": True}, "deltas: unknown key (did you mean delta?)"),
        ("a.jsonl", {"delta": 1}, "delta: must be true or false (got 1)"),
        ("a.jsonl", {"delta": True}, "its name must have %(delta)s, the number of the delta"),
        ("%(time)s.jsonl", {"delta": True}, "its name must have %(delta)s, the number of the delta"),
        ("%(delta)s.jsonl", {}, "%(delta)s is the number of a delta: set delta = true"),
        ("%(batch)s.jsonl", {}, "there are %(name)s, %(time)s, %(delta)s, and %% for a percent sign"),
        ("50%.jsonl", {}, "there are %(name)s, %(time)s, %(delta)s, and %% for a percent sign"),
        ("%(name)s/a.jsonl", {}, "placeholders belong into the name of the file, not of its folder"),
        ("nowhere/a.jsonl", {}, "there is no such folder"),
        ("sources", {"format": "csv"}, "is a place where the crawler keeps its own files"),
        ("sources/demo.toml", {"format": "csv"}, "is a place where the crawler keeps its own files"),
        ("searchcrawl.toml", {"format": "csv"}, "is a place where the crawler keeps its own files"),
        ("var/cache/demo/a.jsonl", {}, "is a place where the crawler keeps its own files"),
        ("var/searchcrawl.db", {"format": "csv"}, "is a place where the crawler keeps its own files"),
        ("out", {"format": "csv"}, "is a folder"),
        ("pipe.csv", {}, "is no file, but a device, a pipe"),
        ("link.csv", {}, "is a place where the crawler keeps its own files"),
        ("out/", {"format": "csv"}, "must be the path of a file"),
    ],
)
def test_feed_when_something_is_wrong_then_file_and_key_are_named(
    tmp_path: Path, name: str, feed: dict[str, Any], message: str
) -> None:
    (tmp_path / "out").mkdir()
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "link.csv").symlink_to("searchcrawl.toml")

    said = find_error(tmp_path, **{name: feed})

    key = json.dumps(name) if set(name) & set("./%") else name
    assert said.startswith(f"sources/demo.toml: feeds.{key}")
    assert message in said


def test_feeds_when_two_are_the_same_file_then_refused(tmp_path: Path) -> None:
    said = find_error(tmp_path, **{"a.jsonl": {}, "./a.jsonl": {}})

    assert said == 'sources/demo.toml: feeds."./a.jsonl": is the file of a.jsonl, too'


def test_feeds_when_the_cache_keeps_nothing_or_a_library_is_missing_then_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forgetful = find_error(tmp_path, {"cache": {"preserve": False}}, **{"a.jsonl": {}})
    monkeypatch.setattr(receivers, "has_library", lambda: False)
    missing = find_error(tmp_path, **{"a.parquet": {}})

    assert forgetful.endswith("cache.preserve must be true: documents are read from the cache")
    assert missing.endswith("parquet needs pyarrow: pip install 'searchcrawl[parquet]'")


def test_feeds_when_two_sources_have_the_same_file_then_both_are_refused(tmp_path: Path) -> None:
    project = {"defaults": {"feeds": {"all.jsonl": {}, "%(name)s.jsonl": {}}}}
    write_project(tmp_path, 80, project=project)
    (tmp_path / "sources" / "other.toml").write_text(source_toml(80), "utf-8")
    sources, errors = load_sources(load_project(tmp_path))

    with pytest.raises(ConfigurationError) as raised:
        load_source(load_project(tmp_path), "demo")

    assert not isinstance(raised.value, InvalidFile)
    assert str(raised.value) == (
        'searchcrawl.toml: defaults.feeds."all.jsonl": is the file of a feed of sources/other.toml, too: '
        "%(name)s in it is the name of the source"
    )
    assert (sources, len(errors)) == ({}, 2)


def test_feeds_when_other_values_are_wrong_then_all_errors_are_named(tmp_path: Path) -> None:
    write_project(tmp_path, 80, feeds={"a.xls": {}, "nowhere/b.csv": {}}, scope={"depth": -1})

    with pytest.raises(InvalidFile) as raised:
        load_source(load_project(tmp_path), "demo")

    assert {error.key for error in raised.value.errors} >= {'feeds."a.xls"', "scope.depth"}


def test_name_when_rendered_then_its_number_is_found_again() -> None:
    feed = FeedFile("out/a.b %(name)s %(delta)s_%(delta)s %(time)s 5%%.csv", "csv", True, "x")
    there = Path(feed.render("demo", MOMENT, 42)).name

    assert there == "a.b demo 000042_000042 2030-01-02T03-04-05Z 5%.csv"
    assert feed.find_number("demo", there) == 42
    assert feed.find_number("other", there) is None
    assert feed.find_number("demo", there.replace(".b", "xb")) is None
    assert FeedFile("%(delta)s.csv", "csv", True, "x").find_number("demo", "12345678.csv") == 12345678
    assert FeedFile("a.csv", "csv", False, "x").find_number("demo", "a.csv") == 0
