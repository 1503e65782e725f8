"""Keys that a command line sets for a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from searchcrawl.exceptions import ConfigurationError, InvalidFile
from searchcrawl.sources.effective import read_overrides
from searchcrawl.sources.loading import load_project, load_source

SOURCE = 'title = "file"\n[start]\nurls = ["https://a.test/"]\n[scope]\ninclude_hosts = ["a.test"]\ndepth = 3\n'


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "sources").mkdir()
    (tmp_path / "searchcrawl.toml").write_text('contact = "a@a.test"\n')
    (tmp_path / "sources" / "a.toml").write_text(SOURCE)
    return tmp_path


@pytest.mark.parametrize(
    ("pairs", "tables"),
    [
        ([], {}),
        (["title=An intranet"], {"title": "An intranet"}),
        (['title="An intranet"'], {"title": "An intranet"}),
        (["scope.depth=2", "scope.depth=4", "test=true"], {"scope": {"depth": 4}, "test": True}),
        (['start.urls=["http://b.test/?a=b"]'], {"start": {"urls": ["http://b.test/?a=b"]}}),
        (['attributes."meta:dc.x"=y'], {"attributes": {"meta:dc.x": "y"}}),
        # A line break does not begin another key.
        (["title=1\nmode = 2"], {"title": "1\nmode = 2"}),
        (["title="], {"title": ""}),
    ],
)
def test_overrides_when_read_then_as_tables_of_a_file(pairs: list[str], tables: dict[str, Any]) -> None:
    assert read_overrides(pairs) == tables


@pytest.mark.parametrize("pair", ["secret", "=1", "a b=1", "a..b=1", "a\nb=1", "[x]=1"])
def test_overrides_when_they_are_no_pair_then_refused_without_the_text(pair: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read_overrides([pair])

    assert str(caught.value) == "--set: must be KEY=VALUE, as fetch.delay_seconds=5"


def test_overrides_when_a_value_is_a_table_too_then_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"^--set: scope: is set as a value and as a table$"):
        read_overrides(["scope=1", "scope.depth=2"])


def test_source_when_keys_are_set_then_they_go_before_the_file_and_are_named(root: Path) -> None:
    source = load_source(load_project(root), "a", overrides={"scope": {"depth": 1}, "title": "set"})

    assert (source.scope.depth, source.title, source.scope.include_hosts) == (1, "set", ("a.test",))
    assert (str(source.origins["scope.depth"]), str(source.origins["start.urls"])) == ("--set", "sources/a.toml")


@pytest.mark.parametrize(
    ("overrides", "line"),
    [
        ({"scope": {"depth": -1}}, "--set: scope.depth: must not be negative (got -1)"),
        ({"scope": {"dept": 1}}, "--set: scope.dept: unknown key (did you mean depth?)"),
        ({"scope": {"exclude_urls": ["re:("]}}, "--set: scope.exclude_urls: not an RE2 expression"),
        ({"parameters": "x"}, '--set: parameters: no such set in searchcrawl.toml (got "x")'),
        ({"settings": {"RETRY_TIMES": 3}}, "--set: settings.RETRY_TIMES: not for a source: the URL table tries again"),
        ({"start": {"urls": []}}, "start.urls: is required, or start.files"),
        ({"type": "mail"}, '--set: type: not available yet (got "mail")'),
    ],
)
def test_source_when_a_key_that_is_set_is_wrong_then_the_error_names_the_option(
    root: Path, overrides: dict[str, Any], line: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_source(load_project(root), "a", overrides=overrides)

    assert line in str(caught.value)


def test_source_when_many_settings_and_rules_are_wrong_then_each_is_named(root: Path) -> None:
    path = root / "sources" / "a.toml"
    path.write_text(SOURCE + '[settings]\nLOG_LEVEL = "INFO"\nRETRY_TIMES = 3\nlower = 1\nMINE = 1\n')
    with pytest.raises(InvalidFile) as settings:
        load_source(load_project(root), "a")
    path.write_text(SOURCE + 'exclude_urls = ["re:(", "ok", "re:["]\n[keep]\ninclude_urls = ["re:("]\n')
    with pytest.raises(InvalidFile) as rules:
        load_source(load_project(root), "a")

    assert [error.key for error in settings.value.errors] == [
        "settings.LOG_LEVEL", "settings.RETRY_TIMES", "settings.lower",
    ]  # fmt: skip
    assert [error.key for error in rules.value.errors] == [
        "scope.exclude_urls", "scope.exclude_urls", "keep.include_urls",
    ]  # fmt: skip


def test_project_when_settings_of_several_tables_are_wrong_then_each_is_named(root: Path) -> None:
    text = 'contact = "a@a.test"\n[defaults.settings]\nRETRY_TIMES = 3\nLOG_FILE = "x"\n[parameters.slow.settings]\na = 1\n'
    (root / "searchcrawl.toml").write_text(text)

    with pytest.raises(InvalidFile) as caught:
        load_project(root)

    assert [error.key for error in caught.value.errors] == [
        "defaults.settings.RETRY_TIMES", "defaults.settings.LOG_FILE", "parameters.slow.settings.a",
    ]  # fmt: skip
