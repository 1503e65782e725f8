"""Starts the crawl of a try: as a process of this machine, in a session of its own, or by an order of a scrapyd (H5).

What such an order may come to is here without the HTTP client that sends it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

from searchcrawl.durable import make_folder
from searchcrawl.exceptions import SearchcrawlError
from searchcrawl.sources.loading import PROJECT_VARIABLE
from searchcrawl.sources.project import Project


def build_command(name: str, token: str = "") -> list[str]:
    """The command of a crawl; with ``token`` it belongs to a try."""
    command = [sys.executable, "-m", "searchcrawl", "crawl", name]
    return [*command, "-a", f"_job={token}"] if token else command


def find_output(project: Project, name: str) -> Path:
    """What a crawl prints that was started by itself; its log is another file."""
    return project.logs_dir / f"{name}.out"


def start_process(project: Project, name: str, token: str) -> subprocess.Popen[bytes]:
    """A crawl that goes on when this process ends; raises OSError where it cannot be started."""
    output = find_output(project, name)
    make_folder(output.parent)
    with output.open("wb") as file:
        return subprocess.Popen(  # noqa: S603  # our own command
            build_command(name, token),
            cwd=project.root,
            # It may have been relative to another folder.
            env={**os.environ, PROJECT_VARIABLE: str(project.root)},
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


class ScrapydRefused(SearchcrawlError):
    """A scrapyd did not take an order: it cannot be reached, or says no, or is none."""


class ScrapydAway(ScrapydRefused):
    """A scrapyd cannot be reached: it took nothing."""


class AnswerLost(SearchcrawlError):
    """A scrapyd was asked, and did not answer in time: it may have taken the order."""


def name_of(url: str) -> str:
    """The URL of a scrapyd without user and password, as the store keeps it."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
