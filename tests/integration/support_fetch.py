"""Visits of URLs by the fetch stage alone, in a process of its own (tests/fetch_crawl.py)."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]


def crawl(
    urls: list[str],
    *,
    claim: Mapping[str, str] | None = None,
    settings: Mapping[str, Any] | None = None,
    timeout_seconds: int = 2,
) -> dict[str, Any]:
    """What tests/fetch_crawl.py answers, with the lines of its ``log``; ``claim`` are fields of each row."""
    job = {
        "claim": claim or {},
        "settings": settings or {},
        "urls": urls,
        "resolve_first": True,
        "scope": {"include_hosts": ["127.0.0.1", "nowhere.test"]},
        "fetch": {
            "private_networks": ["127.0.0.1/32"],
            "timeout_seconds": timeout_seconds,
            "max_bytes": 2_000_000,
            "max_redirects": 5,
        },
    }
    done = subprocess.run(
        [sys.executable, "tests/fetch_crawl.py"],
        input=json.dumps(job),
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT)},
        timeout=300,
        check=True,
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer | {"log": done.stderr}
