"""Values from the source file, its parameter set, the defaults and the built-in ones (A2, A3)."""

from __future__ import annotations

from pathlib import Path

import pytest

from searchcrawl.exceptions import ConfigurationError
from searchcrawl.sources.effective import list_effective_values
from searchcrawl.sources.fingerprint import compute_fingerprint, find_changed_keys
from searchcrawl.sources.loading import load_project, load_source, load_sources

GOOD = '[start]\nurls = ["https://example.org/"]\n[scope]\ninclude_hosts = ["example.org"]\n'
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


def write_source(root: Path, text: str, name: str = "demo") -> None:
    (root / "sources" / f"{name}.toml").write_text(text, encoding="utf-8")


def test_load_source_when_it_names_a_set_then_file_set_defaults_and_built_in_in_this_order(root: Path) -> None:
    write_source(root, 'parameters = "slow"\n' + GOOD + "[fetch]\nconcurrency = 9\n")

    fetch = load_source(load_project(root), "demo").fetch

    assert (fetch.concurrency, fetch.delay_seconds, fetch.retries, fetch.max_redirects) == (9, 60, 7, 10)


@pytest.mark.parametrize("line", ["", 'parameters = "standard"\n'])
def test_load_source_when_it_names_no_set_then_standard(root: Path, line: str) -> None:
    write_source(root, line + GOOD)

    fetch = load_source(load_project(root), "demo").fetch

    assert (fetch.concurrency, fetch.delay_seconds) == (3, 5)


def test_load_source_when_there_is_no_standard_set_then_the_defaults(root: Path) -> None:
    (root / "searchcrawl.toml").write_text(PROJECT.replace("parameters.standard", "parameters.other"))
    write_source(root, GOOD)

    assert load_source(load_project(root), "demo").fetch.concurrency == 2


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

    with pytest.raises(ConfigurationError) as caught:
        load_project(root)

    assert str(caught.value).startswith(f"searchcrawl.toml: {line}")


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

    with pytest.raises(ConfigurationError) as caught:
        load_source(load_project(root), "demo")

    assert (caught.value.file, caught.value.key) == ("searchcrawl.toml", f"parameters.slow.{key}")


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
    before = compute_fingerprint(load_source(load_project(root), "demo"), versions={})

    (root / "searchcrawl.toml").write_text(PROJECT.replace("delay_seconds = 60", "delay_seconds = 61"))
    slower = compute_fingerprint(load_source(load_project(root), "demo"), versions={})
    (root / "searchcrawl.toml").write_text(PROJECT + "[parameters.slow.scope]\ndepth = 3\n")
    deeper = compute_fingerprint(load_source(load_project(root), "demo"), versions={})
    (root / "searchcrawl.toml").write_text(PROJECT)
    write_source(root, 'parameters = "slow"\n' + GOOD + "depth = 3\n")
    same = compute_fingerprint(load_source(load_project(root), "demo"), versions={})

    assert find_changed_keys(before, slower) == []
    assert find_changed_keys(before, deeper) == ["scope.depth"]
    assert deeper == same


def test_fingerprint_when_a_secret_changes_then_nothing_is_forced(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_source(root, GOOD + '[fetch.headers]\nAuthorization = {env = "TOKEN"}\n')
    prints = []
    for value in ("first-token", "second-token"):
        monkeypatch.setenv("TOKEN", value)
        prints.append(compute_fingerprint(load_source(load_project(root), "demo"), versions={}))
    write_source(root, GOOD + '[fetch.headers]\nAuthorization = {env = "PATH"}\n')
    other = compute_fingerprint(load_source(load_project(root), "demo"), versions={})

    assert prints[0] == prints[1]
    assert find_changed_keys(prints[0], other) == ["fetch.headers"]
