"""``verify`` and its repair over 100,000 documents: exactly what was changed, in bounded memory (L4)."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from benchmarks import scale_verify
from benchmarks.measured import PYTHON, ROOT

pytestmark = pytest.mark.soak

DOCUMENTS: Final = 100_000
MOST_BYTES: Final = 200_000_000
#: With what sends and removes: Scrapy's settings, and the writer of the embedded index.
MOST_TO_REPAIR: Final = 250_000_000


@pytest.fixture(params=["local", pytest.param("solr", marks=pytest.mark.solr)])
def index(request: pytest.FixtureRequest) -> Iterator[dict[str, str]]:
    if request.param == "local":
        yield {"type": "local"}
        return
    yield {"type": "solr", "url": request.getfixturevalue("solr_core")}


def make(folder: Path, what: str) -> None:
    """In a process of its own, whose memory is not counted."""
    words = [PYTHON, "-m", "benchmarks.scale_verify", what, "sqlite:///urls.db", str(DOCUMENTS), str(folder)]
    subprocess.run(words, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True, timeout=600)


def test_verify_when_1000_of_100000_were_removed_altered_and_added_then_exactly_these_in_under_200_mb(
    tmp_path: Path, index: dict[str, Any]
) -> None:
    (tmp_path / scale_verify.INDEX_FILE).write_text(json.dumps(index), "utf-8")
    make(tmp_path, "fill")
    make(tmp_path, "spoil")
    expected = json.loads((tmp_path / scale_verify.EXPECTED_FILE).read_text("utf-8"))

    figures = scale_verify.measure(tmp_path, expected)

    assert {kind: len(ids) for kind, ids in expected.items()} == {
        "missing": 1000,
        "extra": 1000,
        "stale": 1000,
        "foreign": 0,
    }
    assert max(figures["verify_peak_rss_bytes"], figures["again_peak_rss_bytes"]) < MOST_BYTES, figures
    assert figures["repair_peak_rss_bytes"] < MOST_TO_REPAIR, figures
