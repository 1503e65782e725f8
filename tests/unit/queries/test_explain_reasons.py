"""Where a rule is written, and what to add where an include is missing (A2, A3, L1)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from searchcrawl.queries.explain_reasons import Edit, EditKind, Reason, build_reason, locate, parse_reason
from searchcrawl.rules.decision import NO_INCLUDE, Decision, Proposal
from searchcrawl.sources.config import Source
from searchcrawl.sources.loading import load_project, load_source
from tests.site.client import write_project

FILE = "sources/demo.toml"


@pytest.fixture
def source(tmp_path: Path) -> Source:
    project: dict[str, Any] = {
        "defaults": {"scope": {"exclude_urls": ["*.zip"]}},
        "parameters": {"narrow": {"scope": {"max_path_segments": 4}}},
    }
    write_project(tmp_path, 80, project=project, parameters="narrow", scope={"host": [{"host": "acme.test"}]})
    return load_source(load_project(tmp_path), "demo")


@pytest.mark.parametrize(
    ("key", "place"),
    [
        ("scope.include_hosts", (FILE, "scope.include_hosts")),
        ("scope.host[0].exclude_paths", (FILE, "scope.host[0].exclude_paths")),
        ("scope.exclude_urls", ("searchcrawl.toml", "defaults.scope.exclude_urls")),
        ("scope.max_path_segments", ("searchcrawl.toml", "parameters.narrow.scope.max_path_segments")),
        ("scope.max_url_length", ("built-in", "scope.max_url_length")),
    ],
)
def test_locate_when_a_key_comes_from_any_layer_then_its_file_and_name_there(
    source: Source, key: str, place: tuple[str, str]
) -> None:
    assert locate(source, key) == place


def test_build_reason_when_an_include_is_missing_then_its_proposal_can_be_copied(source: Source) -> None:
    decision = Decision(False, NO_INCLUDE, FILE, "scope.include_hosts")

    found = build_reason("boundary", decision, source, Proposal("scope.include_hosts", "shop.test"))

    assert found.as_json() == {
        "step": "boundary",
        "rule": "no include matches",
        "file": FILE,
        "key": "scope.include_hosts",
        "proposal": {"action": "add", "file": FILE, "key": "scope.include_hosts", "value": "shop.test"},
    }
    assert found.advice == f'add "shop.test" to scope.include_hosts in {FILE}'


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "scope.exclude_urls: re:a: b",
            Reason(
                step="keep",
                rule="re:a: b",
                file="searchcrawl.toml",
                key="defaults.scope.exclude_urls",
                proposal=Edit(
                    action=EditKind.REMOVE, file="searchcrawl.toml", key="defaults.scope.exclude_urls", value="re:a: b"
                ),
            ),
        ),
        ("rewrite[0]: pattern", Reason(step="keep", rule="pattern", file="built-in", key="rewrite[0]")),
        ("empty document", Reason(step="keep", rule="empty document")),
        ("pipeline: not wanted", Reason(step="keep", rule="pipeline: not wanted")),
        ("Disallow: /tmp/", Reason(step="keep", rule="Disallow: /tmp/")),
    ],
)
def test_parse_reason_when_a_row_keeps_a_rule_then_key_and_rule_are_told_apart(
    source: Source, text: str, reason: Reason
) -> None:
    assert parse_reason(text, "keep", source) == reason
