"""A project with a source of files, and what its lister says, without a crawl."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from searchcrawl.kinds.file.lister import FileLister
from searchcrawl.kinds.file.reader import FileReader
from searchcrawl.listing.model import Entry, ListedPart, ListingEnd, Read, ReadRequest, SameBody, Unread
from searchcrawl.sources.loading import load_project
from tests.source_files import loaded, write_project, write_source

#: Long ago for a file, whose time of change nobody can set.
OLD_MS = 10_000


@dataclass
class Marks:
    """What the store would know."""

    marks: dict[str, str] = field(default_factory=dict)
    known: set[str] = field(default_factory=set)

    def find_mark(self, url: str) -> str | None:
        return self.marks.get(url)

    def has_entries(self, url: str) -> bool:
        return any(each.startswith(url) for each in self.known)


@dataclass
class Listing:
    """All that a lister said of one walk."""

    parts: list[ListedPart]

    @property
    def entries(self) -> dict[str, Entry]:
        return {entry.url: entry for part in self.parts for entry in part.entries}

    @property
    def urls(self) -> set[str]:
        """What is listed, without what is left out."""
        return {url for url, entry in self.entries.items() if entry.refusal is None}

    @property
    def refusals(self) -> dict[str, str]:
        """What is left out, files and folders, and why."""
        found = {url: entry.refusal for url, entry in self.entries.items() if entry.refusal is not None}
        return found | {url: end.refusal for url, end in self.ends.items() if end.refusal is not None}

    @property
    def ends(self) -> dict[str, ListingEnd]:
        return {part.url: part.end for part in self.parts if part.end is not None}

    @property
    def failures(self) -> dict[str, tuple[int, str | None]]:
        return {url: (end.code, end.error) for url, end in self.ends.items() if end.is_failure}

    def token(self, url: str) -> bytes:
        return self.entries[url].token

    def facts(self, url: str) -> bytes:
        return self.entries[url].facts


class FileSource:
    """A source of files in a project of its own."""

    def __init__(self, folder: Path, root: Path, *, scope: str = "", more: str = "", **table: Any) -> None:
        folder.mkdir(exist_ok=True)
        self.root = root
        self.marks = Marks()
        write_project(folder)
        values = "\n".join(f"{name} = {_to_toml(value)}" for name, value in {"roots": [str(root)], **table}.items())
        write_source(folder, f'type = "file"\n{more}\n[file]\n{values}\n[scope]\n{scope}\n')
        self.project = load_project(folder)
        self.source = loaded(folder)

    @property
    def url(self) -> str:
        """The identity of the root."""
        return self.root.as_uri() + "/"

    def list(self, is_stopping: Callable[[], bool] = lambda: False) -> Listing:
        """Lists all, and keeps the marks for the next time."""
        lister = FileLister(self.source, self.project, self.marks, is_stopping)
        found = Listing(list(lister.walk()))
        self.marks.marks |= {url: end.mark for url, end in found.ends.items() if end.mark is not None}
        self.marks.known |= found.urls
        return found

    def read(
        self, *names: str | bytes, is_listed: bool = True, version: int | None = None
    ) -> list[Read | SameBody | Unread]:
        """Reads files by their paths below the root; their bodies are known in ``version``."""
        reader = FileReader(self.source, self.project, self.marks)
        try:
            requests = [ReadRequest(self.identify(name), is_listed, version) for name in names]
            return list(reader.read(requests))
        finally:
            reader.close()

    def identify(self, name: str | bytes) -> str:
        from urllib.parse import quote_from_bytes

        return self.url + quote_from_bytes(os.fsencode(name), safe="/-._~")


def _to_toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{', '.join(_to_toml(each) for each in value)}]"
    return repr(value) if isinstance(value, int | float) else f'"{value}"'


def fill(root: Path, files: Mapping[str, str | bytes]) -> None:
    """Writes files below a folder."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
