"""Many hosts at once, at the pace that each allows: searchcrawl, and plain Scrapy beside it; `make hosts`.

python -m benchmarks.hosts [--hosts 50,300,2000,10000] [--pages N] [--delays 0,1,5] [--concurrency 256] [--no-peer] [--rounds 1]

A server of its own (hosts_server.py) has as many virtual hosts as asked for, with pages of 8 KB. Each crawl begins with the home
pages of all of them, in a file, and is a process of its own; searchcrawl writes the embedded index, plain Scrapy a feed. Both
keep the same delay and as many requests in flight. The server's log says how fast they went, whether a host was asked too
early, and in how many seconds nothing was asked for although something might have been (hosts_log.py). Names are
answered by hosts_names/sitecustomize.py, for both. The result is in benchmarks/out/many-hosts.json, where a run
replaces the one with the same hosts, pages, delay and crawler; `make results` puts it into RESULTS.md. Ends with 1 where
searchcrawl missed a page or asked too early.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Column, Table

from benchmarks.hosts_log import as_figures, judge, read
from benchmarks.hosts_server import host_name
from benchmarks.hosts_table import HEAD, PLAIN, place_of, rows_of
from benchmarks.machine import machine
from benchmarks.measured import PYTHON, ROOT, Cost, run_measured
from benchmarks.searchcrawl_project import Project
from benchmarks.turns import export

OUT: Final = Path(__file__).resolve().parent / "out"
RESULT: Final = "many-hosts.json"
NAMES: Final = Path(__file__).resolve().parent / "hosts_names"
SEARCHCRAWL: Final = "searchcrawl"
SIZES: Final = (50, 300, 2_000, 10_000)
#: Pages of a host, with the home page, so that the requests of a run take half a minute or more: up to so many hosts.
_PAGES: Final = ((300, 21), (2_000, 11), (sys.maxsize, 4))
#: While there is no delay; with one, both have one request to a host in flight.
HOST_CONCURRENCY: Final = 4
_SOURCE: Final = """\
type = "web"

[start]
files = ["hosts.txt"]

[scope]
include_hosts = ["hosts.test"]

