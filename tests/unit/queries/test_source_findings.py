"""What `sources check` finds in files that a run would take."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from searchcrawl.queries.source_findings import find_doubts, find_in_source, find_wrong_type
from searchcrawl.sources.loading import load_project, load_source


def findings(root: Path, source: str, *, contact: str = "a@acme.test") -> tuple[list[str], list[str]]:
    """The doubts about the project, and the findings of one source."""
    (root / "sources").mkdir()
    (root / "searchcrawl.toml").write_text(f'contact = "{contact}"\n')
    (root / "list.txt").write_text("http://elsewhere.test/of/a/list\nhttp://a.test/\n")
    (root / "sources" / "a.toml").write_text(source)
    project = load_project(root)
    found = find_in_source(project, load_source(project, "a"))
    return list(map(str, find_doubts(project))), list(map(str, found))


def test_source_when_it_can_be_meant_then_nothing_is_found(tmp_path: Path) -> None:
    text = """
    [start]
    urls = ["http://a.test/", "https://b.a.test:8443/x", "http://10.0.0.7/", "http://[::1]/"]
    [scope]
    include_hosts = ["a.test", "=10.0.0.7", "=[::1]"]
    [keep]
    mime_types = ["text/*", "*", "application/vnd.x+json", "*html*", "x-world/x-vrml"]
    [fetch]
    private_networks = ["10.0.0.0/8", "::1/128", "127.0.0.1/32"]
    resolve = {"*.a.test" = "127.0.0.1"}
    """

    assert findings(tmp_path, text) == ([], [])


def test_action_when_its_rule_names_no_page_then_its_key_is_named(tmp_path: Path) -> None:
    text = """
    [start]
    urls = ["http://a.test/"]
    [scope]
    include_hosts = ["a.test"]
    [render]
    actions = [{scroll = 1}, {match = "/list", click = "a"}]
    [fetch]
    private_networks = ["127.0.0.1/32"]
    resolve = {"*.a.test" = "127.0.0.1"}
    """
    message = 'is a glob for the whole URL, with its scheme: write "*/list" (got "/list")'

    assert findings(tmp_path, text) == ([], [f"sources/a.toml: render.actions[1].match: {message}"])


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ("/products/*", 'is a glob for the whole URL, with its scheme: write "*/products/*"'),
        ("calendar", 'is a glob for the whole URL, with its scheme: write "*calendar"'),
        (" www.a.test/*", 'is a glob for the whole URL, with its scheme: write "*www.a.test/*"'),
        ("HTTPS://a.test", 'names no path, and each URL has one: write "HTTPS://a.test/*"'),
        ("*/products/*", None),
        ("http*://a.test/x", None),
        ("HT*", None),
        ("http://*", None),
        ("HTTP://a.test/x", None),
        ("http://a.test*", None),
        ("file:///srv/old/*", None),
        ("smb://files/share/*.bak", None),
        ("re:products", None),
    ],
)
def test_url_rule_when_no_url_can_match_then_it_is_said_with_what_to_write(
    tmp_path: Path, rule: str, reason: str | None
) -> None:
    text = f"""
    [start]
    urls = ["http://a.test/"]
    [scope]
    include_hosts = ["a.test"]
    exclude_urls = ["*/none", {json.dumps(rule)}]
    [keep]
    exclude_urls = ["*/none", {json.dumps(rule)}]
    """

    _, found = findings(tmp_path, text)

    got = [error for error in found if ".exclude_urls[1]: " in error]
    assert len(got) == (0 if reason is None else 2)
    assert all(f"{reason} (got" in error for error in got)


def test_source_when_start_urls_lead_nowhere_then_each_is_named(tmp_path: Path) -> None:
    text = """
    [start]
    urls = ["http://other.test/", "http://10.1.2.3/x", "http://in.a.test/", "http://localhost:8080/", "http://a.test/p"]
    files = ["list.txt"]
    [scope]
    include_hosts = ["a.test", "=10.1.2.3", "=localhost"]
    exclude_urls = ["*/p"]
    [fetch]
    resolve = {"in.a.test" = "192.168.1.1"}
    """

    _, found = findings(tmp_path, text)

    here = "sources/a.toml: start.urls: "
    private = "may not be reached"
    assert found == [
        f'{here}lies outside the scope (scope.include_hosts: no include matches) (got "http://other.test/")',
        f'{here}10.1.2.3 {private} (10.0.0.0/8 private; fetch.private_networks) (got "http://10.1.2.3/x")',
        f'{here}192.168.1.1 {private} (192.168.0.0/16 private; fetch.private_networks) (got "http://in.a.test/")',
        f'{here}127.0.0.1 {private} (127.0.0.0/8 loopback; fetch.private_networks) (got "http://localhost:8080/")',
        f'{here}lies outside the scope (scope.exclude_urls: */p) (got "http://a.test/p")',
        'sources/a.toml: start.files: lies outside the scope (scope.include_hosts: no include matches) (got "http://elsewhere.test/of/a/list")',
    ]


def test_source_when_very_many_start_urls_lead_nowhere_then_the_first_are_named_and_the_rest_counted(
    tmp_path: Path,
) -> None:
    urls = [f"http://other.test/{number}" for number in range(33)]

    _, found = findings(tmp_path, f'[start]\nurls = {urls}\n[scope]\ninclude_hosts = ["a.test"]\n')

    assert len(found) == 21
    assert found[-1] == "sources/a.toml: start: 13 more start URLs cannot be requested"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("text/html", None),
        ("TEXT/HTML ", None),
        ("image/*", None),
        ("*", None),
        ("*html", None),
        ("x-conference/x-cooltalk", None),
        ("html", 'is no MIME type, as "text/html" or "image/*"'),
        ("/html", 'is no MIME type, as "text/html" or "image/*"'),
        ("text/", 'is no MIME type, as "text/html" or "image/*"'),
        ("txt/html", "there is no type txt/ (did you mean text?)"),
        ("qqqqqq/*", "there is no type qqqqqq/"),
    ],
)
def test_mime_type_when_no_answer_can_have_it_then_it_is_said(text: str, reason: str | None) -> None:
    assert find_wrong_type(text) == reason


@pytest.mark.parametrize(
    ("contact", "placeholder"),
    [
        ("https://example.org/contact", True),
        ("crawler@acme.test", False),
    ],
)
def test_contact_when_it_is_nobodys_then_it_is_doubted(tmp_path: Path, contact: str, placeholder: bool) -> None:
    source = '[start]\nurls = ["http://a.test/"]\n[scope]\ninclude_hosts = ["a.test"]\n'

    doubts, _ = findings(tmp_path, source, contact=contact)

    assert len(doubts) == placeholder
    assert all("is a placeholder" in doubt for doubt in doubts)


def test_source_when_a_plugin_rewrites_its_start_urls_then_it_is_open(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "mine_rewriter.py").write_text(
        "from searchcrawl.plugins import Rewritten\n\n\n"
        "class Rewriter:\n"
        "    def open(self, source):\n"
        "        self.known = {'http://old.test/': 'http://a.test/'}\n\n"
        "    def rewrite(self, url, *, referrer):\n"
        "        return Rewritten(self.known[url])\n\n"
        "    def close(self):\n"
        "        self.known = {}\n"
    )
    text = """
    [start]
    urls = ["http://old.test/"]
    [scope]
    include_hosts = ["a.test"]
    [[rewrite]]
    plugin = "mine_rewriter:Rewriter"
    """

    assert findings(tmp_path, text) == ([], [])
    assert not caplog.records
