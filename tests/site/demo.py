"""``python -m tests.site.demo [URL] [PAGES]``: shows a crawl, a search, a change, and both again.

Without a URL the test site is served on a free port and crawled in a project of its own, ``var/demo``. With one, that
site is crawled by ``searchcrawl quick`` and searched; at most PAGES pages of it, 100 if not said.
"""

from __future__ import annotations

import argparse
import ipaddress
import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from tests.site.client import ROOT, SiteProcess, write_project

PROJECT: Final = ROOT / "var" / "demo"
QUICK: Final = ROOT / "var" / "quick"
GONE: Final = "anemometer"
NEW: Final = "evaporimeter"
QUERIES: Final = (f"{GONE} OR {NEW}", '"reference barometer"', "repair voucher")
COUNTS: Final = ("fetched", "new", "changed", "deleted", "not_modified", "unchanged", "duplicates")


class DemoFailed(Exception):
    """A command ended with an error, or its answer is not what the demo promises."""


def main() -> int:
    """Runs the demo; 0 if each step did what its heading says."""
    parser = argparse.ArgumentParser(prog="python -m tests.site.demo", description=__doc__)
    parser.add_argument("url", nargs="?", help="crawl this site instead of the test site")
    parser.add_argument("pages", nargs="?", type=int, default=100, help="at most so many pages of it (default 100)")
    arguments = parser.parse_args()
    try:
        if arguments.url:
            show_url(arguments.url, arguments.pages)
        else:
            show_change()
    except DemoFailed as error:
        print(f"\nThe demo failed: {error}", file=sys.stderr)
        return 1
    return 0


def show_change() -> None:
    """Crawls and searches the test site, changes it, and does both again."""
    shutil.rmtree(PROJECT, ignore_errors=True)
    with SiteProcess() as site:
        write_project(PROJECT, site)
        heading("A site is served", f"{site.url()} and five more host names, on this machine only.")
        heading("First crawl", "Every page is fetched, kept in the cache and sent to the local index.")
        crawl()
        heading("Search", "Words are all required; OR and quotes do what they do everywhere.")
        before = [search(query) for query in QUERIES]
        heading(
            "The site changes",
            f"One product is gone ({GONE}: 404), one was withdrawn (410), one is new ({NEW}), a table has other\n"
            "prices, and one page got a comment that no reader sees.",
        )
        site.stage("changed")
        site.clear_log()
        heading("Second crawl", "Each page is asked whether it changed; what did not is not sent again.")
        crawl()
        bodies = sum(1 for entry in site.log(robots=False) if entry["status"] == 200)
        print(f"The site answered {len(site.log())} requests, {bodies} of them with a page body.")
        heading("The same search again", "What is gone is no longer found, what is new is.")
        after = [search(query) for query in QUERIES]
    _check(before, after)
    where = shlex.quote(os.path.relpath(PROJECT))
    heading("Look around", "The project stays on disk. Try:")
    print(f"  . .venv/bin/activate && cd {where}")
    for line in ("status demo", "urls demo --code 404", "search manual", "verify demo"):
        print(f"  searchcrawl {line}")


def show_url(url: str, pages: int) -> None:
    """Crawls at most ``pages`` pages of a site and searches them."""
    shutil.rmtree(QUICK, ignore_errors=True)
    QUICK.mkdir(parents=True)
    leave = _leave(url)
    pace = "without a pause" if leave else "one a second"
    heading("Crawl", f"At most {pages} pages of {url}, {pace}, as its robots.txt allows.")
    run(ROOT, "quick", url, "--pages", str(pages), *leave, accepted=(0, 3))
    configs = sorted(QUICK.rglob("searchcrawl.toml"))
    if not configs:
        raise DemoFailed("searchcrawl quick left no project behind")
    project = configs[-1].parent
    heading("Search", "Everything that was found; the first ten hits.")
    hits = search("*", project)["hits"]
    words = [word for hit in hits for word in (hit.get("title") or "").split() if word.isalpha() and len(word) > 4]
    if words:
        heading("Search", "A word from a title:")
        search(words[0].lower(), project)
    where = shlex.quote(os.path.relpath(project))
    print(f"\nGo on with: . .venv/bin/activate && cd {where} && searchcrawl search WORDS")


def heading(title: str, text: str) -> None:
    """Prints what comes next."""
    print(f"\n=== {title} ===\n{text}\n", flush=True)


def crawl() -> None:
    """Runs the source, then prints the counts of that run."""
    run(PROJECT, "crawl", "demo")
    status = ask(PROJECT, "status", "demo")
    counts = ", ".join(f"{name.replace('_', ' ')} {status['counts'][name]}" for name in COUNTS)
    print(f"\n{status['run']['kind']} run: {counts}. In the index: {status['documents']} documents.", flush=True)


def search(query: str, project: Path = PROJECT) -> dict[str, Any]:
    """Prints the hits of a query, and returns them."""
    run(project, "search", query)
    print(flush=True)
    return ask(project, "search", query)


def run(project: Path, *words: str, accepted: tuple[int, ...] = (0,)) -> None:
    """Runs a searchcrawl command in the open, as a user would."""
    print(f"$ searchcrawl {shlex.join(words)}", flush=True)
    done = subprocess.run(_command(words), cwd=project, env=_environment(project), check=False)
    if done.returncode not in accepted:
        raise DemoFailed(f"`searchcrawl {shlex.join(words)}` ended with exit code {done.returncode}")


def ask(project: Path, *words: str) -> dict[str, Any]:
    """The JSON answer of a searchcrawl command."""
    done = subprocess.run(
        [*_command(words), "--json"], cwd=project, env=_environment(project), check=False, stdout=subprocess.PIPE
    )
    if done.returncode:
        raise DemoFailed(f"`searchcrawl {shlex.join(words)} --json` ended with exit code {done.returncode}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def _command(words: tuple[str, ...]) -> list[str]:
    return [sys.executable, "-m", "searchcrawl", *words]


def _environment(project: Path) -> dict[str, str]:
    path = os.pathsep.join(part for part in (str(ROOT), os.environ.get("PYTHONPATH")) if part)
    environment = {name: value for name, value in os.environ.items() if name != "SEARCHCRAWL_PROJECT"}
    return {**environment, "PYTHONPATH": path, **({"TMPDIR": str(QUICK)} if project == ROOT else {})}


def _leave(url: str) -> list[str]:
    """Who names a private address means it: the option that lets ``quick`` reach it."""
    host = urlsplit(url if "://" in url else f"http://{url}").hostname
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return []
    addresses = sorted({str(entry[4][0]).partition("%")[0] for entry in found})
    private = [address for address in addresses if ipaddress.ip_address(address).is_private]
    return [word for address in private for word in ("--allow-private", str(ipaddress.ip_network(address)))]


def _check(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> None:
    """That the search shows the change: one document gone, one new, one with other words."""

    def found(answer: dict[str, Any], word: str) -> bool:
        return any(f"/products/{word}.html" in hit["url"] for hit in answer["hits"])

    steps = {
        f"{GONE} found before": found(before[0], GONE),
        f"{NEW} not found before": not found(before[0], NEW),
        f"{GONE} gone after": not found(after[0], GONE),
        f"{NEW} found after": found(after[0], NEW),
        "an unchanged query answers as before": before[1]["total"] == after[1]["total"] > 0,
        "changed words found after": before[2]["total"] == 0 < after[2]["total"],
    }
    wrong = [step for step, held in steps.items() if not held]
    if wrong:
        raise DemoFailed("not so: " + "; ".join(wrong))


if __name__ == "__main__":
    sys.exit(main())
