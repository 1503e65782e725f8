"""The digest of what makes stored documents out of date."""

from __future__ import annotations

import re
from typing import Any

import pytest

from searchcrawl.sources.config import Keep, Source, Tables
from searchcrawl.sources.fingerprint import (
    _KEYS,
    _SHOWN,
    compute_fingerprint,
    find_changed_keys,
    find_effect,
    mix_fingerprints,
)
from searchcrawl.sources.source_settings import USER_COMPONENTS
from tests.test_layout import ROOT

VERSIONS = {"html": 1, "checksum": 1}


def source(**tables: Any) -> Source:
    return Source.model_validate({"name": "demo", "path": "sources/demo.toml", **tables})


@pytest.mark.parametrize(
    ("tables", "keys"),
    [
        ({"scope": {"depth": 3}}, ["scope.depth"]),
        ({"scope": {"host": [{"host": "a.example.org"}], "allow_all": True}}, ["scope.allow_all", "scope.host"]),
        ({"keep": {"meta_robots": False}}, ["keep.meta_robots"]),
        ({"change": {"condition": ["etag"]}}, ["change.condition"]),
        ({"robots": {"obey": False}}, ["robots.obey"]),
        ({"fetch": {"default_charset": "euc-jp"}}, ["fetch.default_charset"]),
        ({"fetch": {"headers": {"Accept-Language": "de"}}}, ["fetch.headers"]),
        ({"fetch": {"delay_seconds": 9.0, "concurrency": 1}}, []),
        ({"lifecycle": {"max_delete_percent": 50.0}}, []),
        ({"title": "Another"}, []),
        ({"copies": {"scope": "off"}}, ["copies.scope"]),
        ({"copies": {"near": "remove"}}, ["copies.near"]),
        ({"copies": {"near": "off"}}, []),
    ],
)
def test_fingerprint_when_a_key_changes_then_it_is_named_where_documents_depend_on_it(
    tables: dict[str, Any], keys: list[str]
) -> None:
    before = compute_fingerprint(source(), versions=VERSIONS)
    after = compute_fingerprint(source(**tables), versions=VERSIONS)

    assert find_changed_keys(before, after) == keys
    assert (before == after) == (not keys)


def test_fingerprint_when_rules_are_only_in_another_order_then_equal() -> None:
    one = source(scope={"include_hosts": ["a", "b"], "host": [{"host": "a"}, {"host": "b"}]})
    other = source(scope={"include_hosts": ["b", "a"], "host": [{"host": "b"}, {"host": "a"}]})

    assert compute_fingerprint(one, versions=VERSIONS) == compute_fingerprint(other, versions=VERSIONS)


def test_fingerprint_when_a_stage_has_a_new_version_then_it_is_named() -> None:
    before = compute_fingerprint(source(), versions=VERSIONS)
    after = compute_fingerprint(source(), versions={"html": 2, "checksum": 1})

    assert find_changed_keys(before, after) == ["version.html"]


def test_mixed_when_some_documents_were_made_with_an_edit_then_both_files_differ_in_its_keys() -> None:
    first = compute_fingerprint(source(scope={"allow_all": True}), versions=VERSIONS)
    edited = compute_fingerprint(
        source(scope={"allow_all": True, "depth": 2}, keep={"meta_robots": False}), versions=VERSIONS
    )

    made = mix_fingerprints(first, edited)

    assert find_changed_keys(made, first) == find_changed_keys(made, edited) == ["keep.meta_robots", "scope.depth"]
    assert mix_fingerprints(made, made) == made
    assert mix_fingerprints(first, first) == first


def test_docs_when_they_say_what_an_edit_costs_then_each_key_stands_where_its_effect_is() -> None:
    page = (ROOT / "docs/how-to/edit-source.md").read_text(encoding="utf-8")
    rows = re.findall(r"(?m)^\| (.*?) \| (are .*?) \| (.*?) \|$", page)
    dumped = Tables().model_dump(mode="json")
    keys = {f"{table}.{key}" for table, wanted in _KEYS.items() for key in wanted or dumped[table]} - _SHOWN
    keys |= {
        "groups",
        "converters",
        *(f"settings.{name}" for name in USER_COMPONENTS),
        "display",
        "rewrite",
        "copies.near",
    }

    placed = {key: [row for row in rows if names(row[0], key)] for key in keys}

    assert {key for key, found in placed.items() if len(found) != 1} == set()
    for key, [(_, pages, others)] in placed.items():
        effect = find_effect([key])
        assert ("are fetched" in pages, "admitted anew" in pages) == (
            effect.answers,
            effect.links and not effect.answers,
        )
        assert ("stay as they are" in others) == (not effect.refusals), key


def names(cell: str, key: str) -> bool:
    """Whether a cell names a key, or all of its table."""
    table, _, name = key.partition(".")
    return any(f"`{each}`" in cell for each in (key, f"[{table}]", f"[[{key}]]", name if table == "settings" else key))


def test_effect_when_a_filter_looks_into_what_was_read_or_is_new_then_pages_are_read_again() -> None:
    read = {name: find_effect([f"keep.{name}"]).reading for name in (*Keep.model_fields, "exclude_titles")}

    assert {name for name, is_read in read.items() if is_read} == {"meta_robots", "exclude_titles"}
