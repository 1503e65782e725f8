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
from tests.same_examples import FUZZ_SECONDS

_SECONDS: Final = FUZZ_SECONDS
_FEW: Final = 25
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
    until = time.monotonic() + _SECONDS

    def test(example: Any) -> None:
        # Without a time all are tried: what a slow machine left out would be found by chance on a fast one.
        if not _SECONDS or time.monotonic() < until:
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


#: What a search found once, by reader.
FOUND: Final = {
    "names_of_zip": [
        Growing(b"", (b"\x84",), b""),
        Growing(b"", (b"r6,", b"\x13\x18\x1d\xa4\xa2"), b"gr\x94\xe1e\n "),
    ],
}


@pytest.mark.parametrize(
    ("reader", "grown"), [(reader, grown) for reader in READERS for grown in FOUND.get(reader.name, [])], ids=str
)
def test_r13_reader_when_its_input_was_trouble_once_then_answers(reader: Reader, grown: Growing) -> None:
    for size in (1, 256, 4096, _LARGEST):
        reader.take(grown.build(size))
