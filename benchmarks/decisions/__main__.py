"""How often each rule of thumb is wrong on sites that it was not made on: `python -m benchmarks.decisions`, `make decisions`.

Manuals from Debian packages are crawled with defaults, each on a host name of its own, and compared with what wget reaches,
with the container in which their generator puts the content of a page, and with the language that lingua tells. Ends with 1
where a bound of ``bounds`` is passed.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from benchmarks.bench import WORK
from benchmarks.decisions.bounds import Row, find_passed
from benchmarks.decisions.crawl import CrawledSite, crawl_site, host_of
from benchmarks.decisions.pages import measure_pages
from benchmarks.decisions.report import describe_figures, describe_site, describe_trap, write_worst, write_worst_of_site
from benchmarks.decisions.roots import list_starts, prepare_root
from benchmarks.decisions.server import reach_by_wget, serving_hosts
from benchmarks.decisions.site import SiteResult, measure_site
from benchmarks.decisions.sites import MANUALS, Manual, Part
from benchmarks.decisions.traps import measure_trap
from benchmarks.nginx_server import Site
from tests.trap_kinds import KINDS

OUT: Final = WORK / "decisions"
Result = TypeVar("Result")


def main() -> int:
    """Measures the sites that are asked for."""
    arguments = _parse_arguments()
    OUT.mkdir(parents=True, exist_ok=True)
    if arguments.traps:
        return _report_passed(_measure_traps(arguments.jobs))
    chosen = _choose(arguments)
    roots = {name: prepare_root(OUT, name, manual, arguments.unpacked) for name, manual in chosen.items()}
    if arguments.pages_only:
        most = 1000 if arguments.pages is None else arguments.pages
        with ProcessPoolExecutor(arguments.jobs) as pool:
            for future in as_completed(pool.submit(_measure_pages, name, roots[name], most) for name in chosen):
                print(future.result(), flush=True)
        return 0
    failed: list[str] = []
    rows = _crawl_all(roots, failed, arguments)
    return _report_passed([*failed, *find_passed(rows)])


def _report_passed(passed: Sequence[str]) -> int:
    for line in passed:
        print(f"passed: {line}", file=sys.stderr)
    return 1 if passed else 0


def _measure_traps(jobs: int) -> Sequence[str]:
    """Crawls all traps; the bounds that they pass."""
    passed: list[str] = []
    with ProcessPoolExecutor(jobs) as pool:
        futures = [pool.submit(measure_trap, name, OUT / "traps" / name) for name in KINDS]
        for result in _collect(futures, passed):
            (OUT / f"trap-{result.name}.json").write_text(json.dumps(result.as_dict(), indent=1), "utf-8")
            print(describe_trap(result), flush=True)
            passed += result.find_passed()
    return passed


def _measure_pages(name: str, folder: Path, most: int) -> str:
    figures = measure_pages(name, folder, MANUALS[name], most=most)
    (OUT / f"pages-{name}.json").write_text(json.dumps(figures.as_dict(), ensure_ascii=False, indent=1), "utf-8")
    write_worst(OUT / f"pages-{name}.txt", figures)
    return describe_figures(name, figures)


def _collect(futures: Sequence[Future[Result]], failed: list[str]) -> Iterator[Result]:
    """The results as they come; a job that failed must not cost the others theirs."""
    for future in as_completed(futures):
        try:
            yield future.result()
        except SystemExit as error:
            failed.append(str(error))


def _crawl_all(roots: Mapping[str, Path], failed: list[str], arguments: argparse.Namespace) -> Sequence[Row]:
    """The figures of all sites, each kept in a file of its own as soon as it is there."""
    rows: list[Row] = []
    hosts = {host_of(name): root for name, root in roots.items()}
    with serving_hosts(OUT, hosts) as site, ProcessPoolExecutor(arguments.jobs) as pool:
        most = arguments.pages or 0
        measure = partial(_crawl_and_measure, site=site, with_crawl=not arguments.no_crawl, most=most)
        futures = [pool.submit(measure, name, root) for name, root in roots.items()]
        rows.extend(result.as_dict() for result in _collect(futures, failed))
    return rows


def _crawl_and_measure(name: str, folder: Path, *, site: Site, with_crawl: bool, most: int) -> SiteResult:
    manual, host = MANUALS[name], host_of(name)
    starts = list_starts(folder, manual)
    crawled = CrawledSite(folder=OUT / "crawls" / name)
    if with_crawl or not crawled.documents.exists():
        crawled = crawl_site(crawled.folder, host=host, port=site.port, starts=starts)
    result = measure_site(name, folder, manual, crawled, _reach(name, site, starts), most=most)
    (OUT / f"site-{name}.json").write_text(json.dumps(result.as_dict(), indent=1), "utf-8")
    write_worst_of_site(OUT / f"site-{name}.txt", result)
    result.write_groups(OUT / f"groups-{name}.json")
    print(describe_site(result), flush=True)
    return result


def _reach(name: str, site: Site, starts: Sequence[str]) -> Sequence[str]:
    """What wget reaches: once, because the packages stay as they are."""
    kept = OUT / f"reached-{name}.json"
    if not kept.exists():
        kept.write_text(json.dumps(reach_by_wget(site, host_of(name), starts)), "utf-8")
    paths: list[str] = json.loads(kept.read_text("utf-8"))
    return paths


def _choose(arguments: argparse.Namespace) -> Mapping[str, Manual]:
    names = [name for name in arguments.only.split(",") if name]
    if unknown := set(names) - set(MANUALS):
        raise SystemExit(f"decisions: no such site: {', '.join(sorted(unknown))}")
    parts = [Part(part) for part in arguments.part.split(",") if part]
    return {name: manual for name, manual in MANUALS.items() if (name in names if names else manual.part in parts)}


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.decisions", description="See benchmarks/decisions.")
    parser.add_argument("--only", default="", help="names of sites, separated by commas (all of --part)")
    parser.add_argument("--part", default="named,seen,unseen", help="named, seen, unseen (all)")
    parser.add_argument("--traps", action="store_true", help="the traps in place of the sites")
    parser.add_argument("--no-crawl", action="store_true", help="measure the last crawl of each site again")
    parser.add_argument(
        "--pages-only", action="store_true", help="pages from the disk, each by itself, without a crawl"
    )
    parser.add_argument("--pages", type=int, default=None, help="of each site, 0 for all (all; 1000 with --pages-only)")
    parser.add_argument("--jobs", type=int, default=1, help="sites at the same time (1)")
    parser.add_argument("--unpacked", type=Path, nargs="*", default=[], help="folders with packages that are unpacked")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
