"""Measures how the CPU that a function takes grows with its input: no input may cost more than linear time (X-R13)."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")

#: The cost of n inputs may be n to the power of this.
_MOST: Final = 1.3
#: What takes less says more about the machine than about the input.
_MEASURED_SECONDS: Final = 0.02
#: Sizes nearer to each other differ by less than the machine does from one moment to the next.
_COMPARED: Final = 4
_BEST_OF: Final = 5
_REPEATS: Final = 3
#: An input that costs so much is no linear one: the test ends without the larger ones.
_FAR_TOO_LONG: Final = 5.0
_HOPELESS: Final = ", far too long"


def assert_linear(function: Callable[[T], object], build: Callable[[int], T], *, smallest: int, largest: int) -> None:
    """Runs ``function`` with ``build(n)`` for n from ``smallest``, doubled up to ``largest``.

    Its CPU must grow less than n to the power of 1.3, from one size to any that is four times as large or more. The
    best of several runs counts, and a failure that does not come again counts for nothing: other programs use the
    machine too.
    """
    for last in range(_REPEATS - 1, -1, -1):
        found = _find_growth(function, build, smallest=smallest, largest=largest)
        if found is None:
            return
        if found.endswith(_HOPELESS) or not last:
            raise AssertionError(found)


def _find_growth(
    function: Callable[[T], object], build: Callable[[int], T], *, smallest: int, largest: int
) -> str | None:
    costs: dict[int, float] = {}
    size = smallest
    while size <= largest:
        cost = _cost(function, build(size))
        for smaller, before in costs.items():
            if size < _COMPARED * smaller:
                continue
            allowed = max(before, _MEASURED_SECONDS) * (size / smaller) ** _MOST
            if cost > allowed:
                return f"{smaller}: {before:.3f} s, {size}: {cost:.3f} s of CPU, allowed are {allowed:.3f} s"
        if cost > _FAR_TOO_LONG:
            return f"{size}: {cost:.3f} s of CPU{_HOPELESS}"
        costs[size] = cost
        size *= 2
    return None


def _cost(function: Callable[[T], object], given: T) -> float:
    """The CPU of the best of several runs; of one, where that is enough to see that it is little."""
    best = float("inf")
    for _ in range(_BEST_OF):
        # The garbage collector looks at all that the tests before have left.
        gc.collect()
        gc.disable()
        began = time.process_time()
        function(given)
        best = min(best, time.process_time() - began)
        gc.enable()
        if best < _MEASURED_SECONDS or best > 1:
            break
    return best
