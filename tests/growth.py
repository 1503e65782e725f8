"""Measures how the CPU and memory that a function takes grow with its input: none may cost more than linear (X-R13)."""

from __future__ import annotations

import ctypes
import gc
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

T = TypeVar("T")

#: The cost of n inputs may be n to the power of this: one that outgrows the caches of a busy machine costs half as much again.
_MOST: Final = 1.4
#: What takes less says more about the machine than about the input; a busy one takes twice as long for all.
_MEASURED_SECONDS: Final = 0.04
_MEASURED_BYTES: Final = 16_000_000
#: Sizes nearer to each other differ by less than the machine does from one moment to the next.
_COMPARED: Final = 4
_BEST_OF: Final = 5
_REPEATS: Final = 3
#: An input that costs so much is no linear one: the test ends without the larger ones.
_FAR_TOO_LONG: Final = 5.0
_HOPELESS: Final = ", far too long"
#: A search looks at no larger inputs than the first that costs so much: by then it has seen how the cost grows.
_SEEN_ENOUGH: Final = 0.5

_CLEAR: Final = Path("/proc/self/clear_refs")
_STATUS: Final = Path("/proc/self/status")


def assert_linear(
    function: Callable[[T], object], build: Callable[[int], T], *, smallest: int, largest: int, factor: int = 2
) -> None:
    """Runs ``function`` with ``build(n)`` for n from ``smallest``, times ``factor`` up to ``largest``.

    Its CPU and its memory must grow less than n to the power of 1.4, from one size to any that is four times as large or
    more. The best of several runs counts, and a failure that does not come again counts for nothing: other programs use
    the machine too.
    """
    for last in range(_REPEATS - 1, -1, -1):
        found = _find_growth(function, build, smallest=smallest, largest=largest, factor=factor)
        if found is None:
            return
        if found.endswith(_HOPELESS) or not last:
            raise AssertionError(found)


def search_growth(function: Callable[[T], object], build: Callable[[int], T], *, smallest: int, largest: int) -> None:
    """As ``assert_linear``, many times as fast: one run of few sizes, and more only where these look wrong."""
    reached: list[int] = []

    def once(given: T) -> Cost:
        return _measure(function, given)

    def build_and_note(size: int) -> T:
        reached.append(size)
        return build(size)

    if _find_growth(function, build_and_note, smallest=smallest, largest=largest, factor=_COMPARED, cost_of=once):
        assert_linear(function, build, smallest=smallest, largest=reached[-1], factor=_COMPARED)


@dataclass(frozen=True)
class Cost:
    """The CPU of a run, and what the process grew by at most."""

    seconds: float
    peak: int

    def allows(self, times: float) -> Cost:
        """What an input may cost that is so many times as large."""
        grown = times**_MOST
        return Cost(max(self.seconds, _MEASURED_SECONDS) * grown, int(max(self.peak, _MEASURED_BYTES) * grown))

    def __str__(self) -> str:
        return f"{self.seconds:.3f} s of CPU and {self.peak / 1e6:.0f} MB"


def _find_growth(
    function: Callable[[T], object],
    build: Callable[[int], T],
    *,
    smallest: int,
    largest: int,
    factor: int,
    cost_of: Callable[[T], Cost] | None = None,
) -> str | None:
    costs: dict[int, Cost] = {}
    size = smallest
    while size <= largest:
        given = build(size)
        cost = _measure_best(function, given) if cost_of is None else cost_of(given)
        for smaller, before in costs.items():
            if size < _COMPARED * smaller:
                continue
            allowed = before.allows(size / smaller)
            if cost.seconds > allowed.seconds or cost.peak > allowed.peak:
                return f"{smaller}: {before}, {size}: {cost}, allowed are {allowed}"
        if cost.seconds > _FAR_TOO_LONG:
            return f"{size}: {cost}{_HOPELESS}"
        if cost_of is not None and cost.seconds > _SEEN_ENOUGH:
            return None
        costs[size] = cost
        size *= factor
    return None


def _measure_best(function: Callable[[T], object], given: T) -> Cost:
    """The cost of the best of several runs; of one, where that is enough to see that it is little."""
    costs: list[Cost] = []
    for _ in range(_BEST_OF):
        costs.append(_measure(function, given))
        best = min(cost.seconds for cost in costs)
        if best < _MEASURED_SECONDS or best > 1:
            break
    return Cost(min(cost.seconds for cost in costs), min(cost.peak for cost in costs))


def _measure(function: Callable[[T], object], given: T) -> Cost:
    # The garbage collector looks at all that the tests before have left.
    gc.collect(0)
    gc.disable()
    before = _begin_peak()
    began = time.process_time()
    try:
        function(given)
        return Cost(time.process_time() - began, _read_memory("VmHWM") - before)
    finally:
        gc.enable()


def _begin_peak() -> int:
    """Has the system measure the peak of memory anew; the memory of now. Elsewhere than on Linux all is 0."""
    if not _CLEAR.exists():
        return 0
    # What was freed goes back, so that it counts where it is taken again.
    ctypes.CDLL(None).malloc_trim(0)
    _CLEAR.write_text("5", "ascii")
    return _read_memory("VmRSS")


def _read_memory(name: str) -> int:
    if not _CLEAR.exists():
        return 0
    line = next(line for line in _STATUS.read_text("ascii", "replace").splitlines() if line.startswith(f"{name}:"))
    return int(line.split()[1]) * 1024
