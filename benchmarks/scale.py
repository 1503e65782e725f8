"""What the store costs with 10^4 to 10^7 URLs, on SQLite and PostgreSQL; `make scale`.

python -m benchmarks.scale --sizes 1e4,1e5,1e6 [--store sqlite|postgresql] [--drop | --hosts | --retention | --verify INDEX] [--out FILE]

Each table is filled in bulk (scale_table.py) and then measured through the real modules (scale_measure.py), each in
a process of its own, so that the peak memory is that of the measured one. The result is added to
benchmarks/out/scale.json; `make results` puts it into RESULTS.md. 10^7 URLs take 6 GB in the folder for temporary
files, and half an hour. With ``--drop`` all rows are documents, and what is measured is the edit of a scope that drops
them (scale_drop.py); the result is added to drop.json. With ``--hosts`` each URL has a host of its own
(scale_hosts.py); the result is added to hosts.json. With ``--retention`` all rows are older than
``store.retention_days`` (scale_retention.py); the result is added to retention.json. With ``--verify local`` or ``--verify solr``
all rows are documents of such an index, 3,000 of which are spoilt and mended (scale_verify.py); the result is added to
verify-local.json or verify-solr.json.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from benchmarks import scale_verify
from benchmarks.machine import machine
from benchmarks.measured import PYTHON, run_measured
from tests import postgres_server, solr_server

OUT: Final = Path(__file__).resolve().parent / "out"
STORES: Final = ("sqlite", "postgresql")
#: Gives the URL of an empty store and how large it is now, in bytes.
Place = Callable[[Path], tuple[str, Callable[[], int]]]
#: Gives the figures of one table.
Measure = Callable[[Place, int], dict[str, Any]]


def main() -> int:
    """Fills and measures each size on each store."""
    parser = argparse.ArgumentParser(prog="make scale ARGS=…", description="See benchmarks/scale.py.")
    parser.add_argument("--sizes", default="1e4,1e5,1e6", help="numbers of URLs (1e4,1e5,1e6)")
    parser.add_argument("--store", choices=STORES, help="one of them alone")
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--drop", action="store_true", help="an edit that drops all documents, and nothing else")
    kinds.add_argument("--hosts", action="store_true", help="as many hosts as URLs, and nothing else")
    kinds.add_argument("--retention", action="store_true", help="rows that are to be forgotten, and nothing else")
    kinds.add_argument("--verify", choices=("local", "solr"), help="compare and mend such an index, and nothing else")
    parser.add_argument("--out", type=Path, help="where the result goes")
    arguments = parser.parse_args()
    measures: dict[str, Measure] = {"drop": dropped, "hosts": of_hosts, "retention": of_retention}
    name = next((kind for kind in measures if getattr(arguments, kind)), "scale")
    measure = measures.get(name, measured)
    if arguments.verify:
        name, measure = f"verify-{arguments.verify}", of_local_index if arguments.verify == "local" else of_solr
    out = arguments.out or OUT / f"{name}.json"
    sizes = [int(float(size)) for size in arguments.sizes.split(",")]
    wanted = [arguments.store] if arguments.store else list(STORES)
    out.parent.mkdir(parents=True, exist_ok=True)
    for store in wanted:
        try:
            _measure_store(store, sizes, out, measure)
        except postgres_server.PartMissing as reason:
            print(f"absent: {store}: {reason}")
    return 0


def _measure_store(store: str, sizes: Sequence[int], out: Path, measure: Measure) -> None:
    with _places(store) as place:
        for size in sizes:
            figures = measure(place, size)
            _add(out, {"store": store, "size": size, **figures})
            print(f"{store}, {size:,} URLs: {_shown(figures)}", flush=True)


def measured(place: Place, size: int) -> dict[str, Any]:
    """The figures of one table, which is gone afterwards."""
    with _folder() as folder:
        url, bytes_now = place(folder)
        figures = _child("scale_measure", "fill", url, size, folder)
        figures["bytes_a_url"] = bytes_now() / size
        # Now, and not before the table was filled, which may be half an hour ago.
        load = os.getloadavg()[0]
        return {**figures, **_child("scale_measure", "measure", url, size, folder), "load_before": load}


def dropped(place: Place, size: int) -> dict[str, Any]:
    """The figures of an edit that drops all documents of a table, which is gone afterwards."""
    with _folder() as folder:
        url, _ = place(folder)
        _child("scale_drop", "fill", url, size, folder)
        load = os.getloadavg()[0]
        held = _child("scale_drop", "hold", url, size, folder)
        return {**held, **_child("scale_drop", "remove", url, size, folder), "load_before": load}


def of_hosts(place: Place, size: int) -> dict[str, Any]:
    """The figures of a table of so many hosts, which is gone afterwards."""
    return _filled_and_measured("scale_hosts", place, size)


def of_retention(place: Place, size: int) -> dict[str, Any]:
    """The figures of a table of old rows, which is gone afterwards."""
    return _filled_and_measured("scale_retention", place, size)


def of_local_index(place: Place, size: int) -> dict[str, Any]:
    """The figures of ``verify`` over an embedded index with so many documents, which is gone afterwards."""
    return _verified(place, size, lambda _: {"type": "local"})


def of_solr(place: Place, size: int) -> dict[str, Any]:
    """The same of a core of a Solr of its own."""
    return _verified(place, size, _start_core)


def _start_core(stack: ExitStack) -> dict[str, str]:
    folder = stack.enter_context(_folder())
    solr = stack.enter_context(solr_server.start_solr(folder, memory="1g"))
    solr.create_core("pages")
    return {"type": "solr", "url": solr.core_url("pages")}


def _verified(place: Place, size: int, open_index: Callable[[ExitStack], dict[str, str]]) -> dict[str, Any]:
    with _folder() as folder, ExitStack() as stack:
        url, _ = place(folder)
        (folder / scale_verify.INDEX_FILE).write_text(json.dumps(open_index(stack)), "utf-8")
        _child("scale_verify", "fill", url, size, folder)
        _child("scale_verify", "spoil", url, size, folder)
        load = os.getloadavg()[0]
        expected = json.loads((folder / scale_verify.EXPECTED_FILE).read_text("utf-8"))
        return {**scale_verify.measure(folder, expected), "load_before": load}


def _filled_and_measured(module: str, place: Place, size: int) -> dict[str, Any]:
    with _folder() as folder:
        url, _ = place(folder)
        filled = _child(module, "fill", url, size, folder)
        load = os.getloadavg()[0]
        return {**filled, **_child(module, "measure", url, size, folder), "load_before": load}


@contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="searchcrawl-scale-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def _child(module: str, what: str, url: str, size: int, folder: Path) -> dict[str, Any]:
    command = [PYTHON, "-m", f"benchmarks.{module}", what, url, str(size), str(folder)]
    output = folder / f"{what}.json"
    cost = run_measured(command, cwd=folder, output=output)
    if cost.exit_code != 0:
        errors = output.with_suffix(".err").read_text(encoding="utf-8", errors="replace")
        raise SystemExit(f"scale: {what} of {size} URLs ended with {cost.exit_code}\n{errors[-3000:]}")
    figures: dict[str, Any] = json.loads(output.read_text(encoding="utf-8"))
    return figures


@contextmanager
def _places(store: str) -> Iterator[Place]:
    if store == "sqlite":
        yield _sqlite
        return
    with postgres_server.start_postgres() as server:

        def place(_folder: Path) -> tuple[str, Callable[[], int]]:
            # The last one is gone with its files before the next is made.
            server.drop_database("scale")
            url = server.create_database("scale")

            def size_now() -> int:
                with server.connect() as connection:
                    row = connection.execute("SELECT pg_database_size('scale')").fetchone()
                return int(row[0]) if row else 0

            return url, size_now

        yield place


def _sqlite(folder: Path) -> tuple[str, Callable[[], int]]:
    return "sqlite:///urls.db", lambda: sum(path.stat().st_size for path in folder.glob("urls.db*"))


def _add(out: Path, entry: dict[str, Any]) -> None:
    """Replaces the entry of the same store and size."""
    entries = json.loads(out.read_text(encoding="utf-8"))["tables"] if out.exists() else []
    kept = [one for one in entries if (one["store"], one["size"]) != (entry["store"], entry["size"])]
    tables = sorted([*kept, entry], key=lambda one: (STORES.index(one["store"]), one["size"]))
    out.write_text(json.dumps({"machine": machine(), "tables": tables}, indent=2) + "\n", encoding="utf-8")


def _shown(figures: dict[str, Any]) -> str:
    return ", ".join(f"{name} {figure:,.4g}" for name, figure in figures.items())


if __name__ == "__main__":
    sys.exit(main())
