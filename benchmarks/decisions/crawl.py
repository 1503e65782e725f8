"""Crawls of sites as users run them: a project of its own for each, defaults but for no delay, and what each left behind."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.measured import PYTHON, ROOT, run_measured

SOURCE: Final = "site"
#: Exit codes of a run that ended in order, by itself or at its limit.
_ENDED: Final = (0, 3)
_PROJECT: Final = 'contact = "bench@example.org"\n\n[index]\ntype = "local"\n'
_SOURCE: Final = """\
type = "web"

[start]
urls = {starts}

[scope]
include_hosts = ["={host}"]

[fetch]
delay_seconds = 0
private_networks = ["127.0.0.0/8"]
resolve = {{"{host}" = "127.0.0.1"}}
"""


def host_of(name: str) -> str:
    """The host name of a site."""
    return f"{re.sub('[^a-z0-9.-]', 'x', name)}.test"


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawledSite:
    """The project folder of a crawl."""

    folder: Path

    @property
    def documents(self) -> Path:
        """All documents of the index after the run, as JSON lines."""
        return self.folder / "documents.jsonl"

    def read_documents(self) -> Iterator[dict[str, Any]]:
        """The documents one by one."""
        with self.documents.open(encoding="utf-8") as file:
            yield from map(json.loads, file)

    def read_urls(self) -> Iterator[dict[str, Any]]:
        """The rows of the URL table one by one, as ``searchcrawl urls --json`` shows them."""
        with (self.folder / "urls.jsonl").open(encoding="utf-8") as file:
            yield from map(json.loads, file)

    def read_facts(self) -> dict[str, Any]:
        """What is known of the run itself: its cost, how it ended, and the port of the server."""
        facts: dict[str, Any] = json.loads((self.folder / "facts.json").read_text(encoding="utf-8"))
        return facts


def crawl_site(folder: Path, *, host: str, port: int, starts: Sequence[str], limit: int = 0) -> CrawledSite:
    """One run from nothing; what an earlier one left in ``folder`` is removed; ``limit`` visits at most."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "sources").mkdir(parents=True)
    (folder / "scrapy.cfg").write_text("[settings]\ndefault = searchcrawl.settings\n", encoding="utf-8")
    (folder / "searchcrawl.toml").write_text(_PROJECT, encoding="utf-8")
    urls = json.dumps([f"http://{host}:{port}/{path}" for path in starts])
    (folder / "sources" / f"{SOURCE}.toml").write_text(_SOURCE.format(starts=urls, host=host), encoding="utf-8")
    site = CrawledSite(folder=folder)
    command = [PYTHON, "-m", "searchcrawl", "crawl", SOURCE, "--json", "-O", str(site.documents)]
    command += ["-a", f"limit={limit}"] if limit else []
    cost = run_measured(command, cwd=folder, output=folder / "crawl.out")
    if cost.exit_code not in _ENDED:
        errors = (folder / "crawl.err").read_text(encoding="utf-8", errors="replace")
        raise SystemExit(f"decisions: the crawl of {host} ended with {cost.exit_code}\n{errors[-2000:]}")
    with (folder / "urls.jsonl").open("wb") as out:
        command = [PYTHON, "-m", "searchcrawl", "urls", SOURCE, "--json"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        subprocess.run(command, cwd=folder, env=environment, stdout=out, check=True)
    facts = {"port": port, "exit_code": cost.exit_code, "seconds": cost.wall_seconds, "cpu_seconds": cost.cpu_seconds}
    (folder / "facts.json").write_text(json.dumps(facts), encoding="utf-8")
    return site
