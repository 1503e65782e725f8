"""Peers and searchcrawl on the same pages, the same machine and the same Solr, in turn; `make bench`.

Shown are pages a second of the whole process, CPU of the process and its children (not of nginx and Solr), and the
peak memory of the main process. Ends with 1 where searchcrawl missed or doubled a page, or fetched or sent one for
nothing; the figures wanted are shown beside those reached. Everything is in ``benchmarks/out``, the result in its
result.json; `make results` puts it into RESULTS.md.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.machine import machine
from benchmarks.material import CORPORA, DOCS, prepare_site, result_name
from benchmarks.nginx_server import Site, serving
from benchmarks.peer_programs import PEERS, PeerAbsent
from benchmarks.runs import Bench, Run
from benchmarks.warming import wait_until_calm, warm_up
from benchmarks.wget_pages import pages_by_wget
from tests.solr_server import RunningSolr, start_solr

WORK = Path(__file__).resolve().parent / "out"
MEGABYTE = 1_000_000
#: What is asked for here; (b) is set against (a) and (e) of the same round.
MIN_SPEED_RATIO = 4.5
MAX_CPU_RATIO = 0.24
MAX_UNCHANGED_CPU_MS = 1.0
MIN_UNCHANGED_PAGES_PER_SECOND = 1000
MAX_PEAK_RSS_MB = 300
MIN_PROCESSES_RATIO = 1.3


def main() -> int:
    """Runs the rounds, prints tables, writes result.json; 1 where a check of content failed."""
    parser = argparse.ArgumentParser(prog="make bench ARGS=…", description="See benchmarks/bench.py.")
    parser.add_argument("--rounds", type=int, default=3, help="how often everything is done (3)")
    letters = ", ".join(f"{peer.letter} {peer.name}" for peer in PEERS)
    only = (
        f"a plain Scrapy, b searchcrawl to Solr, c to the local index, d again after b, {letters}, p as b with"
        " --processes; e.g. abe (all)"
    )
    parser.add_argument("--only", default="abcdefghp", help=only)
    parser.add_argument("--processes", type=int, default=2, metavar="N", help="the processes of p (2)")
    parser.add_argument("--in-flight", type=int, default=16, help="requests at once, for all (16)")
    corpora = "which pages: docs (about 3,850 of 25 KB), small, large, few"
    parser.add_argument("--corpus", choices=CORPORA, default=DOCS, help=corpora)
    arguments = parser.parse_args()
    site_root = prepare_site(WORK, arguments.corpus)
    for folder in ("rounds", "solr"):
        shutil.rmtree(WORK / folder, ignore_errors=True)
    console = Console() if sys.stdout.isatty() else Console(width=140)
    commands, absent = build_peers(arguments.only, console)
    with serving(site_root, WORK / "nginx") as site, start_solr(WORK / "solr") as solr:
        warm_up(solr, site_root)
        rounds = [
            run_round(site, solr, number, arguments, commands, console) for number in range(1, arguments.rounds + 1)
        ]
    ok = all(one["ok"] for one in rounds)
    result = {"machine": machine(), "in_flight": arguments.in_flight, "absent": absent, "rounds": rounds, "ok": ok}
    written = WORK / result_name(arguments.corpus)
    written.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    console.print(f"result: {written}")
    return 0 if ok else 1


def build_peers(wanted: str, console: Console) -> tuple[dict[str, Sequence[str]], dict[str, str]]:
    """The commands of the peers that can be built, and why the others cannot; by letter and by name."""
    commands: dict[str, Sequence[str]] = {}
    absent: dict[str, str] = {}
    for peer in PEERS:
        if peer.letter in wanted:
            try:
                commands[peer.letter] = peer.build(WORK / "peers")
            except PeerAbsent as reason:
                absent[peer.name] = str(reason)
                console.print(f"absent: {peer.name}: {reason}")
    return commands, absent


def run_round(
    site: Site,
    solr: RunningSolr,
    number: int,
    arguments: argparse.Namespace,
    commands: dict[str, Sequence[str]],
    console: Console,
) -> dict[str, Any]:
    """All wanted runs once; prints their table."""
    folder = WORK / "rounds" / str(number)
    folder.mkdir(parents=True)
    load = os.getloadavg()[0]
    pages = pages_by_wget(site)
    console.print(f"round {number}: wget reaches {len(pages)} HTML pages; load before it {load:.1f}")
    bench = Bench(site=site, solr=solr, pages=pages, folder=folder, number=number, in_flight=arguments.in_flight)
    steps = steps_of(bench, commands, arguments.processes)
    runs: dict[str, Run] = {}
    for letter in sorted(set(arguments.only) & steps.keys()):
        wait_until_calm(solr)
        runs[letter] = run = steps[letter]()
        console.print(f"{run.name}: {run.cost.wall_seconds:.1f} s, {run.cpu_ms_per_page:.2f} ms of CPU a page")
    checks = content_checks(runs, len(pages))
    figures = wanted_figures(runs)
    show(console, runs, checks, figures)
    return {
        "wget_pages": len(pages),
        "load_before": load,
        "runs": {letter: as_record(run) for letter, run in runs.items()},
        "checks": checks,
        "figures": figures,
        "ok": all(checks.values()),
    }


def steps_of(bench: Bench, commands: dict[str, Sequence[str]], processes: int) -> dict[str, Callable[[], Run]]:
    """What each letter does."""
    steps: dict[str, Callable[[], Run]] = {
        "a": bench.plain_scrapy,
        "b": bench.searchcrawl_to_solr,
        "c": bench.searchcrawl_to_local,
        "d": bench.searchcrawl_again,
        "p": partial(bench.searchcrawl_in_processes, processes),
    }
    for peer in PEERS:
        if peer.letter in commands:
            steps[peer.letter] = partial(bench.peer, peer.letter, peer.name, commands[peer.letter])
    return steps


def content_checks(runs: dict[str, Run], page_count: int) -> dict[str, bool]:
    """What must hold of searchcrawl on any machine; what a peer loses is shown, and no fault of ours."""
    checks: dict[str, bool] = {}
    for letter in "bdp":
        if (run := runs.get(letter)) and run.comparison:
            checks[f"{letter}: Solr holds wget's pages, each once"] = run.comparison.equal
    if local := runs.get("c"):
        checks["c: every page fetched"] = local.pages == page_count
    if (again := runs.get("d")) and (first := runs.get("b")):
        checks["d: no document sent"] = again.received == 0
        checks["d: no page body received"] = again.bodies == 0
        checks["d: as many documents as before"] = again.documents == first.documents
    return checks


def wanted_figures(runs: dict[str, Run]) -> dict[str, dict[str, float | bool]]:
    """The figures that are asked for, with what was reached."""

    def at_most(reached: float, limit: float) -> dict[str, float | bool]:
        return {"reached": round(reached, 3), "wanted_at_most": round(limit, 3), "met": reached <= limit}

    def at_least(reached: float, limit: float) -> dict[str, float | bool]:
        return {"reached": round(reached, 3), "wanted_at_least": round(limit, 3), "met": reached >= limit}

    figures: dict[str, dict[str, float | bool]] = {}
    if (plain := runs.get("a")) and (ours := runs.get("b")):
        figures["b/a pages a second"] = at_least(ours.pages_per_second / plain.pages_per_second, MIN_SPEED_RATIO)
        figures["b/a CPU a page"] = at_most(ours.cpu_ms_per_page / plain.cpu_ms_per_page, MAX_CPU_RATIO)
    if ours := runs.get("b"):
        for letter in runs.keys() & {"e", "f", "g", "h"}:
            peer = runs[letter]
            figures[f"b CPU ms a page, under {letter}"] = at_most(ours.cpu_ms_per_page, peer.cpu_ms_per_page)
            if letter in "fg":
                figures[f"b pages a second, over {letter}"] = at_least(ours.pages_per_second, peer.pages_per_second)
    if again := runs.get("d"):
        figures["d CPU ms a page"] = at_most(again.cpu_ms_per_page, MAX_UNCHANGED_CPU_MS)
        figures["d pages a second"] = at_least(again.pages_per_second, MIN_UNCHANGED_PAGES_PER_SECOND)
    if (several := runs.get("p")) and (alone := runs.get("b")):
        ratio = several.pages_per_second / alone.pages_per_second
        figures["p/b pages a second"] = at_least(ratio, MIN_PROCESSES_RATIO)
    for letter in "bcdp":
        if run := runs.get(letter):
            figures[f"{letter} peak RSS MB"] = at_most(run.cost.peak_rss_bytes / MEGABYTE, MAX_PEAK_RSS_MB)
    return dict(sorted(figures.items()))


def show(
    console: Console, runs: dict[str, Run], checks: dict[str, bool], figures: dict[str, dict[str, float | bool]]
) -> None:
    """Prints the round."""
    table = Table(
        "run", "pages", "pages/s", "CPU ms", "RSS MB", "requests", "indexed", "sent", "pages/s ÷ a", "CPU ÷ a"
    )
    plain = runs.get("a")
    for run in runs.values():
        cells = [run.name, str(run.pages), f"{run.pages_per_second:.1f}", f"{run.cpu_ms_per_page:.2f}"]
        cells += [f"{run.cost.peak_rss_bytes / MEGABYTE:.0f}", str(run.requests), str(run.documents), str(run.received)]
        if plain:
            cells.append(f"{run.pages_per_second / plain.pages_per_second:.2f}")
            cells.append(f"{run.cpu_ms_per_page / plain.cpu_ms_per_page:.0%}")
        table.add_row(*cells)
    console.print(table)
    for run in runs.values():
        if (difference := run.comparison) is not None:
            console.print(f"{run.name[0]}: {difference.indexed} indexed, {difference.duplicates} duplicates", end="")
            console.print(f", by code {dict(difference.explained)}; missing {difference.missing[:5]}", end="")
            console.print(f", doubled {difference.doubled[:5]}, extra {difference.extra[:5]}")
    for name, holds in checks.items():
        console.print(f"{'ok    ' if holds else 'FAILED'} {name}")
    for name, figure in figures.items():
        wanted = ", ".join(f"{key} {value}" for key, value in figure.items() if key != "met")
        console.print(f"{'met   ' if figure['met'] else 'MISSED'} {name}: {wanted}")


def as_record(run: Run) -> dict[str, Any]:
    """A run for result.json, with the derived figures."""
    derived = {"pages_per_second": run.pages_per_second, "cpu_ms_per_page": run.cpu_ms_per_page}
    equal = None if run.comparison is None else run.comparison.equal
    return {**dataclasses.asdict(run), **derived, "equal_to_wget": equal}


if __name__ == "__main__":
    sys.exit(main())
