"""Properties have the same examples, whatever a process has loaded before."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
_DRAW = """
from hypothesis import given, settings, strategies as st
from tests.same_examples import SAME

@settings(SAME, max_examples=300)
@given(st.integers(), st.text(), st.binary(), st.floats(allow_nan=False))
def show(number, text, raw, real):
    print(ascii((number, text, raw, real)))

show()
"""


def drawn(before: str) -> str:
    """What is drawn once ``before`` was run."""
    command = [sys.executable, "-c", before + _DRAW]
    return subprocess.run(command, cwd=_ROOT, check=True, capture_output=True, text=True).stdout


def test_examples_when_other_modules_are_loaded_then_are_the_same() -> None:
    first = drawn("")

    assert len(first.splitlines()) == 300
    assert drawn("import searchcrawl.codes, searchcrawl.exceptions, searchcrawl.convert.archive_reader\n") == first
