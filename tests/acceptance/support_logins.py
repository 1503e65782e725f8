"""A source of a site behind a login, which is no ``SiteProcess``, and what a crawl of it left; URLs by their paths."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from searchcrawl.index.opening import open_index
from searchcrawl.index.receiver import SearchIndex
from searchcrawl.sources.loading import load_project
from tests.crawl_forks import COMMANDS
from tests.site.expected import short
from tests.stored_rows import query_columns


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginProject:
    """The project in ``folder``; ``host`` is the one whose pages are told."""

    folder: Path
    host: str

    def run(self, *options: str) -> int:
        """One run; its exit code. What it prints is kept."""
        ended = COMMANDS.run(self.folder, "crawl", "demo", "--json", *options)
        (self.folder / "printed.txt").write_text(ended.stdout + ended.stderr, "utf-8")
        return ended.returncode

    @property
    def last_status(self) -> dict[str, Any]:
        """What the last run printed."""
        status: dict[str, Any] = json.loads((self.folder / "printed.txt").read_text("utf-8").splitlines()[0])
        return status

    def rows(self) -> dict[str, tuple[int, str]]:
        """The code and the error of each row of the host."""
        rows = query_columns(self.folder, "SELECT url, code, error FROM urls")
        found = [(*short(row["url"]).partition("/"), row) for row in rows]
        return {f"/{path}": (row["code"], row["error"] or "") for host, _, path, row in found if host == self.host}

    def codes(self) -> dict[str, int]:
        """The code of each row of the host."""
        return {path: code for path, (code, _) in self.rows().items()}

    def versions(self) -> dict[str, int]:
        """The crawl_version of each document of the index."""
        with closing(open_index(load_project(self.folder))) as index:
            assert isinstance(index, SearchIndex)
            return {"/" + short(one.url).partition("/")[2]: one.crawl_version for one in index.scan("demo")}

    def written(self) -> str:
        """All that was printed and logged, the store and the cache."""
        files = [path for path in self.folder.rglob("*") if path.is_file() and path.parent.name != "sources"]
        return "".join(path.read_bytes().decode("latin-1") for path in files)
