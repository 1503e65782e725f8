"""Same conditions for each run: a Solr whose code is compiled, and that has nothing left to do."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path
from typing import Final

import pysolr

from tests.solr_server import RunningSolr

_MARKUP: Final = re.compile(r"<[^>]*>")
_BATCH: Final = 100
_MAX_WAIT_SECONDS: Final = 60
_LOOK_SECONDS: Final = 0.5
_CALM_SHARE: Final = 0.05


def warm_up(solr: RunningSolr, site_root: Path) -> None:
    """Sends every page once to a core that is thrown away: the first run would pay for Java's warming up.

    With all fields that a crawler may send: what analyses a language is compiled, too.
    """
    core = "warming"
    client = pysolr.Solr(solr.create_core(core), timeout=60)
    batch: list[dict[str, object]] = []
    for number, path in enumerate(_pages(site_root)):
        text = _MARKUP.sub(" ", path.read_text(encoding="utf-8", errors="replace"))
        document = {"id": str(number), "url": str(number), "title": path.stem, "content": text, "crawl_version": 1}
        batch.append(document | {"title_txt_en": path.stem, "content_txt_en": text})
        if len(batch) == _BATCH:
            client.add(batch, commit=False)
            batch = []
    client.add(batch, commit=True)
    solr.delete_core(core)


def _pages(site_root: Path) -> list[Path]:
    # The packages are links to folders, which rglob does not follow.
    return sorted(path for package in site_root.iterdir() if package.is_dir() for path in package.rglob("*.html"))


def wait_until_calm(solr: RunningSolr) -> None:
    """Waits until Solr has next to nothing to do any more, a minute at most: merges of the run before."""
    deadline = time.monotonic() + _MAX_WAIT_SECONDS
    used = _cpu_seconds(solr.process.pid)
    while time.monotonic() < deadline:
        time.sleep(_LOOK_SECONDS)
        before, used = used, _cpu_seconds(solr.process.pid)
        if used - before < _CALM_SHARE * _LOOK_SECONDS:
            return


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
