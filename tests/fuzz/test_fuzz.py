"""Readers of outside bytes, with whatever may come (X-R13): they answer, or raise what they document, in linear time.

``make test`` tries a few inputs, always the same. With FUZZ_SECONDS each test goes on for so long, with others each time.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.fuzz.strategies import Growing, growing, inputs
from tests.growth import search_growth
from tests.readers import READERS
from tests.readers.declaring import Reader

_SECONDS: Final = float(os.environ.get("FUZZ_SECONDS", "0"))
_FEW: Final = 25
#: Of CPU, for the inputs of one reader in ``make test``.
_SHORT_SECONDS: Final = 0.4
_ROUND: Final = 200
_SMALLEST: Final = 256
#: ``make test`` goes no further; the long form does, to the limit of the reader.
_LARGEST: Final = 65_536
#: Of CPU: what takes so long for a single input hangs.
_HANGS_SECONDS: Final = 60


@contextmanager
def no_hang() -> Iterator[None]:
    """Ends what hangs, where the interpreter still turns: expressions look for signals, too."""

    def stop(*_: object) -> None:
        raise AssertionError(f"takes more than {_HANGS_SECONDS} s of CPU")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, _HANGS_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def run(strategy: Any, check: Callable[[Any], None], *, few: int, shrink: bool) -> None:
    """Tries examples: few, and the same each time, or others until the time is over."""
    ends, until = time.process_time() + _SHORT_SECONDS, time.monotonic() + _SECONDS

    def test(example: Any) -> None:
        # Of a slow reader fewer.
        if time.monotonic() < until if _SECONDS else time.process_time() < ends:
            with no_hang():
                check(example)

    options = settings(
        max_examples=_ROUND if _SECONDS else few,
        derandomize=not _SECONDS,
        database=None,
        deadline=None,
        phases=[Phase.generate, *([Phase.shrink] if shrink else [])],
        suppress_health_check=list(HealthCheck),
    )
    while True:
        attempt = options(given(strategy)(test))
        (seed(int.from_bytes(os.urandom(8), "big"))(attempt) if _SECONDS else attempt)()
        if time.monotonic() >= until:
            return


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_r13_reader_when_its_input_is_any_then_answers_or_raises_what_it_documents(reader: Reader) -> None:
    run(inputs(reader), reader.take, few=_FEW, shrink=True)


@pytest.mark.parametrize("reader", [reader for reader in READERS if reader.linear], ids=lambda reader: reader.name)
def test_r13_reader_when_its_input_grows_in_any_way_then_its_cost_does_not_grow_faster(reader: Reader) -> None:
    largest = min(reader.most, reader.most if _SECONDS else _LARGEST)

    def check(grown: Growing) -> None:
        search_growth(reader.take, grown.build, smallest=_SMALLEST, largest=largest)

    run(growing(reader), check, few=_FEW, shrink=False)
