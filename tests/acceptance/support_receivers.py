"""Receivers besides the index, and what they have: an embedded index, and a class that writes lines of JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from searchcrawl.index.opening import open_index
from searchcrawl.index.receiver import SearchIndex, SearchQuery
from searchcrawl.sources.loading import load_project
from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_stories import page, pages, source
from tests.site.client import SiteProcess, configure
from tests.site.expected import short

HOST: Final = "receivers.acme.test"
NAMES: Final = ("a", "b", "c", "d")
#: It is away as long as there is a file of this name, and refuses the page that the file ``refused`` names.
AWAY: Final = "away"
SECOND: Final = {"type": "local"}
LINES: Final = {"class": "lines:Lines", "folder": "var/lines"}
BOTH: Final = {"second": SECOND, "lines": LINES}
#: An index that is away is not waited for.
HURRY: Final = ("-s", "SEARCHCRAWL_INDEX_PATIENCE_SECONDS=1")
CLASS: Final = '''
import json
import pathlib
import time

from searchcrawl.exceptions import IndexUnavailable
from searchcrawl.index.receiver import Receipt


class Lines:
    """Appends what it is told to a file, a line each; the file is written to the disk before it answers."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)

    def say(self, **line):
        with (self.folder / "all.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\\n")

    def begin(self, source, run):
        self.say(begin=source, run=run)

    def deliver(self, batch):
        if pathlib.Path("away").exists():
            raise IndexUnavailable("there is nobody")
        if pathlib.Path("raises").exists():
            raise LookupError("no such thing")
        if pathlib.Path("hangs").exists():
            time.sleep(600)
        if pathlib.Path("mute").exists():
            return []
        refused = pathlib.Path("refused")
        refused = refused.read_text() if refused.exists() else "none"
        receipts = []
        for each in [*batch.documents, *batch.removals]:
            if refused in getattr(each, "fields", {}).get("url", ""):
                receipts.append(Receipt(each.id, accepted=False, error="not this one"))
                continue
            receipts.append(Receipt(each.id, accepted=True))
            told = getattr(each, "change", "deleted")
            self.say(id=each.id, told=told, version=batch.crawl_version, fields=self.show(each))
        return receipts

    def show(self, each):
        fields = getattr(each, "fields", {})
        return {name: fields[name] for name in ("url", "title", "content") if name in fields}

    def end(self, outcome):
        self.say(end=outcome)
'''


def build(folder: Path, site: SiteProcess, given: dict[str, Any] = BOTH, /, **more: Any) -> CrawlProject:
    """A project with receivers, for a site of five pages; ``more`` is as in ``new_project``."""
    pages(site, HOST, **{name: page(f"page {name}") for name in NAMES})
    overrides = {**source(site, HOST), "lifecycle": {"max_delete_percent": 100}, **more}
    project = new_project(folder, site, options=HURRY, project={"receivers": given}, **overrides)
    (folder / "lines.py").write_text(CLASS, "utf-8")
    return project


def set_receivers(project: CrawlProject, receivers: dict[str, Any], **more: Any) -> None:
    """Edits searchcrawl.toml."""
    configure(project.folder, receivers=receivers, **more)


def read_told(project: CrawlProject) -> list[dict[str, Any]]:
    """All that the class was told."""
    path = project.folder / "var" / "lines" / "all.jsonl"
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []


def read_lines(project: CrawlProject) -> dict[str, dict[str, Any]]:
    """The line of each document that the class has, by its id: what is older than it has counts for nothing."""
    there: dict[str, dict[str, Any]] = {}
    for line in read_told(project):
        if "id" in line and line["version"] >= there.get(line["id"], {"version": 0})["version"]:
            there[line["id"]] = line
    return {key: line for key, line in there.items() if line["told"] != "deleted"}


def in_lines(project: CrawlProject) -> dict[str, str]:
    """The title of each document that the class has, by short URL."""
    return _titles(line["fields"] for line in read_lines(project).values())


def read_fields(project: CrawlProject, name: str | None = None) -> dict[str, dict[str, Any]]:
    """The fields of each document of the index, or of a receiver that is one, by its id."""
    loaded = load_project(project.folder)
    with closing(open_index(loaded if name is None else loaded.of_receiver(name))) as index:
        assert isinstance(index, SearchIndex)
        hits = index.search(SearchQuery(words="*", source=project.name, rows=1000)).hits
    return {hit.id: dict(hit.fields) for hit in hits}


def in_index(project: CrawlProject, name: str | None = None) -> dict[str, str]:
    """The title of each of them, by short URL."""
    return _titles(read_fields(project, name).values())


def _titles(documents: Iterable[dict[str, Any]]) -> dict[str, str]:
    return {short(fields["url"]): fields.get("title", "") for fields in documents}


def list_receivers(project: CrawlProject, *arguments: str) -> dict[str, dict[str, Any]]:
    """What ``receivers list`` says, by name."""
    return {row["receiver"]: row for row in project.lines("receivers", "list", *arguments)}


def assert_same(project: CrawlProject, *, names: tuple[str, ...] = ("second", "lines")) -> None:
    """All receivers have what the index has, and nothing waits."""
    expected = in_index(project)
    for name in names:
        assert (in_lines(project) if name == "lines" else in_index(project, name)) == expected, name
    told = list_receivers(project)
    assert {name: (told[name]["waiting"], told[name]["state"]) for name in names} == dict.fromkeys(names, (0, "active"))