[fetch]
concurrency = {concurrency}
host_concurrency = {host_concurrency}
delay_seconds = {delay:g}
private_networks = ["127.0.0.0/8"]
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What is crawled and how; ``delay`` and ``latency_ms`` are those of a host."""

    hosts: int
    pages: int
    delay: float
    concurrency: int
    latency_ms: float = 0.0
    lookup_ms: float = 0.0

    @property
    def allowed_per_second(self) -> float | None:
        """The requests that the delays allow; None without a delay."""
        return self.hosts / self.delay if self.delay else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Crawl:
    """A run of a crawler: what it cost, how many documents it made, and the figures of hosts_log.py."""

    crawler: str
    cost: Cost
    documents: int
    figures: Mapping[str, Any]
    server_cpu_seconds: float


def main() -> int:
    """Runs all cases in all rounds; prints a table."""
    arguments = read_arguments()
    out = arguments.out or OUT / RESULT
    folder = out.resolve().parent / "many-hosts"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    checkouts = {SEARCHCRAWL: ROOT}
    if arguments.before:
        checkouts[f"{SEARCHCRAWL} {arguments.before}"] = export(arguments.before, folder / "before")
    records: list[dict[str, Any]] = []
    for case in cases_of(arguments):
        done = []
        for number in range(arguments.rounds):
            # Who begins changes from round to round.
            crawlers = [*checkouts, *([PLAIN] if arguments.peer else [])]
            for crawler in reversed(crawlers) if number % 2 else crawlers:
                load = os.getloadavg()[0]
                crawl = run(case, crawler, checkouts.get(crawler), folder / "run")
                done.append(as_record(case, crawl, load))
                print(describe(done[-1]), flush=True)
        # All of them take an hour.
        add(out, done)
        records += done
    show(rows_of(records))
    print(f"result: {out}")
    failed = [line for record in records if record["crawler"] == SEARCHCRAWL for line in faults(record)]
    print("".join(f"FAILED {line}\n" for line in failed), end="")
    return 1 if failed else 0


def read_arguments() -> argparse.Namespace:
    """The words of the command."""
    parser = argparse.ArgumentParser(prog="make hosts ARGS=…", description="See benchmarks/hosts.py.")
    sizes = ",".join(map(str, SIZES))
    parser.add_argument(
        "--hosts", type=_numbers(int), default=SIZES, help=f"numbers of hosts, as many as 100000 ({sizes})"
    )
    chosen = ", ".join(f"{pages} for {most:,} hosts" for most, pages in _PAGES[:-1])
    parser.add_argument(
        "--pages", type=int, help=f"pages of a host, with its home page ({chosen}, else {_PAGES[-1][1]})"
    )
    parser.add_argument("--delays", type=_numbers(float), default=(0.0, 1.0, 5.0), help="seconds (0,1,5)")
    parser.add_argument("--concurrency", type=int, default=256, help="requests in flight (256)")
    parser.add_argument("--latency-ms", type=float, default=0, help="how long each answer takes (0)")
    parser.add_argument("--lookup-ms", type=float, default=0, help="how long each look-up of a name takes (0)")
    peer = "plain Scrapy beside it (it is)"
    parser.add_argument("--peer", action=argparse.BooleanOptionalAction, default=True, help=peer)
    parser.add_argument("--before", metavar="REVISION", help="of git, to compare with")
    parser.add_argument("--rounds", type=int, default=1, help="how often everything is done (1)")
    parser.add_argument("--out", type=Path, help="where the result goes, and what is made on the way")
    return parser.parse_args()


def _numbers(kind: type[int | float]) -> Callable[[str], tuple[float, ...]]:
    return lambda text: tuple(kind(word) for word in text.split(","))


def cases_of(arguments: argparse.Namespace) -> Iterator[Case]:
    """Each number of hosts with each delay."""
    for hosts in arguments.hosts:
        for delay in arguments.delays:
            yield Case(
                hosts=hosts,
                pages=arguments.pages or pages_of(hosts),
                delay=delay,
                concurrency=arguments.concurrency,
                latency_ms=arguments.latency_ms,
                lookup_ms=arguments.lookup_ms,
            )


def pages_of(hosts: int) -> int:
    """The pages of each host where there are so many."""
    return next(pages for most, pages in _PAGES if hosts <= most)


def run(case: Case, crawler: str, checkout: Path | None, folder: Path) -> Crawl:
    """One crawl in ``folder``, which is made anew; ``checkout`` has the searchcrawl, None is plain Scrapy."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    log = folder / "requests.log"
    with serving(case, log) as port:
        (folder / "hosts.txt").write_text(
            "".join(f"http://{host_name(number)}:{port}/\n" for number in range(case.hosts)), encoding="utf-8"
        )
        if checkout is None:
            cost, documents = crawl_plainly(case, folder)
        else:
            cost, documents = crawl_with(case, folder, checkout)
    requests, cpu_seconds = read(log)
    paces = judge(requests, hosts=case.hosts, pages=case.pages, delay_seconds=case.delay)
    return Crawl(
        crawler=crawler, cost=cost, documents=documents, figures=as_figures(paces), server_cpu_seconds=cpu_seconds
    )


