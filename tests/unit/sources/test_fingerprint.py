"""The digest of what makes stored documents out of date."""

from __future__ import annotations

from typing import Any

import pytest

from searchcrawl.sources.config import Source
from searchcrawl.sources.fingerprint import compute_fingerprint, find_changed_keys, mix_fingerprints

VERSIONS = {"html": 1, "checksum": 1}


def source(**tables: Any) -> Source:
    return Source.model_validate({"name": "demo", "file": "sources/demo.toml", **tables})


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
