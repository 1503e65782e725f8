"""A table with as many hosts as URLs, measured in a process of its own; called by benchmarks/scale.py.

python -m benchmarks.scale_hosts fill|measure STORE_URL HOSTS FOLDER: the figures as JSON on standard output.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Final

from sqlalchemy import update

from benchmarks.scale_measure import Measuring, Meter, peak_rss_bytes
from benchmarks.scale_table import fill
from searchcrawl import clock
from searchcrawl.frontier.window import Window
from searchcrawl.items import Claim
from searchcrawl.politeness.host_registry import HostRegistry
from searchcrawl.store.engine.database import Database, Transaction
from searchcrawl.store.schema import urls
from searchcrawl.store.states import FetchState

#: One row of so many is still due near the end of a run.
_LEFT: Final = 10_000


class ManyHosts:
    """The figures of a table of so many hosts; every method measures another moment of a run."""

    def __init__(self, folder: Path, database_url: str, hosts: int) -> None:
        self._hosts = hosts
        self._measuring = Measuring(folder, database_url, hosts)
        self.figures = self._measuring.figures

    def all(self) -> dict[str, float]:
        """Everything."""
        self._measuring.start()
        self._measuring.settle(self._measuring.claim())
        self._pass_through_window()
        # What follows changes all rows at once, which no crawl does.
        self.figures["peak_rss_bytes"] = peak_rss_bytes()
        run = self._measuring.run
        # The last rows, which are those of the highest ids, are the last that a run comes to.
        self._set(run.row.horizon_ms + 1, of_rows=urls.c.id <= self._hosts - max(self._hosts // _LEFT, 1))
        self._first_claims("late_claims_seconds")
        self._set(run.row.horizon_ms + 1, of_rows=urls.c.id > 0)
        self._end()
        self._set(0, of_rows=urls.c.id > 0, state=FetchState.TODO)
        self._first_claims("initial_claims_seconds")
        return self.figures

    def _set(self, due_ms: int, *, of_rows: object, state: FetchState = FetchState.SETTLED) -> None:
        def write(transaction: Transaction) -> None:
            transaction.execute(update(urls).where(of_rows).values(due_ms=due_ms, fetch_state=int(state)))  # type: ignore[arg-type]

        self._measuring.run.write(write)

    def _first_claims(self, figure: str) -> None:
        began = time.perf_counter()
        line, _ = self._measuring.frontier()
        self.figures[figure] = time.perf_counter() - began
        line.close()

    def _end(self) -> None:
        """From the start of the claiming thread until it knows that nothing is left."""
        began = time.perf_counter()
        line, _ = self._measuring.frontier(until_claims=False)
        while not line.exhausted:
            time.sleep(0.001)
        self.figures["exhausted_seconds"] = time.perf_counter() - began
        line.close()

    def _pass_through_window(self) -> None:
        """A claim of each host comes into the window, is handed out, and ends."""
        window = Window(HostRegistry(delay_seconds=0, host_concurrency=4))
        meter = Meter()
        for number in range(1, self._hosts + 1):
            name = f"www{number}.site.example:80"
            window.fill(name, [Claim(url_id=number, url=f"http://{name}/", host_id=number, depth=1)])
            if window.pop(clock.monotonic()) is None:
                raise SystemExit(f"scale: no claim of {name}")
            window.release(number)
        self.figures |= meter.rate("window", self._hosts)
        self.figures["known_hosts"] = window.hosts.count_hosts()


def main(what: str, database_url: str, hosts: str, folder: str) -> None:
    """Fills or measures; prints the figures."""
    if what == "fill":
        database = Database(database_url, Path(folder))
        began = time.perf_counter()
        fill(database, int(hosts), hosts=int(hosts), documents_alone=True)
        database.close()
        figures = {"fill_seconds": time.perf_counter() - began}
    else:
        figures = ManyHosts(Path(folder), database_url, int(hosts)).all()
    print(json.dumps(figures))


if __name__ == "__main__":
    main(*sys.argv[1:])
