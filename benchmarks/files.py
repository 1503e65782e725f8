"""A tree of files: its first run, one in which nothing has changed, and some after a folder was renamed or closed; `make files`.

python -m benchmarks.files [--files 100000] [--folders 1000] [--keep DIR]

Each file has a line of its own. What is measured are whole processes, the embedded index included, and the lister alone, without a
store. The second run must read nothing and write no row; that and the numbers of documents are checked (ends with 1 where they differ). The result is
in benchmarks/out/files.json.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from benchmarks.machine import machine
from benchmarks.measured import PYTHON, ROOT, Cost, run_measured

OUT: Final = ROOT / "benchmarks" / "out" / "files.json"
_PROJECT: Final = 'contact = "bench@example.org"\n'
_SOURCE: Final = 'type = "file"\n\n[file]\nroots = ["{root}"]\n'
_SETTINGS: Final = "[settings]\ndefault = searchcrawl.settings\n"
#: A file that was changed less than this ago is read again in the next run.
_YOUNG_SECONDS: Final = 2.5
_LISTER: Final = """
import sys
from pathlib import Path
from searchcrawl.kinds.file.lister import FileLister
from searchcrawl.sources.loading import load_project, load_source

class Nothing:
    def find_mark(self, url): return None
    def has_entries(self, url): return False

project = load_project(Path(sys.argv[1]))
lister = FileLister(load_source(project, "tree"), project, Nothing(), lambda: False)
print(sum(len(part.entries) for part in lister.walk()))
"""


def make_tree(root: Path, files: int, folders: int) -> None:
    """So many files, spread over so many folders; one folder is the root alone."""
    for number in range(files):
        place = root if folders == 1 else root / f"{number % folders:04d}"
        if number < folders:
            place.mkdir(parents=True, exist_ok=True)
        (place / f"{number}.txt").write_text(f"file number {number}")


class Bench:
    """A project beside a tree, whose crawls are measured."""

    def __init__(self, folder: Path, files: int) -> None:
        self.folder, self.root, self.files = folder / "project", folder / "tree", files
        (self.folder / "sources").mkdir(parents=True)
        (self.folder / "searchcrawl.toml").write_text(_PROJECT)
        (self.folder / "scrapy.cfg").write_text(_SETTINGS)
        (self.folder / "sources" / "tree.toml").write_text(_SOURCE.format(root=self.root))
        self.figures: dict[str, Mapping[str, Any]] = {}

    def list(self) -> None:
        """The lister alone."""
        output = self.folder / "list.out"
        cost = run_measured([PYTHON, "-c", _LISTER, str(self.folder)], cwd=self.folder, output=output)
        self._note("listed, without a store", cost, {"listed": int(output.read_text())})

    def crawl(self, name: str) -> dict[str, int]:
        """One run; its counters."""
        output = self.folder / "crawl.out"
        command = [PYTHON, "-m", "searchcrawl", "crawl", "tree", "--json"]
        cost = run_measured(command, cwd=self.folder, output=output)
        counts: dict[str, int] = json.loads(output.read_text())["counts"]
        self._note(name, cost, counts)
        return counts

    def _note(self, name: str, cost: Cost, counts: Mapping[str, int]) -> None:
        self.figures[name] = {
            **asdict(cost),
            "cpu_us_per_file": cost.cpu_seconds * 1e6 / self.files,
            "counts": {name: count for name, count in counts.items() if count},
        }


def measure(folder: Path, files: int, folders: int) -> tuple[Bench, list[str]]:
    """Makes a tree and crawls it; returns what was wrong, too."""
    bench = Bench(folder, files)
    make_tree(bench.root, files, folders)
    time.sleep(_YOUNG_SECONDS)
    bench.list()
    first = bench.crawl("first run")
    second = bench.crawl("second run, nothing changed")
    wrong = [f"the first run has {first['new']} documents"] if first["new"] != files else []
    wrong += [f"the second run read {second['fetched']} files"] if second["fetched"] else []
    (bench.root / "new.txt").write_text("a new file")
    changed = next(path for path in sorted(bench.root.rglob("1.txt")))
    changed.write_text("a changed file")
    next(path for path in sorted(bench.root.rglob("2.txt"))).unlink()
    time.sleep(_YOUNG_SECONDS)
    three = bench.crawl("third run: one new, one changed, one gone")
    got = {name: three[name] for name in ("new", "changed", "deleted")}
    wrong += [f"the third run has {got}"] if set(got.values()) != {1} else []
    if folders > 1:
        (bench.root / "0003").rename(bench.root / "renamed")
        moved = bench.crawl("fourth run: a folder was renamed")
        (bench.root / "renamed").chmod(0o700)
        closed = bench.crawl("fifth run: a folder was closed")
        for name, counts, key in (
            ("fourth", moved, "new"),
            ("fourth", moved, "not_converted"),
            ("fifth", closed, "changed"),
        ):
            wrong += [f"the {name} run has {counts[key]} {key}"] if counts[key] != files // folders else []
    return bench, wrong


def show(figures: Mapping[str, Mapping[str, Any]]) -> None:
    """The figures as a table."""
    table = Table("run", "wall s", "CPU s", "CPU µs a file", "peak RSS MB", "own MB")
    for name, one in figures.items():
        mb = [f"{one[key] / 1e6:.0f}" for key in ("peak_rss_bytes", "peak_own_bytes")]
        table.add_row(
            name, f"{one['wall_seconds']:.1f}", f"{one['cpu_seconds']:.1f}", f"{one['cpu_us_per_file']:.1f}", *mb
        )
    Console().print(table)


def main() -> int:
    """Measures, shows, and writes the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--folders", type=int, default=1_000)
    parser.add_argument("--keep", type=Path, help="leave tree and project in this folder")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        # Else nobody may pass it, and a folder in it that is closed changes nothing.
        Path(scratch).chmod(0o755)
        folder = given.keep or Path(scratch)
        bench, wrong = measure(folder, given.files, given.folders)
    show(bench.figures)
    OUT.parent.mkdir(exist_ok=True)
    found = json.loads(OUT.read_text()) if OUT.exists() else {}
    found[f"{given.files} files in {given.folders} folders"] = {"machine": machine(), "runs": bench.figures}
    OUT.write_text(json.dumps(found, indent=1))
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    os.umask(0o022)
    sys.exit(main())
