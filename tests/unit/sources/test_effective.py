"""Values from the source file, its parameter set, the defaults and the built-in ones (A2, A3)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from searchcrawl.exceptions import ConfigurationError
from searchcrawl.sources.effective import list_effective_values, read_overrides
from searchcrawl.sources.fingerprint import compute_fingerprint, find_changed_keys
from searchcrawl.sources.loading import load_project, load_source, load_sources
from tests.source_files import GOOD, find_error, find_error_of_project, loaded, write_source

PROJECT = """
contact = "crawler@example.org"
[defaults.fetch]
retries = 7
delay_seconds = 5
concurrency = 2
[parameters.slow.fetch]
delay_seconds = 60
concurrency = 1
[parameters.slow.settings]
MINE = 1
[parameters.standard.fetch]
concurrency = 3
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "searchcrawl.toml").write_text(PROJECT)
    (tmp_path / "sources").mkdir()
    return tmp_path


def test_load_source_when_it_names_a_set_then_file_set_defaults_and_built_in_in_this_order(root: Path) -> None:
    write_source(root, 'parameters = "slow"\n' + GOOD + "[fetch]\nconcurrency = 9\n")

    fetch = loaded(root).fetch

    assert (fetch.concurrency, fetch.delay_seconds, fetch.retries, fetch.max_redirects) == (9, 60, 7, 10)


@pytest.mark.parametrize("line", ["", 'parameters = "standard"\n'])
def test_load_source_when_it_names_no_set_then_standard(root: Path, line: str) -> None:
    write_source(root, line + GOOD)

    fetch = loaded(root).fetch

    assert (fetch.concurrency, fetch.delay_seconds) == (3, 5)


def test_load_source_when_there_is_no_standard_set_then_the_defaults(root: Path) -> None:
    (root / "searchcrawl.toml").write_text(PROJECT.replace("parameters.standard", "parameters.other"))
    write_source(root, GOOD)

    assert loaded(root).fetch.concurrency == 2


def test_load_source_when_the_set_is_unknown_then_one_line_with_a_guess(root: Path) -> None:
    write_source(root, 'parameters = "slwo"\n' + GOOD)

    _, errors = load_sources(load_project(root))

    assert [str(error) for error in errors] == [
        'sources/demo.toml: parameters: no such set in searchcrawl.toml (did you mean slow?) (got "slwo")'
    ]


def test_load_source_when_the_set_has_the_other_of_a_pair_of_ports_then_only_its_own(root: Path) -> None:
    with (root / "searchcrawl.toml").open("a") as file:
        file.write("[parameters.web.scope]\ninclude_ports = [80]\n[defaults.scope]\nexclude_ports = [81]\n")
    write_source(root, 'parameters = "web"\n' + GOOD)
    write_source(root, 'parameters = "web"\n' + GOOD + "exclude_ports = [8080]\n", "other")
    project = load_project(root)

    scopes = [load_source(project, name).scope for name in ("demo", "other")]

    assert [(scope.include_ports, scope.exclude_ports) for scope in scopes] == [((80,), ()), ((), (8080,))]


@pytest.mark.parametrize(
    ("addition", "line"),
    [
        ("[parameters.slow.scope]\ndepth = -1", "parameters.slow.scope.depth: must not be negative (got -1)"),
        ("[parameters.slow.scope]\ndpeth = 1", "parameters.slow.scope.dpeth: unknown key (did you mean depth?)"),
        ('[parameters.slow.fetch.headers]\nHost = "x"', "parameters.slow.fetch.headers: this header is "),
        ('[parameters.slow]\ntitle = "x"', "parameters.slow.title: unknown key"),
        ('[parameters.slow.mail]\nhost = "x"', "parameters.slow.mail: not available yet"),
        ("[parameters.slow.keep]\nmime_types = [1]", "parameters.slow.keep.mime_types: must be a string (got 1)"),
        ("[parameters.slow.settings]\nRETRY_ENABLED = true", "parameters.slow.settings.RETRY_ENABLED: not for a source: "),
        ("[parameters.slow.settings]\nmine = true", "parameters.slow.settings.mine: names of Scrapy settings are upper"),
        ("[parameters.'a b'.scope]\ndepth = 1", 'parameters: names are made of A-Z a-z 0-9 _ - (got "a b")'),
        ("parameters = 3", "parameters: must be a table (got 3)"),
        ('[parameters]\nslow = "x"', 'parameters.slow: must be a table (got "x")'),
        ('[parameters.slow.fetch]\nca_file = {env = "NOT_SET_ANYWHERE"}', "parameters.slow.fetch.ca_file: the environment "),
    ],
)  # fmt: skip
def test_load_project_when_a_set_is_wrong_then_one_line_names_it(root: Path, addition: str, line: str) -> None:
    (root / "searchcrawl.toml").write_text('contact = "a@example.org"\n' + addition + "\n")

    assert str(find_error_of_project(root)).startswith(f"searchcrawl.toml: {line}")


@pytest.mark.parametrize(
    ("table", "key"),
    [
        ('scope]\nexclude_urls = ["re:("]', "scope.exclude_urls"),
        ('start]\nfiles = ["gone.txt"]', "start.files"),
        ('fetch]\nca_file = "gone.pem"', "fetch.ca_file"),
    ],
)
def test_load_source_when_a_rule_of_its_set_cannot_be_used_then_set_and_key_are_named(
    root: Path, table: str, key: str
) -> None:
    (root / "searchcrawl.toml").write_text(f'contact = "a@example.org"\n[parameters.slow.{table}\n')
    write_source(root, 'parameters = "slow"\n' + GOOD)

    error = find_error(root)

    assert (error.file, error.key) == ("searchcrawl.toml", f"parameters.slow.{key}")


