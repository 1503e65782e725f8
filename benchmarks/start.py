"""What a run costs in which nothing is due, beside `scrapy version`: `python -m benchmarks.start [--before REVISION]`.

A small site is crawled once, and then again and again, in turns with `scrapy version` in an empty folder and in that of
the project, where Scrapy loads the commands of the project as well. Two sources: `quiet` has `start.sitemaps = "off"`, so
that nothing is requested; `auto` is as most are, and asks for robots.txt and the sitemap of its host. Shown are the
medians of CPU (process and children) and of peak RSS, and the medians of what each costs of `scrapy version` in the
empty folder, and in the project, in the same round.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

from benchmarks.bench import WORK
from benchmarks.measured import PYTHON, ROOT, Cost, run_measured
from benchmarks.turns import export
from tests.site.client import SiteProcess, source_toml, write_project

FOLDER: Final = WORK / "start"
HOST: Final = "start.acme.test"
PAGES: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A command of ``module`` in a folder, with the searchcrawl of a checkout."""

    name: str
    module: str
    arguments: Sequence[str]
    folder: Path
    checkout: Path = ROOT

    def run(self) -> Cost:
        command = [PYTHON, "-m", self.module, *self.arguments]
        cost = run_measured(command, cwd=self.folder, output=FOLDER / "out", env={"PYTHONPATH": str(self.checkout)})
        if cost.exit_code:
            raise RuntimeError(f"{self.name}: exit {cost.exit_code}: see {FOLDER / 'out.err'}")
        return cost


def main() -> int:
    """Runs the rounds, and prints a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.start", description="See benchmarks/start.py.")
    parser.add_argument("--before", metavar="REVISION", help="of git, to compare with")
    parser.add_argument("--rounds", type=int, default=10, help="how often each is run (10)")
    arguments = parser.parse_args()
    shutil.rmtree(FOLDER, ignore_errors=True)
    project = FOLDER / "project"
    project.mkdir(parents=True)
    checkouts = {"now": ROOT}
    if arguments.before:
        checkouts["before"] = export(arguments.before, FOLDER / "before")
    # Scrapy looks for a project in the folders above, too.
    with tempfile.TemporaryDirectory() as empty, SiteProcess() as site:
        write_sources(project, site)
        cases = list_cases(Path(empty), project, checkouts)
        # The first run fetches everything, and bytecode is written.
        for case in cases:
            case.run()
        costs: dict[str, list[Cost]] = {case.name: [] for case in cases}
        for number in range(arguments.rounds):
            for case in cases if number % 2 else reversed(cases):
                costs[case.name].append(case.run())
    show(costs)
    return 0


def write_sources(project: Path, site: SiteProcess) -> None:
    """Writes the pages and both sources; no page is due a second time."""
    links = "".join(f"<a href=/{number}.html>{number}</a> " for number in range(PAGES))
    site.set_page(HOST, "/", f"<title>start</title><p>Where it begins. {links}")
    site.set_pages(HOST, {f"/{each}.html": f"<title>{each}</title><p>Page {each} of {PAGES}." for each in range(PAGES)})
    given: dict[str, Any] = {"scope": {"include_hosts": [HOST]}, "lifecycle": {"recrawl_every_hours": 24}}
    start = {"urls": [site.url(HOST, "/")]}
    write_project(project, site, "auto", start=start, **given)
    quiet = source_toml(site, start={**start, "sitemaps": "off"}, **given)
    (project / "sources" / "quiet.toml").write_text(quiet, "utf-8")


def list_cases(empty: Path, project: Path, checkouts: dict[str, Path]) -> list[Case]:
    """All that is measured; the first two are what the others are compared with."""
    cases = [
        Case(name="scrapy version, empty folder", module="scrapy", arguments=("version",), folder=empty),
        Case(name="scrapy version, project", module="scrapy", arguments=("version",), folder=project),
    ]
    for source in ("quiet", "auto"):
        for module in ("searchcrawl", "scrapy"):
            for when, checkout in checkouts.items():
                name = f"{module} crawl {source}, {when}"
                arguments = ("crawl", source)
                cases.append(Case(name=name, module=module, arguments=arguments, folder=project, checkout=checkout))
    return cases


def show(costs: dict[str, list[Cost]]) -> None:
    """Prints the table."""
    empty, project, *_ = costs.values()
    print("| command | CPU ms | of scrapy version | in the project | peak RSS MB |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for name, found in costs.items():
        cpu = median(cost.cpu_seconds for cost in found) * 1000
        ratios = [
            median(one.cpu_seconds / other.cpu_seconds for one, other in zip(found, base, strict=True))
            for base in (empty, project)
        ]
        rss = median(cost.peak_rss_bytes for cost in found) / 1e6
        print(f"| {name} | {cpu:.0f} | {ratios[0]:.2f} | {ratios[1]:.2f} | {rss:.0f} |")


if __name__ == "__main__":
    sys.exit(main())
