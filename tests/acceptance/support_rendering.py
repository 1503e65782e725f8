"""A project whose pages a browser of the tests renders."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.acceptance.support_project import CrawlProject, new_project
from tests.crawl_forks import BROWSER, COMMANDS
from tests.site.client import SiteProcess

HOST = "www.acme.test"
SHELL = "<html><head><title>App</title></head><body><div id=root></div><script src=/app.js></script></body></html>"
WORDS = "amber birch cedar delta ember frost grove heath inlet jetty knoll larch maple north ocean pearl quartz ridge"


def text_of(name: str, count: int = 20) -> str:
    return " ".join(f"{name} {WORDS}" for _ in range(count))


def plain(name: str, *links: str, script: str = "") -> str:
    """A page that is whole without a browser; with a script it may be one of the sample that is looked at again."""
    anchors = "".join(f"<a href='{link}'>{link}</a> " for link in links)
    return f"<html><head><title>{name}</title>{script}</head><body><p>{text_of(name)}</p>{anchors}</body></html>"


def app(name: str, *links: str) -> str:
    anchors = "".join(f"<a href='{link}'>{link}</a> " for link in links)
    return f"<html><head><title>{name}</title></head><body><div id=root><p>{text_of(name)}</p>{anchors}</div></body></html>"


@dataclass(frozen=True, slots=True)
class Rendering:
    """A project whose browser is that of the tests."""

    project: CrawlProject
    folder: Path

    def pages(self, **pages: Any) -> None:
        (self.folder / "pages.json").write_text(json.dumps({f"/{path}": page for path, page in pages.items()}))

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        (self.folder / "asked.txt").write_text("")
        return COMMANDS.run(self.project.folder, *arguments, **{BROWSER: str(self.folder)})

    def ask(self, *arguments: str) -> dict[str, Any]:
        """The object that a command prints, which has to end well."""
        ended = self.run(*arguments, "--json")
        assert ended.returncode == 0, ended.stderr
        answer: dict[str, Any] = json.loads(ended.stdout)
        return answer

    def crawl(self) -> dict[str, int]:
        counts: dict[str, int] = self.ask("crawl", "demo")["counts"]
        return counts

    def asked(self) -> list[str]:
        """The paths, with fragments, that the browser was asked for since the last command began."""
        lines = (self.folder / "asked.txt").read_text().splitlines()
        parts = [urlsplit(line) for line in lines if line != "closed"]
        return [f"{part.path}#{part.fragment}" if part.fragment else part.path for part in parts]


def rendering(tmp_path: Path, site: SiteProcess, *starts: str, **overrides: Any) -> Rendering:
    begin = [site.url(HOST, path) for path in starts or ("/begin.html",)]
    values = {
        "start": {"urls": begin, "sitemaps": "off"}, "render": {"mode": "auto"},
        "scope": {"include_hosts": [f"={HOST}"], "include_urls": ["*"], "exclude_urls": ["*/excluded*"],
                  # The pages of a test are all alike.
                  "trap_after": 0}, **overrides,
    }  # fmt: skip
    folder = tmp_path / "browser"
    folder.mkdir()
    found = Rendering(new_project(tmp_path / "project", site, **values), folder)
    found.pages()
    return found
