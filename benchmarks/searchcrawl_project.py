"""searchcrawl as its users run it: a project folder with one source, and the command line."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.measured import PYTHON, ROOT, Cost, run_measured

SOURCE = "docs"
PROJECT_FILE = """\
contact = "bench@example.org"

[index]
{index}
"""
# No pause and as many requests in flight as the peer has; text files are left out there, too.
SOURCE_FILE = """\
type = "web"

[start]
urls = ["{start_url}"]

[scope]
include_hosts = ["=127.0.0.1"]
exclude_urls = ["*.txt"]

[fetch]
concurrency = {in_flight}
host_concurrency = {in_flight}
delay_seconds = 0
private_networks = ["127.0.0.0/8"]
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Crawled:
    """One ``searchcrawl crawl``: its cost, and the status object that it printed."""

    cost: Cost
    status: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A project folder; ``checkout`` has the searchcrawl that crawls it."""

    folder: Path
    checkout: Path = ROOT

    @classmethod
    def create(
        cls, folder: Path, *, start_url: str, core_url: str | None, in_flight: int, checkout: Path = ROOT
    ) -> Project:
        """Writes a new project; without ``core_url`` its index is the local one."""
        source = SOURCE_FILE.format(start_url=start_url, in_flight=in_flight)
        return cls.of_source(folder, source, core_url=core_url, checkout=checkout)

    @classmethod
    def of_source(cls, folder: Path, source: str, *, core_url: str | None, checkout: Path = ROOT) -> Project:
        """The same with the text of a source file."""
        index = f'type = "solr"\nurl = "{core_url}"' if core_url else 'type = "local"'
        (folder / "sources").mkdir(parents=True)
        (folder / "scrapy.cfg").write_text("[settings]\ndefault = searchcrawl.settings\n", encoding="utf-8")
        (folder / "searchcrawl.toml").write_text(PROJECT_FILE.format(index=index), encoding="utf-8")
        (folder / "sources" / f"{SOURCE}.toml").write_text(source, encoding="utf-8")
        return cls(folder=folder, checkout=checkout)

    def crawl(self, output: Path, *, processes: int = 1, env: Mapping[str, str] | None = None) -> Crawled:
        """One run; anything but exit 0 ends the benchmark with the end of its log. ``env`` is for its process."""
        command = [PYTHON, "-m", "searchcrawl", "crawl", SOURCE, "--json"]
        # Earlier revisions, which are compared with this one, have no such option.
        command += ["--processes", str(processes)] if processes > 1 else []
        cost = run_measured(
            command, cwd=self.folder, output=output, env={"PYTHONPATH": str(self.checkout), **(env or {})}
        )
        if cost.exit_code != 0:
            errors = output.with_suffix(".err").read_text(encoding="utf-8", errors="replace")
            raise SystemExit(f"bench: searchcrawl ended with {cost.exit_code}\n{errors[-2000:]}")
        return Crawled(cost=cost, status=json.loads(output.read_text(encoding="utf-8")))

    def list_urls(self) -> list[dict[str, Any]]:
        """The URL table as ``searchcrawl urls`` shows it."""
        command = [PYTHON, "-m", "searchcrawl", "urls", SOURCE, "--json"]
        environment = {**os.environ, "PYTHONPATH": str(self.checkout)}
        answer = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, check=True).stdout
        return [json.loads(line) for line in answer.splitlines()]
