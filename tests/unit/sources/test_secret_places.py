"""A secret in any place of a file: neither `sources check` nor `sources show` nor a log tells it (X-O3)."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import pytest
from pydantic import Field

from searchcrawl.cli.dispatch import make_command
from searchcrawl.sources.config import SourceFile
from searchcrawl.sources.privacy import Privacy, mask, privacy_of
from searchcrawl.sources.project import ProjectFile
from searchcrawl.sources.secrets import redact
from searchcrawl.sources.values import PublicText, Table, Text
from tests.secret_places import VARIABLE, Place, list_forms, list_places, list_swapped, make_canary
from tests.site.toml_text import to_toml

#: A file without errors, of which a case may replace tables.
GOOD: Final = {"start": {"urls": ["https://example.org/"]}, "scope": {"include_hosts": ["example.org"]}}
LAYERS: Final = ("", "defaults", "parameters.slow")


def write(root: Path, layer: str, tables: Mapping[str, Any]) -> None:
    """A project with ``tables`` in the source file, in ``[defaults]`` or in a set."""
    merged = {
        name: {**GOOD.get(name, {}), **tables.get(name, {})} if isinstance(tables.get(name, {}), dict) else tables[name]
        for name in {**GOOD, **tables}
    }
    project: dict[str, Any] = {"contact": "a@example.org"}
    if layer == "defaults":
        project["defaults"] = dict(tables)
    elif layer:
        project["parameters"] = {"slow": dict(tables)}
    (root / "sources").mkdir(exist_ok=True)
    (root / "scrapy.cfg").write_text("")
    (root / "searchcrawl.toml").write_text(to_toml(project), "utf-8")
    source = {"parameters": "slow", **GOOD} if layer == "parameters.slow" else GOOD
    (root / "sources" / "demo.toml").write_text(to_toml(source if layer else merged), "utf-8")


def ask(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str]:
    """The exit code of ``sources``, and what it printed."""
    command = make_command("sources")
    parser = argparse.ArgumentParser(conflict_handler="resolve")
    command.add_options(parser)
    opts, args = parser.parse_known_args(argv)
    command.run(args, opts)
    captured = capsys.readouterr()
    return command.exitcode, captured.out + captured.err


def assert_untold(capsys: pytest.CaptureFixture[str], canary: str, case: object) -> bool:
    """No form of `check` and `show` has the secret; returns whether the file is good."""
    codes = set()
    for argv in (("check",), ("check", "--json"), ("show", "demo"), ("show", "demo", "--json")):
        code, printed = ask(capsys, *argv)
        codes.add(code)
        assert canary not in printed, (case, printed)
        assert printed
    return codes == {0}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.few(40)
@pytest.mark.parametrize("place", list(list_places()), ids=str)
def test_secret_when_it_stands_anywhere_then_no_command_tells_it(
    root: Path, place: Place, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    layers = LAYERS if place.privacy is not Privacy.PUBLIC and str(place) != "parameters" else ("",)
    for number in range(len(list(list_forms(place, "")))):
        canary = make_canary()
        form = list(list_forms(place, canary))[number]
        monkeypatch.setenv(VARIABLE, canary)
        write(root, layers[number % len(layers)], place.holding(form.value))

        good = assert_untold(capsys, canary, (str(place), form.value))

        if good and form.is_logged and place.privacy is not Privacy.PUBLIC:
            text = str(form.value) if canary in str(form.value) else canary
            assert canary not in redact(text), (str(place), form.value)


@pytest.mark.parametrize("place", [place for place in list_places() if place.tables], ids=str)
def test_secret_when_it_is_swapped_with_its_key_then_no_command_tells_it(
    root: Path, place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    canary = make_canary()
    for tables in list_swapped(place, canary):
        write(root, "", tables)

        assert not assert_untold(capsys, canary, tables)


@pytest.mark.parametrize(
    "text",
    [
        'login = {{fields = {{"{0}" = "a", "{0}" = "b"}}}}\n',
        '[login.fields."{0}"]\n[login.fields."{0}"]\n',
        '[settings]\nFEEDS = {{"ftp://a:{0}@b/" = 1}}\n[settings.FEEDS."ftp://a:{0}@b/"]\n',
        '[login]\npassword = "{0}\n',
        "[login]\npassword = {0}\n",
        'login.password = {{env = "{0}"}}\n',
        'login.password = {{env = "{0}", or = "{0}"}}\n',
    ],
)
def test_secret_when_the_file_cannot_be_read_then_no_command_tells_it(
    root: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    canary = make_canary()
    for layer in ("source", "project"):
        write(root, "", {})
        file = root / ("sources/demo.toml" if layer == "source" else "searchcrawl.toml")
        file.write_text(text.format(canary) if layer == "source" else text.format(canary) + file.read_text(), "utf-8")

        assert not assert_untold(capsys, canary, text)


@pytest.mark.parametrize("key", ["store", "index"])
def test_secret_when_it_is_in_the_url_of_store_or_index_then_no_command_tells_it(
    root: Path, key: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for form in ("{0}", "postgresql+psycopg://me:{0}@h:x/d", "http://me:{0}@h/", "http://h/solr?{0}", "http://{0}@h/"):
        canary = make_canary()
        write(root, "", {})
        url = form.format(canary) if form != "{0}" else ["http://me:" + canary + "@h/"]
        (root / "searchcrawl.toml").write_text(to_toml({"contact": "a@example.org", key: {"url": url}}), "utf-8")

        assert_untold(capsys, canary, form)


def test_privacy_when_a_key_is_new_then_it_is_a_secret_unless_its_type_says_otherwise() -> None:
    class New(Table):
        token: str = ""
        more: Text | None = None
        tokens: Mapping[str, tuple[str, ...]] = Field(default_factory=dict)
        anything: Any = None
        number: int = 0
        public: PublicText = "a"
        half: Mapping[PublicText, str] = Field(default_factory=dict)
        shown: Annotated[str, Privacy.SHOWN] | None = None

    found = {name: privacy_of(New, name) for name in New.model_fields}
    secrets = dict.fromkeys(("token", "more", "tokens", "anything", "half"), Privacy.SECRET)
    public = dict.fromkeys(("number", "public"), Privacy.PUBLIC)
    assert found == {**secrets, **public, "shown": Privacy.SHOWN}


def test_privacy_when_keys_are_listed_then_these_are_not_public() -> None:
    private = {str(place): place.privacy for place in list_places() if place.privacy and not place.is_table}
    of_project = {
        str(place): place.privacy for place in list_places(ProjectFile) if place.privacy and not place.is_table
    }

    shown = ("check", "form", "password_field", "url", "username", "username_field")
    assert private == {
        **{f"file.{key}": Privacy.SHOWN for key in ("endpoint", "username")},
        "file.password": Privacy.SILENT,
        **{f"login.{key}": Privacy.SHOWN for key in shown},
        "fetch.proxy": Privacy.SHOWN,
        "table.url": Privacy.SHOWN,
        "fetch.headers": Privacy.SECRET,
        "login.password": Privacy.SILENT,
        "login.fields": Privacy.SILENT,
        "login.steps[].value": Privacy.SILENT,
        "settings": Privacy.BY_NAME,
    }
    tables = ("defaults.", "parameters.")
    assert {key for key in of_project if not key.startswith(tables)} == {
        "store.url", "index.url", "receivers.url", "schedules.scrapyd", "notify.command", "notify.webhook",
    }  # fmt: skip
    assert set(SourceFile.model_fields) > {"login", "fetch", "settings"}


@pytest.mark.parametrize(
    ("value", "privacy", "shown"),
    [
        ({"Accept": "text/html", "X-Mine": "de-DE", "X-A": "de"}, Privacy.SECRET, {"Accept": "text/html", "X-Mine": "***", "X-A": "de"}),
        ({"abcdef": "x-key", "ghijkl": "y-key"}, Privacy.SECRET, {"***": "***", "*** (2)": "***"}),
        ({"scope": "abcdef"}, Privacy.SILENT, {"***": "***"}),
        ({"remember": "1", "session": ""}, Privacy.SILENT, {"remember": "***", "session": ""}),
        ({"out.jsonl": {"format": "jsonl", "batch": 10_000}}, Privacy.BY_NAME, {"out.jsonl": {"format": "jsonl", "batch": 10_000}}),
        ("https://a.test/login?lang=de&path=/start", Privacy.SHOWN, "https://a.test/login?lang=de&***=***"),
        ("https://a.test/?page=front", Privacy.PUBLIC, "https://a.test/?page=front"),
        ("mail me: a@b", Privacy.SILENT, "***"),
        (123456, Privacy.SECRET, "***"),
        (True, Privacy.SILENT, True),
    ],
)  # fmt: skip
def test_mask_when_a_value_is_shown_then_what_is_harmless_stays(value: Any, privacy: Privacy, shown: Any) -> None:
    assert mask(value, privacy) == shown
    assert json.dumps(mask(value, privacy))