@contextmanager
def serving(case: Case, log: Path) -> Iterator[int]:
    """The server while the block runs; gives its port, and has written ``log`` afterwards."""
    command = [PYTHON, "-m", "benchmarks.hosts_server", "--pages", str(case.pages), "--log", str(log)]
    command += ["--latency-ms", str(case.latency_ms)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        if process.stdout is None or not (line := process.stdout.readline()):
            raise SystemExit(f"hosts: the server ended with {process.wait()}")
        yield int(line)
    finally:
        process.send_signal(signal.SIGTERM)
        if process.stdout is not None:
            process.stdout.close()
        process.wait(timeout=60)


def crawl_plainly(case: Case, folder: Path) -> tuple[Cost, int]:
    """Plain Scrapy; the documents are the lines of its feed."""
    feed = folder / "feed.jsonl"
    words = ["hosts.txt", f"{case.delay:g}", str(case.concurrency), str(HOST_CONCURRENCY), str(feed)]
    output = folder / "crawl.out"
    command = [PYTHON, "-m", "benchmarks.hosts_scrapy", *words]
    cost = run_measured(command, cwd=folder, output=output, env=_environment(case, ROOT))
    if cost.exit_code != 0:
        errors = output.with_suffix(".err").read_text(encoding="utf-8", errors="replace")
        raise SystemExit(f"hosts: plain Scrapy ended with {cost.exit_code}\n{errors[-2000:]}")
    with feed.open("rb") as file:
        return cost, sum(1 for _ in file)


def crawl_with(case: Case, folder: Path, checkout: Path) -> tuple[Cost, int]:
    """Searchcrawl with the embedded index."""
    source = _SOURCE.format(concurrency=case.concurrency, host_concurrency=HOST_CONCURRENCY, delay=case.delay)
    project = Project.of_source(folder, source, core_url=None, checkout=checkout)
    crawled = project.crawl(folder / "crawl.out", env=_environment(case, checkout))
    return crawled.cost, crawled.status["documents"]


def _environment(case: Case, checkout: Path) -> dict[str, str]:
    return {"PYTHONPATH": os.pathsep.join((str(NAMES), str(checkout))), "HOSTS_LOOKUP_MS": f"{case.lookup_ms:g}"}


def as_record(case: Case, crawl: Crawl, load: float) -> dict[str, Any]:
    """A crawl as the result has it, with the derived figures; ``cost`` holds those of its process."""
    derived = {
        "allowed_per_second": case.allowed_per_second,
        "pages_per_second": crawl.figures["pages"] / crawl.cost.wall_seconds,
        "cpu_ms_per_page": crawl.cost.cpu_seconds * 1000 / max(crawl.figures["pages"], 1),
        "load_before": load,
    }
    return {**asdict(case), **asdict(crawl), **derived}


def faults(record: Mapping[str, Any]) -> Iterator[str]:
    """What must not be, on any machine."""
    figures = record["figures"]
    what = f"{record['hosts']:,} hosts, delay {record['delay']:g} s"
    if figures["missing_pages"] or record["documents"] != record["hosts"] * record["pages"]:
        yield f"{what}: {figures['missing_pages']} pages were not fetched; {record['documents']} documents"
    if figures["too_early"]:
        yield f"{what}: {figures['too_early']} gaps are too short, the smallest {figures['smallest_gap_ms']:.1f} ms"


def describe(record: Mapping[str, Any]) -> str:
    """One line."""
    figures = record["figures"]
    return (
        f"{record['hosts']:,} hosts of {record['pages']}, delay {record['delay']:g} s, {record['crawler']}:"
        f" {figures['requests_per_second']:.0f} requests/s, {figures['seconds']:.1f} of {record['cost']['wall_seconds']:.1f} s,"
        f" CPU {record['cpu_ms_per_page']:.2f} ms a page, {figures['too_early']} gaps too short,"
        f" idle {figures['idle_seconds']} s, {figures['missing_pages']} pages missing"
    )


def add(out: Path, records: Sequence[Mapping[str, Any]]) -> None:
    """Replaces the records of the same cases and crawlers."""
    out.parent.mkdir(parents=True, exist_ok=True)
    before = json.loads(out.read_text(encoding="utf-8"))["crawls"] if out.exists() else []
    new = {place_of(record) for record in records}
    kept = [record for record in before if place_of(record) not in new]
    crawls = sorted([*kept, *records], key=place_of)
    out.write_text(json.dumps({"machine": machine(), "crawls": crawls}, indent=2) + "\n", encoding="utf-8")


def show(rows: Sequence[Sequence[str]]) -> None:
    """Prints the table."""
    console = Console() if sys.stdout.isatty() else Console(width=190)
    table = Table(*(Column(name, no_wrap=name == "crawler") for name in HEAD))
    for row in rows:
        table.add_row(*row)
    console.print(table)


if __name__ == "__main__":
    sys.exit(main())
