"""Puts the figures of benchmarks/out into the tables of RESULTS.md; `make results`.

What stands between ``<!-- NAME -->`` and ``<!-- end of NAME -->`` is written anew, all else is left as it is.
A table whose figures are not there stays, too.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final

from benchmarks.decisions.table import Cells, describe_bounds, read_sites, tabulate_sites, tabulate_traps
from benchmarks.hosts_table import HEAD, rows_of
from benchmarks.material import CORPORA, DOCS, result_name

HERE: Final = Path(__file__).resolve().parent
OUT: Final = HERE / "out"
RESULTS: Final = HERE / "RESULTS.md"
MEGABYTE: Final = 1_000_000

Cell = Callable[[dict[str, Any]], str]


def main() -> int:
    """Writes RESULTS.md."""
    text = RESULTS.read_text(encoding="utf-8")
    for corpus in CORPORA:
        if (bench := OUT / result_name(corpus)).exists():
            result = json.loads(bench.read_text(encoding="utf-8"))
            text = _replaced(text, "crawlers" if corpus == DOCS else f"crawlers {corpus}", _crawlers(result))
            text = _replaced(text, "machine", _machine(result["machine"]))
    if (hosts := OUT / "many-hosts.json").exists():
        text = _replaced(text, "many hosts", _many_hosts(json.loads(hosts.read_text(encoding="utf-8"))))
    if (files := OUT / "files.json").exists():
        text = _replaced(text, "files", _files(json.loads(files.read_text(encoding="utf-8"))))
    if sites := read_sites(OUT / "decisions"):
        text = _replaced(text, "decisions", f"{_of_cells(tabulate_sites(sites))}\n\n{describe_bounds(sites)}")
    if (traps := tabulate_traps(OUT / "decisions"))[1]:
        text = _replaced(text, "traps", _of_cells(traps))
    for name, block, figures in (
        ("scale.json", "{}", _FIGURES),
        ("drop.json", "drop {}", _DROP_FIGURES),
        ("hosts.json", "hosts {}", _HOST_FIGURES),
        ("retention.json", "retention {}", _RETENTION_FIGURES),
        ("verify-local.json", "verify local {}", _VERIFY_FIGURES),
        ("verify-solr.json", "verify solr {}", _VERIFY_FIGURES),
    ):
        if (scale := OUT / name).exists():
            tables = json.loads(scale.read_text(encoding="utf-8"))["tables"]
            for store in ("sqlite", "postgresql"):
                if of_store := [one for one in tables if one["store"] == store]:
                    text = _replaced(text, block.format(store), _sizes(of_store, figures))
    RESULTS.write_text(text, encoding="utf-8")
    return 0


def _replaced(text: str, name: str, content: str) -> str:
    block = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end of {name} -->)", re.DOTALL)
    if not block.search(text):
        raise SystemExit(f"results: {RESULTS.name} has no place for {name}")
    return block.sub(lambda found: f"{found[1]}\n{content}\n\n{found[2]}", text)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _of_cells(cells: Cells) -> str:
    return _table(*cells)


def _crawlers(result: dict[str, Any]) -> str:
    rounds = result["rounds"]
    letters = sorted({letter for one in rounds for letter in one["runs"]})
    head = ["run", "pages/s", "× a", "CPU ms a page", "of a", "peak RSS MB", "requests", "twice", "in the index"]
    rows = [_crawler(rounds, letter) for letter in letters]
    lines = [_table([*head, "not accounted for"], rows), ""]
    pages = sorted({str(one["wget_pages"]) for one in rounds})
    loads = ", ".join(f"{one['load_before']:.1f}" for one in rounds)
    lines.append(
        f"Rounds: {len(rounds)}; {result['in_flight']} requests in flight, {' or '.join(pages)} pages by wget; load of the "
        f"machine before them {loads}."
    )
    if not all(one["ok"] for one in rounds):
        failed = sorted({name for one in rounds for name, holds in one["checks"].items() if not holds})
        lines.append(f"Checks that failed: {'; '.join(failed)}.")
    lines += [f"Absent: {name} ({reason})." for name, reason in sorted(result["absent"].items())]
    return "\n".join(lines)


def _crawler(rounds: Sequence[dict[str, Any]], letter: str) -> list[str]:
    """Medians of the rounds; ratios are medians of the ratios within each round."""
    runs = [one["runs"][letter] for one in rounds if letter in one["runs"]]
    pairs = [(one["runs"][letter], one["runs"]["a"]) for one in rounds if {letter, "a"} <= one["runs"].keys()]

    def middle(of: Callable[[dict[str, Any]], float]) -> float:
        return median(of(run) for run in runs)

    def ratio(figure: str, pattern: str) -> str:
        return pattern.format(median(run[figure] / plain[figure] for run, plain in pairs)) if pairs else ""

    compared = [run["comparison"] for run in runs if run["comparison"]]
    lost = max((len(one["missing"]) + len(one["doubled"]) for one in compared), default=None)
    return [
        runs[0]["name"],
        f"{middle(lambda run: run['pages_per_second']):.0f}",
        ratio("pages_per_second", "{:.2f}"),
        f"{middle(lambda run: run['cpu_ms_per_page']):.2f}",
        ratio("cpu_ms_per_page", "{:.0%}"),
        f"{middle(lambda run: run['cost']['peak_rss_bytes'] / MEGABYTE):.0f}",
        f"{middle(lambda run: run['requests']):.0f}",
        f"{middle(lambda run: run['repeated']):.0f}",
        f"{middle(lambda run: run['documents']):.0f}",
        "" if lost is None else str(lost),
    ]


def _many_hosts(result: dict[str, Any]) -> str:
    crawls = result["crawls"]
    in_flight = " or ".join(str(number) for number in sorted({one["concurrency"] for one in crawls}))
    return f"{_table(HEAD, rows_of(crawls))}\n\nRequests in flight: {in_flight}. {_machine(result['machine'])}"


def _files(found: dict[str, Any]) -> str:
    names = list(dict.fromkeys(name for one in found.values() for name in one["runs"]))
    rows = [[name, *(_files_run(one["runs"].get(name)) for one in found.values())] for name in names]
    *_, last = found.values()
    return f"{_table(['run', *found], rows)}\n\n{_machine(last['machine'])}"


def _files_run(run: dict[str, Any] | None) -> str:
    if run is None:
        return ""
    memory = f"{run['peak_rss_bytes'] / MEGABYTE:.0f} MB, {run['peak_own_bytes'] / MEGABYTE:.0f} of its own"
    return f"{run['cpu_seconds']:.1f} s, {run['cpu_us_per_file']:.1f} µs a file; {memory}"


def _machine(machine: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
    hardware = f"{machine['cpus']} CPUs ({machine['processor']}), {machine['memory_gb']:.0f} GB of memory"
    return f"{hardware}, {machine['system']}; {versions}."


def _rate(what: str) -> Cell:
    return lambda figures: f"{figures[f'{what}_a_second']:,.0f} ({figures[f'{what}_cpu_us']:.0f})"


def _seconds(figure: str) -> Cell:
    return lambda figures: f"{figures[figure]:.2f}"


def _megabytes(figure: str) -> Cell:
    return lambda figures: f"{figures[figure] / MEGABYTE:.0f}"


_FIGURES: Final[Sequence[tuple[str, Cell]]] = (
    ("links of new URLs a second (CPU µs each)", _rate("new_links")),
    ("links of known URLs, looked up", _rate("known_links")),
    ("links of known URLs, remembered", _rate("remembered_links")),
    ("claims a second (CPU µs)", _rate("claims")),
    ("visits settled a second, unchanged pages (CPU µs)", _rate("settles")),
    ("start of a maintenance run until the first claims, s", _seconds("start_seconds")),
    ("start after an edit of the scope until the first claims, s", _seconds("begin_after_edit_seconds")),
    ("its rows looked at while the crawl runs, s", _seconds("review_seconds")),
    ("end of a run, s", _seconds("end_seconds")),
    ("`status`, s", _seconds("status_seconds")),
    ("first 1,000 rows of `urls`, s", _seconds("urls_first_page_seconds")),
    ("first 1,000 rows of `urls --code 404`, s", _seconds("urls_of_code_seconds")),
    ("bytes a URL", lambda figures: f"{figures['bytes_a_url']:,.0f}"),
    ("peak RSS, MB", _megabytes("peak_rss_bytes")),
    ("load of the machine before", lambda figures: f"{figures['load_before']:.1f}"),
)

_DROP_FIGURES: Final[Sequence[tuple[str, Cell]]] = (
    ("review of the rows, s", _seconds("review_seconds")),
    ("removals into quarantine, s", _seconds("hold_seconds")),
    ("peak RSS of both, MB", _megabytes("hold_peak_rss_bytes")),
    ("removals carried out, s", _seconds("remove_seconds")),
    ("peak RSS, MB", _megabytes("remove_peak_rss_bytes")),
    ("load of the machine before", lambda figures: f"{figures['load_before']:.1f}"),
)

_HOST_FIGURES: Final[Sequence[tuple[str, Cell]]] = (
    ("start of a maintenance run until the first claims, s", _seconds("start_seconds")),
    ("claims a second (CPU µs), each of another host", _rate("claims")),
    ("visits settled a second (CPU µs)", _rate("settles")),
    ("first claims where one host in 10,000 is still due, s", _seconds("late_claims_seconds")),
    ("until it is known that nothing is due, s", _seconds("exhausted_seconds")),
    ("first claims where every host has a new URL, s", _seconds("initial_claims_seconds")),
    ("hosts through the window a second (CPU µs)", _rate("window")),
    ("hosts in memory after that", lambda figures: f"{figures['known_hosts']:,}"),
    ("peak RSS, MB", _megabytes("peak_rss_bytes")),
    ("load of the machine before", lambda figures: f"{figures['load_before']:.1f}"),
)

_RETENTION_FIGURES: Final[Sequence[tuple[str, Cell]]] = (
    ("first run, s", _seconds("first_seconds")),
    ("URLs forgotten in it", lambda figures: f"{figures['first_urls']:,}"),
    ("second run, s", _seconds("second_seconds")),
    ("URLs forgotten in it", lambda figures: f"{figures['second_urls']:,}"),
    ("hosts forgotten in both", lambda figures: f"{figures['first_hosts'] + figures['second_hosts']:,}"),
    ("transactions that write", lambda figures: f"{figures['writes']:,}"),
    ("their median, s", _seconds("median_write_seconds")),
    ("the longest of them, s", _seconds("longest_write_seconds")),
    ("the longest that reads, s", _seconds("longest_read_seconds")),
    ("peak RSS, MB", _megabytes("peak_rss_bytes")),
    ("load of the machine before", lambda figures: f"{figures['load_before']:.1f}"),
)


_OF_COMMANDS: Final = (
    ("seconds", "s", _seconds),
    ("cpu_seconds", "CPU s", _seconds),
    ("peak_rss_bytes", "peak RSS MB", _megabytes),
    ("peak_own_bytes", "without mapped files MB", _megabytes),
)
_VERIFY_FIGURES: Final[Sequence[tuple[str, Cell]]] = (
    *((f"`verify`, 3,000 differ, {unit}", cell(f"verify_{figure}")) for figure, unit, cell in _OF_COMMANDS),
    *((f"`verify --repair`, {unit}", cell(f"repair_{figure}")) for figure, unit, cell in _OF_COMMANDS),
    *((f"`verify` afterwards, {unit}", cell(f"again_{figure}")) for figure, unit, cell in _OF_COMMANDS),
    ("load of the machine before", lambda figures: f"{figures['load_before']:.1f}"),
)


def _sizes(tables: Sequence[dict[str, Any]], figures: Sequence[tuple[str, Cell]]) -> str:
    head = ["URLs", *(f"{one['size']:,}" for one in tables)]
    return _table(head, [[name, *(cell(one) for one in tables)] for name, cell in figures])


if __name__ == "__main__":
    sys.exit(main())
