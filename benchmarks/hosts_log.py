"""What the server of `make hosts` writes down of each request, and what follows from it; times are nanoseconds of its monotonic clock."""

from __future__ import annotations

import heapq
import json
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Final, NamedTuple

SECOND_NS: Final = 1_000_000_000
#: What a request was for, where it was for no page of the host.
ROBOTS: Final = 0xFFFD
SITEMAP: Final = 0xFFFE
OTHER: Final = 0xFFFF
_WHAT_BITS: Final = 16
#: A gap that is shorter than its delay by so much, at most, is not counted as too short.
TOLERANCE_NS: Final = 1_000_000
#: So long a crawl may take to get going.
_FIRST_SECONDS: Final = 2


class Request(NamedTuple):
    """``what`` is the number of the page, 0 is the home page, or ROBOTS, SITEMAP or OTHER.

    ``arrived`` is when the end of its head was read, ``answered`` the moment just before the last bytes of the answer
    were given to the kernel: no client can have had them earlier.
    """

    host: int
    what: int
    arrived: int
    answered: int


@dataclass(slots=True)
class RequestLog:
    """All requests, in the order of their answers; 24 bytes each."""

    _keys: array[int] = field(default_factory=lambda: array("q"))
    _arrived: array[int] = field(default_factory=lambda: array("q"))
    _answered: array[int] = field(default_factory=lambda: array("q"))

    def add(self, host: int, what: int, arrived: int, answered: int) -> None:
        """Adds a request that has been answered."""
        self._keys.append(host << _WHAT_BITS | what)
        self._arrived.append(arrived)
        self._answered.append(answered)

    def write(self, path: Path, *, cpu_seconds: float) -> None:
        """Writes a line of JSON and the three columns; ``cpu_seconds`` is what the server took."""
        head = {"requests": len(self._keys), "cpu_seconds": cpu_seconds}
        with path.open("wb") as file:
            file.write(json.dumps(head).encode() + b"\n")
            for column in (self._keys, self._arrived, self._answered):
                column.tofile(file)


def read(path: Path) -> tuple[list[Request], float]:
    """The requests in the order of their arrival, and the CPU seconds of the server."""
    with path.open("rb") as file:
        head = json.loads(file.readline())
        columns = []
        for _ in range(3):
            column = array("q")
            column.fromfile(file, head["requests"])
            columns.append(column)
    mask = (1 << _WHAT_BITS) - 1
    found = [Request(key >> _WHAT_BITS, key & mask, *times) for key, *times in zip(*columns, strict=True)]
    return sorted(found, key=lambda request: request.arrived), head["cpu_seconds"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Paces:
    """What the log says of a crawl.

    ``seconds`` are those from the first to the last arrival. A gap is that between two requests to a host: from the
    end of the answer before, and from arrival to arrival; None where no host was asked twice. ``too_early`` counts
    those since an answer that are shorter than the delay less a millisecond. ``idle_seconds`` are the whole seconds in
    which no request arrived and one might have; ``longest_idle_seconds`` is the longest such time. Both leave out the
    first two seconds.
    """

    requests: int
    pages: int
    missing_pages: int
    robots: int
    sitemaps: int
    others: int
    seconds: float
    smallest_gap_ms: float | None
    smallest_gap_of_arrivals_ms: float | None
    median_gap_ms: float | None
    too_early: int
    idle_seconds: int
    longest_idle_seconds: float

    @property
    def requests_per_second(self) -> float:
        """Between the first and the last arrival."""
        return self.requests / self.seconds if self.seconds else 0.0


def judge(requests: Sequence[Request], *, hosts: int, pages: int, delay_seconds: float) -> Paces:
    """What ``requests``, in the order of their arrival, say of a crawl of ``hosts`` with ``pages`` each."""
    delay = round(delay_seconds * SECOND_NS)
    after_answers, after_arrivals = _gaps(requests)
    idle = list(_idle_times(requests, hosts=hosts, pages=pages, delay=delay))
    first, last = (requests[0].arrived, requests[-1].arrived) if requests else (0, 0)
    counted = [(max(begin, first + _FIRST_SECONDS * SECOND_NS), end) for begin, end in idle]
    fetched = len({(request.host, request.what) for request in requests if request.what < pages})
    kinds = [request.what for request in requests]
    return Paces(
        requests=len(requests),
        pages=fetched,
        missing_pages=hosts * pages - fetched,
        robots=kinds.count(ROBOTS),
        sitemaps=kinds.count(SITEMAP),
        others=kinds.count(OTHER),
        seconds=(last - first) / SECOND_NS,
        smallest_gap_ms=_in_ms(min(after_answers, default=None)),
        smallest_gap_of_arrivals_ms=_in_ms(min(after_arrivals, default=None)),
        median_gap_ms=_in_ms(median(after_answers) if after_answers else None),
        too_early=sum(gap < delay - TOLERANCE_NS for gap in after_answers),
        idle_seconds=sum(max((end - first) // SECOND_NS + (first - begin) // SECOND_NS, 0) for begin, end in counted),
        longest_idle_seconds=max(0, *(end - begin for begin, end in counted)) / SECOND_NS if counted else 0.0,
    )


def _in_ms(nanoseconds: float | None) -> float | None:
    return None if nanoseconds is None else nanoseconds / 1e6


def _gaps(requests: Iterable[Request]) -> tuple[list[int], list[int]]:
    """For each request but the first of its host: since the answer before, and since the arrival before."""
    last: dict[int, Request] = {}
    after_answers, after_arrivals = [], []
    for request in requests:
        if (before := last.get(request.host)) is not None:
            after_answers.append(request.arrived - before.answered)
            after_arrivals.append(request.arrived - before.arrived)
        last[request.host] = request
    return after_answers, after_arrivals


def _idle_times(requests: Sequence[Request], *, hosts: int, pages: int, delay: int) -> Iterator[tuple[int, int]]:
    """From when to when no request arrived although a host had a page that nobody had asked for, and its delay was over.

    All home pages are known from the beginning. While a host answers, its delay is not over.
    """
    if not requests:
        return
    now = requests[0].arrived
    ready = dict.fromkeys(range(hosts), now)
    left = {host: set(range(pages)) for host in range(hosts)}
    heap = [(now, host) for host in range(hosts)]
    for request in requests:
        while heap and (ready[heap[0][1]] != heap[0][0] or not left[heap[0][1]]):
            heapq.heappop(heap)
        if heap and (begin := max(now, heap[0][0])) < request.arrived:
            yield begin, request.arrived
        now = request.arrived
        left[request.host].discard(request.what)
        # Several may be under way where there is no delay.
        ready[request.host] = max(ready[request.host], request.answered + delay)
        heapq.heappush(heap, (ready[request.host], request.host))


def as_figures(paces: Paces) -> dict[str, Any]:
    """The figures by name, for JSON."""
    return {name: getattr(paces, name) for name in Paces.__slots__} | {"requests_per_second": paces.requests_per_second}
