"""How often each rule of thumb is wrong on sites that it was not made on: `python -m benchmarks.decisions`, `make decisions`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path

from benchmarks.bench import WORK
from benchmarks.decisions.measure import Figures
from benchmarks.decisions.pages import measure_pages
from benchmarks.decisions.report import print_row, write_worst
from benchmarks.decisions.roots import prepare_root
from benchmarks.decisions.sites import MANUALS, Manual, Part

OUT = WORK / "decisions"


def main() -> int:
    """Measures the sites that are asked for."""
    arguments = _parse_arguments()
    for name, manual in _choose(arguments).items():
        folder = prepare_root(OUT, name, manual, arguments.unpacked)
        figures = measure_pages(name, folder, manual, most=arguments.pages)
        _keep(name, figures)
        print_row(name, figures)
    return 0


def _keep(name: str, figures: Figures) -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / f"pages-{name}.json").write_text(json.dumps(figures.as_dict(), ensure_ascii=False, indent=1), "utf-8")
    write_worst(OUT / f"pages-{name}.txt", figures)


def _choose(arguments: argparse.Namespace) -> Mapping[str, Manual]:
    names = [name for name in arguments.only.split(",") if name]
    if unknown := set(names) - set(MANUALS):
        raise SystemExit(f"decisions: no such site: {', '.join(sorted(unknown))}")
    parts = [Part(part) for part in arguments.part.split(",") if part]
    return {
        name: manual
        for name, manual in MANUALS.items()
        if (name in names or not names) and (manual.part in parts or names)
    }


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.decisions", description=__doc__)
    parser.add_argument("--only", default="", help="names of sites, separated by commas (all)")
    parser.add_argument("--part", default="named,seen", help="of which parts: named, seen, unseen (named,seen)")
    parser.add_argument(
        "--pages-only", action="store_true", help="pages from the disk, each by itself, without a crawl"
    )
    parser.add_argument("--pages", type=int, default=1000, help="with --pages-only: of each site, 0 for all (1000)")
    parser.add_argument(
        "--unpacked", type=Path, nargs="*", default=[], help="folders with a folder of each package, unpacked"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
