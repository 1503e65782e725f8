"""What rendering costs: a crawl that renders each page, beside a bare loop of Playwright over the same pages.

``python -m benchmarks.rendering [PAGES]`` makes an application of 500 pages whose text comes by scripts, and visits it in
turns: a loop that waits in the same way, with as many pages at once and the same browser, but with no rules, store, cache or
index; and ``searchcrawl crawl`` into the local index. The memory is that of the browser's processes, as far as it is theirs alone:
the median of the first and of the last hundred pages.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
import threading
import time
from pathlib import Path
from statistics import median
from typing import Final, Self

from playwright.async_api import BrowserContext, async_playwright

from benchmarks.bench import WORK
from benchmarks.nginx_server import serving
from benchmarks.searchcrawl_project import SOURCE, Project
from searchcrawl.render import page_scripts
from searchcrawl.render.chromium import ChromiumFiles, list_flags
from tests.live_browsers import list_browsers

FOLDER: Final = WORK / "rendering"
ROUNDS: Final = 2
PAGES: Final = 500
#: Pages at once, in both.
AT_ONCE: Final = 2
QUIET_MS: Final = 300
_LOOK_SECONDS: Final = 0.05
_SHELL: Final = "<!DOCTYPE html><title>App</title><div id=root></div><script src=/app.js></script>"
_APP: Final = """
const number = location.pathname.match(/[0-9]+/)[0];
fetch(`/data/${number}.json`).then(answer => answer.json()).then(data => {
  document.title = data.title;
  document.getElementById('root').innerHTML = `<main>${data.text.map(line => `<p>${line}</p>`).join('')}</main>`;
});
"""


def main() -> None:
    """Prints a table of Markdown."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else PAGES
    shutil.rmtree(FOLDER, ignore_errors=True)
    write_site(FOLDER / "site", count)
    print("| round | program | pages | seconds | pages/s | browser MB, first and last hundred |")
    print("| ---: | --- | ---: | ---: | ---: | ---: |")
    with serving(FOLDER / "site", FOLDER / "nginx") as site:
        for number in range(1, ROUNDS + 1):
            urls = [f"{site.root_url}p{page}.html" for page in range(count)]
            seconds, memory = asyncio.run(loop(urls))
            print_row(number, "bare loop", count, seconds, memory)
            with MemoryWatch() as watch:
                seconds, rendered = crawl(site.root_url, FOLDER / f"crawl{number}")
            print_row(number, "searchcrawl", rendered, seconds, watch.describe(rendered))


def print_row(number: int, program: str, pages: int, seconds: float, memory: str) -> None:
    """One row of the table."""
    print(f"| {number} | {program} | {pages} | {seconds:.1f} | {pages / seconds:.2f} | {memory} |", flush=True)


def write_site(folder: Path, count: int) -> None:
    """The application, its data, and a page that links to all of it."""
    (folder / "data").mkdir(parents=True)
    (folder / "app.js").write_text(_APP, encoding="utf-8")
    for page in range(count):
        lines = [f"Line {line} of page {page}: {'some words ' * 12}" for line in range(30)]
        data = json.dumps({"title": f"Page {page}", "text": lines})
        (folder / "data" / f"{page}.json").write_text(data, encoding="utf-8")
        (folder / f"p{page}.html").write_text(_SHELL, encoding="utf-8")
    links = " ".join(f"<a href=/p{page}.html>Page {page}</a>" for page in range(count))
    (folder / "index.html").write_text(f"<title>All pages</title><p>{links}", encoding="utf-8")


def crawl(start_url: str, folder: Path) -> tuple[float, int]:
    """The seconds of a crawl, and how many pages it rendered."""
    project = Project.create(folder, start_url=start_url, core_url=None, in_flight=4)
    source = folder / "sources" / f"{SOURCE}.toml"
    text = source.read_text(encoding="utf-8").replace("[scope]", "[scope]\ntrap_after = 0")
    render = f'\n[render]\nmode = "auto"\npages = {AT_ONCE}\nquiet_ms = {QUIET_MS}\n'
    source.write_text(text + render, encoding="utf-8")
    started = time.monotonic()
    counts = project.crawl(folder / "crawl.out").status["counts"]
    return time.monotonic() - started, counts["rendered"]


class MemoryWatch(threading.Thread):
    """Reads twice a second how much memory the browsers have that were not there before."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._before = list_browsers()
        self._over = threading.Event()
        self._megabytes: list[float] = []

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.join()

    def run(self) -> None:
        """Reads until it is over."""
        while not self._over.wait(0.5):
            own = sum(_read_own_bytes(pid) for pid in list_browsers() - self._before)
            if own:
                self._megabytes.append(own / 1e6)

    def describe(self, pages: int) -> str:
        """The medians of what it read while the first and the last hundred of so many pages were rendered."""
        part = max(len(self._megabytes) * 100 // max(pages, 100), 1)
        if not self._megabytes:
            return ""
        return f"{median(self._megabytes[:part]):.0f}, {median(self._megabytes[-part:]):.0f}"


def _read_own_bytes(pid: int) -> int:
    try:
        fields = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()
    except OSError:
        return 0
    return (int(fields[1]) - int(fields[2])) * os.sysconf("SC_PAGE_SIZE")


async def loop(urls: list[str]) -> tuple[float, str]:
    """The seconds for all pages, and the memory of the browser."""
    files = ChromiumFiles()
    waiting = list(reversed(urls))
    with MemoryWatch() as watch:
        async with async_playwright() as playwright:
            # Without the proxy that refuses everything.
            flags = [flag for flag in list_flags(0, "bench", "") if not flag.startswith(("--proxy", "--host-resolver"))]
            browser = await playwright.chromium.launch(executable_path=files.script, args=flags, chromium_sandbox=True)
            context = await browser.new_context()
            started = time.monotonic()

            async def work() -> None:
                while waiting:
                    await render(context, waiting.pop())

            await asyncio.gather(*(work() for _ in range(AT_ONCE)))
            seconds = time.monotonic() - started
            await browser.close()
    files.remove()
    return seconds, watch.describe(len(urls))


async def render(context: BrowserContext, url: str) -> str:
    """The text of one page once its tree was quiet, and its last answer as long ago."""
    page = await context.new_page()
    answered = time.monotonic()

    def note_answer(_: object) -> None:
        nonlocal answered
        answered = time.monotonic()

    page.on("requestfinished", note_answer)
    await page.goto(url, wait_until="commit")
    quiet = None
    while quiet is None or min(quiet, 1000 * (time.monotonic() - answered)) < QUIET_MS:
        quiet = await page.evaluate(page_scripts.QUIET_MS)
        if quiet is None:
            await page.evaluate(page_scripts.WATCH)
        await asyncio.sleep(_LOOK_SECONDS)
    text = await page.content()
    await page.close()
    return text


if __name__ == "__main__":
    main()
