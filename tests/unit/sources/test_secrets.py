"""Values from the environment and from files: used, and never shown (X-O3)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from searchcrawl.sources.checking import quote_value
from searchcrawl.sources.effective import list_effective_values
from searchcrawl.sources.loading import load_project, load_source
from searchcrawl.sources.secrets import Secret, hide, redact
from tests.source_files import GOOD, find_error, loaded, write_source

CANARY = "c4n4ry-s3cr3t"


@pytest.fixture(autouse=True)
def canary(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "key").write_text(f"{CANARY}\n")
    monkeypatch.setenv("CANARY", CANARY)


@pytest.mark.parametrize("reference", ['{env = "CANARY"}', '{file = "key"}'])
def test_load_source_when_a_header_is_a_reference_then_its_value_is_used_and_its_reference_kept(
    root: Path, reference: str
) -> None:
    write_source(root, GOOD + f'[fetch.headers]\nX-Api-Key = {reference}\nX-Plain = "a"\n')

    source = loaded(root)

    assert source.fetch.headers == {"X-Api-Key": CANARY, "X-Plain": "a"}
    assert len(source.references) == 1
    assert set(source.references) == {"fetch.headers.X-Api-Key"}


def test_load_source_when_strings_of_lists_and_settings_are_references_then_each_is_resolved(root: Path) -> None:
    (root / "urls").write_text("https://example.org/a\r\n")
    write_source(
        root, GOOD + '[settings]\nMINE = {env = "CANARY"}\nTREE = {a = [{file = "key"}], env = {env = "CANARY"}}\n'
    )
    text = (root / "sources" / "demo.toml").read_text().replace('"https://example.org/"', '{file = "urls"}')
    (root / "sources" / "demo.toml").write_text(text)

    source = loaded(root)

    assert source.start.urls == ("https://example.org/a",)
    assert source.settings == {"MINE": CANARY, "TREE": {"a": [CANARY], "env": CANARY}}
    assert repr(source.settings["MINE"]) == '{env = "CANARY"}'
    assert source.references["settings.TREE.a[0]"] == {"file": "key"}


def test_load_source_when_a_header_or_host_is_named_env_then_it_is_no_reference(root: Path) -> None:
    write_source(root, GOOD + '[fetch]\nheaders = {env = "CANARY"}\nresolve = {file = "127.0.0.1"}\n')

    source = loaded(root)

    assert source.fetch.headers == {"env": "CANARY"}
    assert source.fetch.resolve == {"file": "127.0.0.1"}


def test_load_project_when_the_store_is_a_reference_then_its_url_is_used(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STORE", f"postgresql+psycopg://me:{CANARY}@db/search")
    (root / "searchcrawl.toml").write_text('contact = "a@example.org"\nstore.url = {env = "STORE"}\n')

    project = load_project(root)

    assert project.database_url == f"postgresql+psycopg://me:{CANARY}@db/search"
    assert redact(f"password {CANARY} refused") == "password *** refused"


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ('{env = "NOT_SET_ANYWHERE"}', "the environment variable NOT_SET_ANYWHERE is not set"),
        ('{env = "EMPTY"}', "the environment variable EMPTY is empty"),
        ('{env = "LATIN"}', "the environment variable LATIN is not UTF-8"),
        ('{env = ""}', "env must be the name of a variable"),
        ("{env = 1}", "env must be the name of a variable"),
        ('{file = "missing"}', "the file missing cannot be read (No such file or directory)"),
        ('{file = "sources"}', "the file sources is no regular file"),
        ('{file = "newline"}', "the file newline is empty"),
        ('{file = "latin"}', "the file latin is not UTF-8"),
        ('{file = "long"}', "the file long has more than 65536 bytes"),
        ("{file = []}", "file must be the path of a file"),
    ],
)
def test_load_source_when_a_reference_leads_nowhere_then_one_line_says_so(
    root: Path, monkeypatch: pytest.MonkeyPatch, reference: str, message: str
) -> None:
    monkeypatch.setenv("EMPTY", "")
    monkeypatch.setitem(os.environb, b"LATIN", b"caf\xe9")
    (root / "newline").write_text("\n")
    (root / "latin").write_bytes(b"caf\xe9")
    (root / "long").write_bytes(b"x" * 70_000)
    write_source(root, GOOD + f"[fetch.headers]\nX-A = {reference}\n")

    assert str(find_error(root)) == f"sources/demo.toml: fetch.headers.X-A: {message}"


@pytest.mark.parametrize(
    ("addition", "line"),
    [
        ('[fetch]\nretries = {env = "CANARY"}', 'fetch.retries: must be a whole number (got {"env": "CANARY"})'),
        ('[fetch]\nca_file = {env = "CANARY"}', 'fetch.ca_file: no such file (got {"env": "CANARY"})'),
        ('[fetch]\nresolve = {a = {env = "CANARY"}}', 'fetch.resolve.a: not an IP address (got {"env": "CANARY"})'),
        ('[change]\ncondition = [{file = "key"}]', 'change.condition: must be "date", '),
        ('[settings]\nJOBDIR = {env = "CANARY"}', "settings.JOBDIR: not for a source: "),
    ],
)
def test_load_source_when_a_value_of_a_reference_is_wrong_then_no_message_shows_it(
    root: Path, addition: str, line: str
) -> None:
    write_source(root, GOOD + addition + "\n")

    error = find_error(root)

    assert str(error).startswith(f"sources/demo.toml: {line}")
    assert CANARY not in str(error)


def test_effective_values_when_there_are_secrets_then_references_and_stars(root: Path) -> None:
    write_source(
        root,
        GOOD + '[fetch.headers]\nX-Api-Key = {env = "CANARY"}\nAuthorization = "Basic abc"\nX-Plain = "a"\n'
        '[settings]\nFTP_PASSWORD = "abcdef"\nMINE = {a = {file = "key"}}\n',
    )
    project = load_project(root)

    values = list_effective_values(project, load_source(project, "demo"))

    assert values["fetch.headers"]["value"] == {
        "X-Api-Key": {"env": "CANARY"},
        "Authorization": "***",
        "X-Plain": "a",
    }
    assert values["settings.FTP_PASSWORD"]["value"] == "***"
    assert values["settings.MINE"]["value"] == {"a": {"file": "key"}}
    assert CANARY not in str(values)


def test_redacted_when_a_secret_is_in_a_text_in_any_form_then_it_is_taken_out() -> None:
    hide("p\"ss'w\\rd ü&x")

    text = redact("1 p\"ss'w\\rd ü&x 2 " + repr("p\"ss'w\\rd ü&x") + " 3 p%22ss%27w%5Crd%20%C3%BC%26x 4")

    assert text == "1 *** 2 '***' 3 *** 4"


def test_redacted_when_a_secret_is_short_then_words_stay() -> None:
    hide("the")

    assert redact("the other") == "the other"


def test_shown_when_a_value_holds_secrets_then_their_references() -> None:
    secret = Secret.of(CANARY, kind="env", source="X")

    assert quote_value({"a": [secret]}) == '{"a": [{"env": "X"}]}'
    assert CANARY not in f"{secret!r}"
