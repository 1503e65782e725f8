"""What reads bytes of strangers takes linear time and memory, whatever they are made of (X-R13).

The inputs are those that were trouble once, or might be; ``tests/fuzz`` looks for others.
"""

from __future__ import annotations

from typing import Final

import pytest

from tests.growth import assert_linear
from tests.readers import READERS
from tests.readers.declaring import Build, Reader

#: Further letters, as servers send them in headers; what is not Latin goes as UTF-8.
_LATIN: Final = "latin-1"


def encode(text: str) -> bytes:
    try:
        return text.encode(_LATIN)
    except UnicodeEncodeError:
        return text.encode()


@pytest.mark.parametrize(
    ("reader", "build"),
    [
        # The first of each reader says most; the soak tries the others.
        pytest.param(reader, build, id=f"{reader.name}-{number}", marks=[pytest.mark.soak] if number else [])
        for reader in READERS
        for number, build in enumerate(reader.grown)
    ],
)
def test_r13_reader_when_its_input_grows_then_its_cost_does_not_grow_faster(reader: Reader, build: Build) -> None:
    assert_linear(reader.take, lambda n: encode(build(n)), smallest=250, largest=16_000)
