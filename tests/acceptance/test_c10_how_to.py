"""C10: the how-to about sites that need JavaScript, worked through with a real browser."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.page_wall import need_browser
from tests.site.client import SiteProcess, write_project
from tests.test_docs_commands import EXCUSES, work_through

pytestmark = pytest.mark.extended

HOST = "www.acme.test"
_SHELL = "<!DOCTYPE html><title>Shop</title><div id=root></div><script src=/app.js></script>"
_SCRIPT = "document.getElementById('root').innerHTML = `<main><article><p>${'a lamp of brass '.repeat(30)}</p></article></main>`"


@pytest.fixture
def site() -> Iterator[SiteProcess]:
    need_browser()
    with SiteProcess() as running:
        yield running


def _run(folder: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "searchcrawl", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=100, check=True).stdout


def test_c10_how_to_when_worked_through_then_the_pages_of_an_application_are_rendered(
    tmp_path: Path, site: SiteProcess
) -> None:
    # That of the tutorial, as far as this page needs it.
    project = write_project(
        tmp_path / "my-search",
        site,
        "acme",
        start={"urls": [site.url(HOST, "/")], "sitemaps": "off"},
        scope={"include_hosts": [f"={HOST}"]},
    )
    site.set_page(HOST, "/", _SHELL)
    site.set_page(HOST, "/app.js", body=_SCRIPT, content_type="text/javascript")

    project = work_through("how-to/javascript.md", project, site, excuses=EXCUSES - {"a browser"})

    tried = json.loads(_run(project, "test", site.url(HOST, "/"), "--source", "acme", "--render", "--json"))
    assert (tried["text_before"].strip(), "lamp of brass" in tried["text"]) == ("", True)
    counts = json.loads(_run(project, "crawl", "acme", "--json"))["counts"]
    assert counts["rendered"] >= 1
    assert json.loads(_run(project, "search", '"lamp of brass"', "--json"))["total"] == 1
