"""A project with a source of files, the tree that it reads, and what its crawls, its store and its index say."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote_from_bytes, unquote_to_bytes

from searchcrawl.index.opening import open_index
from searchcrawl.index.receiver import SearchQuery
from searchcrawl.sources.loading import load_project
from tests.crawl_forks import COMMANDS, PAUSE
from tests.site.client import SCRAPY_CFG, configure
from tests.site.toml_text import to_toml
from tests.stored_rows import query_columns

#: A file that was changed less than this ago is read again in the next run.
YOUNG_SECONDS: Final = 2.0
#: Files whose names are hard, and that every server shows which takes any bytes but slashes: all have the word "strange".
STRANGE: Final = (
    b"\xff\xfe.txt",
    b"a\nb.txt",
    b"%2e%2e.txt",
    b"n" * 251 + b".txt",
    "ä.txt".encode(),
    "a\u0308.txt".encode(),
    b"Case.txt",
    b"case.txt",
    b"C|.txt",
    b"q?x#y.txt",
    b"a\\b.txt",
    b" .txt",
)
_ROWS: Final = "SELECT url, code, rule, error FROM urls"


class FileProject:
    """A folder with a project, and beside it the root of its source ``files``.

    Where a server shows that root, ``served`` is its URL there, without a slash at the end, and ``access`` are the keys of ``[file]``
    by which the server lets in.
    """

    def __init__(
        self,
        folder: Path,
        *,
        project: dict[str, Any] | None = None,
        served: str | None = None,
        access: dict[str, Any] | None = None,
        **tables: Any,
    ) -> None:
        self.folder = folder / "project"
        self.root = folder / "root"
        self.url = served or self.root.as_uri()
        self.written = {"roots": [served or str(self.root)], **(access or {})}
        (self.folder / "sources").mkdir(parents=True)
        self.root.mkdir()
        (self.folder / "scrapy.cfg").write_text(SCRAPY_CFG, "utf-8")
        configure(self.folder, **(project or {}))
        self.edit(**tables)

    def edit(self, *, file: dict[str, Any] | None = None, **tables: Any) -> None:
        """Writes the source file anew; keys of ``file`` that are None are left out."""
        own = {key: value for key, value in {**self.written, **(file or {})}.items() if value is not None}
        values = {"type": "file", "file": own, **tables}
        (self.folder / "sources" / "files.toml").write_text(to_toml(values), "utf-8")

    def fill(self, files: Mapping[str, str | bytes]) -> None:
        """Writes files by their paths below the root."""
        for name, content in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())

    def fill_strange(self, names: Sequence[bytes] = STRANGE) -> list[str]:
        """Writes files with hard names into the root; their paths."""
        for number, name in enumerate(names):
            with open(os.fsencode(self.root) + b"/" + name, "w", encoding="utf-8") as file:  # noqa: PTH123 - bytes
                file.write(f"a strange name of number {number}")
        return [os.fsdecode(name) for name in names]

    def settle(self) -> None:
        """Waits until all files are as old as they must be to be told from a later version."""
        newest = 0.0
        for *_, names, folder in os.fwalk(self.root):
            found = (os.stat(name, dir_fd=folder, follow_symlinks=False).st_ctime for name in names)
            newest = max([newest, *found])
        time.sleep(max(0.0, newest + YOUNG_SECONDS + 0.1 - time.time()))

    def crawl(self, *options: str, code: int = 0, settled: bool = True, **variables: str) -> dict[str, int]:
        """The counters of a run, which has to end with ``code``."""
        if settled:
            self.settle()
        ended = COMMANDS.run(self.folder, "crawl", "files", "--json", *options, **{PAUSE: "0.01", **variables})
        assert ended.returncode == code, (ended.returncode, ended.stderr)
        counts: dict[str, int] = json.loads(ended.stdout)["counts"] if ended.stdout else {}
        return counts

    def command(self, *arguments: str, code: int = 0) -> str:
        """What a command prints, which has to end with ``code``."""
        ended = COMMANDS.run(self.folder, *arguments)
        assert ended.returncode == code, (ended.returncode, ended.stdout, ended.stderr)
        return ended.stdout

    def ask(self, *arguments: str, code: int = 0) -> dict[str, Any]:
        """The object that a command prints as JSON."""
        found: dict[str, Any] = json.loads(self.command(*arguments, "--json", code=code))
        return found

    def identify(self, name: str | bytes) -> str:
        """The identity of a file by its path below the root."""
        return f"{self.url}/{quote_from_bytes(os.fsencode(name), safe='/-._~')}"

    def name(self, url: str) -> str:
        """The path of a file below the root by its identity."""
        return os.fsdecode(unquote_to_bytes(url.removeprefix(f"{self.url}/")))

    def found(self, words: str = "*") -> list[str]:
        """The paths of all files that a search finds, sorted."""
        with closing(open_index(load_project(self.folder))) as index:
            hits = index.search(SearchQuery(words=words, source="files", rows=1000)).hits
            return sorted(self.name(hit.fields["url"]) for hit in hits)

    def indexed(self) -> list[str]:
        """The paths of all files of the index, sorted; one that is there twice is listed twice."""
        with closing(open_index(load_project(self.folder))) as index:
            return sorted(self.name(entry.url) for entry in index.scan("files"))

    def rows(self) -> dict[str, tuple[int, str | None]]:
        """The code and the rule of each row."""
        return {self.name(row["url"]): (row["code"], row["rule"]) for row in query_columns(self.folder, _ROWS)}
