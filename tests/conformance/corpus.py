"""Public conformance cases as data, and how we agree with them.

Each case that is decided otherwise is listed by its key with a kind and a reason. A new one, and one that is listed
and agrees by now, fails the test. ``pytest -s tests/conformance`` prints the counts.
"""

from __future__ import annotations

import json
import os
from collections.abc import Hashable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import pytest

FOLDER: Final = Path(__file__).resolve().parents[3] / "shared" / "conformance"


class Divergence(NamedTuple):
    """Why a case is decided otherwise; one that is ``not applicable`` does not count."""

    kind: Literal["policy", "RFC", "not applicable"]
    reason: str


class Tally(NamedTuple):
    """How many cases apply, and how many of these agree."""

    agreeing: int
    applying: int

    @property
    def percent(self) -> float:
        """The share of those that agree."""
        return 100 * self.agreeing / self.applying


def cases(name: str) -> list[dict[str, Any]]:
    """The cases of a file; without it the test is skipped, and fails under CI."""
    path = FOLDER / name
    if not path.exists():
        reason = f"the public conformance cases are not here ({name})"
        if os.environ.get("CI") == "true":
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)
    found: list[dict[str, Any]] = json.loads(path.read_text("utf-8"))["cases"]
    return found


def tally(name: str, verdicts: Iterable[tuple[Hashable, bool]], listed: Mapping[Any, Divergence]) -> Tally:
    """Counts ``verdicts``, by key whether a case agrees; fails where those that do not are not those listed."""
    verdicts = list(verdicts)
    differing = {key for key, agrees in verdicts if not agrees}
    assert differing - listed.keys() == set(), "new differences"
    assert listed.keys() - differing == set(), "listed, and agree by now"
    applying = [agrees for key, agrees in verdicts if agrees or listed[key].kind != "not applicable"]
    found = Tally(sum(applying), len(applying))
    print(f"\n{name}: {found.agreeing} of {found.applying} that apply ({len(verdicts)} in all)")
    for key, (kind, reason) in listed.items():
        print(f"  {key}: {kind}: {reason}")
    return found
