"""Whether a change made the crawler dearer: this checkout and another revision in turns; `make turns REVISION=…`.

Each round crawls the site of `make bench` into Solr (b) and a second time with nothing changed (d), with both
revisions; who begins changes from round to round. Shown is the difference of the CPU time of a whole run, process and
children: the mean over the rounds, and the bounds between which it lies with 95 % (Student's t of the paired
logarithms), for one run on a shared machine says little. The other revision runs with the same libraries.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Final

from benchmarks.bench import WORK
from benchmarks.machine import machine
from benchmarks.material import CORPORA, DOCS, prepare_site
from benchmarks.measured import ROOT
from benchmarks.nginx_server import Site, serving
from benchmarks.searchcrawl_project import SOURCE, Project
from benchmarks.warming import wait_until_calm, warm_up
from tests.solr_server import RunningSolr, start_solr

FOLDER: Final = WORK / "turns"
IN_FLIGHT: Final = 16
#: Of Student's t for 2 to 30 rounds: 97.5 % lie below (two-sided 95 %); more rounds take the last.
_T: Final = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145),
    *(2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045),
)


def main() -> int:
    """Runs the rounds, and prints each and the difference."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.turns", description="See benchmarks/turns.py.")
    parser.add_argument("revision", help="of git, to compare with: a commit, a tag, a branch")
    parser.add_argument("--rounds", type=int, default=12, help="how often both are run (12)")
    parser.add_argument("--now", default="", metavar="TOML", help="what this checkout has in its source file besides")
    parser.add_argument("--corpus", choices=CORPORA, default=DOCS, help="which pages (docs)")
    arguments = parser.parse_args()
    site_root = prepare_site(WORK, arguments.corpus)
    shutil.rmtree(FOLDER, ignore_errors=True)
    checkouts = {"before": export(arguments.revision, FOLDER / "before"), "now": ROOT}
    seconds: dict[tuple[str, str], list[float]] = {(name, run): [] for name in checkouts for run in "bd"}
    with serving(site_root, FOLDER / "nginx") as site, start_solr(FOLDER / "solr") as solr:
        warm_up(solr, site_root)
        for number in range(arguments.rounds):
            for name in sorted(checkouts, reverse=bool(number % 2)):
                more = arguments.now if name == "now" else ""
                for run, cpu in run_both(site, solr, FOLDER / f"{number}-{name}", checkouts[name], more).items():
                    seconds[name, run].append(cpu)
            last = ", ".join(f"{name} {run} {cpu[-1]:.2f} s" for (name, run), cpu in seconds.items())
            print(f"round {number + 1}: {last}", flush=True)
    for run in "bd":
        print(compare(run, seconds["before", run], seconds["now", run]))
    figures = {f"{name} {run}": cpu for (name, run), cpu in seconds.items()}
    result = {"machine": machine(), "revision": arguments.revision, "cpu_seconds": figures}
    (WORK / "turns.json").write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    return 0


def export(revision: str, folder: Path) -> Path:
    """The files of ``revision`` in ``folder``, without a work tree that git would have to forget again."""
    packed = subprocess.run(["git", "archive", revision], cwd=ROOT, capture_output=True, check=True).stdout
    folder.mkdir(parents=True)
    subprocess.run(["tar", "-x"], cwd=folder, input=packed, check=True)
    return folder


def run_both(site: Site, solr: RunningSolr, folder: Path, checkout: Path, more: str) -> dict[str, float]:
    """CPU seconds of (b) and of (d) after it, into a core of their own; ``more`` is added to the source file."""
    core = folder.name.replace("-", "_")
    url = solr.create_core(core)
    project = Project.create(folder, start_url=site.root_url, core_url=url, in_flight=IN_FLIGHT, checkout=checkout)
    with (folder / "sources" / f"{SOURCE}.toml").open("a", encoding="utf-8") as file:
        file.write(f"\n{more}\n")
    cpu: dict[str, float] = {}
    for run in "bd":
        wait_until_calm(solr)
        cpu[run] = project.crawl(folder / f"{run}.out").cost.cpu_seconds
    solr.delete_core(core)
    shutil.rmtree(folder)
    return cpu


def compare(run: str, before: Sequence[float], now: Sequence[float]) -> str:
    """One line: both medians, the mean difference and its bounds."""
    ratios = [math.log(new / old) for old, new in zip(before, now, strict=True)]
    mean = fmean(ratios)
    reach = (
        _T[min(len(ratios) - 2, len(_T) - 1)] * stdev(ratios) / math.sqrt(len(ratios)) if len(ratios) > 1 else math.inf
    )
    low, middle, high = (f"{math.expm1(min(value, 9)):+.1%}" for value in (mean - reach, mean, mean + reach))
    seconds = f"{median(before):.2f} s before, {median(now):.2f} s now (medians of {len(before)})"
    return f"{run}: CPU of a run {seconds}; difference {middle}, between {low} and {high} with 95 %"


if __name__ == "__main__":
    sys.exit(main())