def test_effective_values_when_values_come_from_everywhere_then_each_says_where(root: Path) -> None:
    write_source(root, 'parameters = "slow"\n' + GOOD + '[fetch]\nconcurrency = 9\n[robots]\nuser_agent = "mine"\n')
    project = load_project(root)

    values = list_effective_values(project, load_source(project, "demo"))

    assert values["fetch.concurrency"] == {"value": 9, "origin": "sources/demo.toml"}
    assert values["fetch.delay_seconds"] == {"value": 60.0, "origin": "searchcrawl.toml [parameters.slow]"}
    assert values["settings.MINE"] == {"value": 1, "origin": "searchcrawl.toml [parameters.slow]"}
    assert values["fetch.retries"] == {"value": 7, "origin": "searchcrawl.toml [defaults]"}
    assert values["fetch.max_redirects"] == {"value": 10, "origin": "built-in"}
    assert values["parameters"] == {"value": "slow", "origin": "sources/demo.toml"}
    assert values["robots.user_agent"] == {"value": "mine", "origin": "sources/demo.toml"}
    assert values["display"] == {"value": [], "origin": "built-in"}


def test_effective_values_when_the_project_names_its_agent_then_robots_follow_it(root: Path) -> None:
    (root / "searchcrawl.toml").write_text('contact = "a@example.org"\nuser_agent = "acmebot"\n')
    write_source(root, GOOD)
    project = load_project(root)

    values = list_effective_values(project, load_source(project, "demo"))

    assert values["robots.user_agent"] == {"value": "acmebot", "origin": "searchcrawl.toml"}


def test_fingerprint_when_a_set_changes_then_only_what_documents_depend_on_counts(root: Path) -> None:
    write_source(root, 'parameters = "slow"\n' + GOOD)
    before = compute_fingerprint(loaded(root), versions={})

    (root / "searchcrawl.toml").write_text(PROJECT.replace("delay_seconds = 60", "delay_seconds = 61"))
    slower = compute_fingerprint(loaded(root), versions={})
    (root / "searchcrawl.toml").write_text(PROJECT + "[parameters.slow.scope]\ndepth = 3\n")
    deeper = compute_fingerprint(loaded(root), versions={})
    (root / "searchcrawl.toml").write_text(PROJECT)
    write_source(root, 'parameters = "slow"\n' + GOOD + "depth = 3\n")
    same = compute_fingerprint(loaded(root), versions={})

    assert find_changed_keys(before, slower) == []
    assert find_changed_keys(before, deeper) == ["scope.depth"]
    assert deeper == same


def test_fingerprint_when_a_secret_changes_then_nothing_is_forced(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_source(root, GOOD + '[fetch.headers]\nAuthorization = {env = "TOKEN"}\n')
    prints = []
    for value in ("first-token", "second-token"):
        monkeypatch.setenv("TOKEN", value)
        prints.append(compute_fingerprint(loaded(root), versions={}))
    write_source(root, GOOD + '[fetch.headers]\nAuthorization = {env = "PATH"}\n')
    other = compute_fingerprint(loaded(root), versions={})

    assert prints[0] == prints[1]
    assert find_changed_keys(prints[0], other) == ["fetch.headers"]


OWN = 'title = "file"\n[start]\nurls = ["https://a.test/"]\n[scope]\ninclude_hosts = ["a.test"]\ndepth = 3\n'


@pytest.fixture
def own_root(tmp_path: Path) -> Path:
    (tmp_path / "sources").mkdir()
    (tmp_path / "searchcrawl.toml").write_text('contact = "a@a.test"\n')
    (tmp_path / "sources" / "a.toml").write_text(OWN)
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


def test_source_when_keys_are_set_then_they_go_before_the_file_and_are_named(own_root: Path) -> None:
    source = load_source(load_project(own_root), "a", overrides={"scope": {"depth": 1}, "title": "set"})

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
    own_root: Path, overrides: dict[str, Any], line: str
) -> None:
    assert line in str(find_error(own_root, "a", **overrides))


def test_source_when_many_settings_and_rules_are_wrong_then_each_is_named(own_root: Path) -> None:
    path = own_root / "sources" / "a.toml"
    path.write_text(OWN + '[settings]\nLOG_LEVEL = "INFO"\nRETRY_TIMES = 3\nlower = 1\nMINE = 1\n')
    settings = find_error(own_root, "a")
    path.write_text(OWN + 'exclude_urls = ["re:(", "ok", "re:["]\n[keep]\ninclude_urls = ["re:("]\n')
    rules = find_error(own_root, "a")

    assert [error.key for error in settings.errors] == [
        "settings.LOG_LEVEL", "settings.RETRY_TIMES", "settings.lower",
    ]  # fmt: skip
    assert [error.key for error in rules.errors] == [
        "scope.exclude_urls", "scope.exclude_urls", "keep.include_urls",
    ]  # fmt: skip


def test_project_when_settings_of_several_tables_are_wrong_then_each_is_named(own_root: Path) -> None:
    text = 'contact = "a@a.test"\n[defaults.settings]\nRETRY_TIMES = 3\nLOG_FILE = "x"\n[parameters.slow.settings]\na = 1\n'
    (own_root / "searchcrawl.toml").write_text(text)

    assert [error.key for error in find_error_of_project(own_root).errors] == [
        "defaults.settings.RETRY_TIMES", "defaults.settings.LOG_FILE", "parameters.slow.settings.a",
    ]  # fmt: skip
