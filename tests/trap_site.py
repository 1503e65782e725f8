"""A site of about a million URLs that are traps, and some hundred good pages among them (L8, X-T1–X-T5).

``python -m tests.trap_site GOOD`` serves it on a free port until it is stopped; ``TrapSite`` is that process.
All its pages share the same long navigation. Beside GOOD pages there are: a calendar of 400 years by
path and by query, session ids in paths and in queries, a growing path, a shop with facets, and a maze
that answers every other path with 200.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import select
import signal
import subprocess
import sys
import urllib.request
import zlib
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Final, Self
from urllib.parse import parse_qsl, urlencode

from tests.site.listener import Listener
from tests.site.wire import Request, Wire, head

ROOT: Final = Path(__file__).resolve().parents[1]
START_SECONDS: Final = 30.0
SESSIONS: Final = 1_000
_FIRST_DAY: Final = date(1900, 1, 1)
_DAYS: Final = 400 * 365
MONTHS: Final = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
WORDS: Final = (
    "amber", "basin", "cedar", "delta", "ember", "fjord", "grove", "heath", "inlet", "jetty", "knoll", "ledge", "marsh",
    "north", "ocean", "plain", "quarry", "ridge", "shoal", "tundra", "upland", "valley", "wharf", "yonder", "zenith",
    "anchor", "beacon", "copper", "drift", "engine", "ferry", "gauge", "harbour", "iron", "keel", "lantern",
)  # fmt: skip
_FACETS: Final = {
    "color": ("red", "green", "blue", "black", "white", "grey"),
    "size": ("xs", "s", "m", "l", "xl"),
    "sort": ("price", "name", "new", "rating"),
    "brand": tuple(WORDS[:12]),
    "page": tuple(map(str, range(1, 21))),
}
PRODUCTS: Final = tuple(f"{first} {second} lamp" for first in WORDS[:10] for second in WORDS[10:20])
_NAVIGATION: Final = "\n".join(
    f"<li>{' '.join(random.Random(number).choices(WORDS, k=8))}</li>" for number in range(40)
)
_ARTICLE = re.compile(r"/(?:articles/(?P<plain>\d+)\.html|posts/(?P<slug>[a-z]+-[a-z]+)-(?P<post>\d+))")

LIST = re.compile(r"/list/\d+\.html")
_SESSION = re.compile(r"/s/[0-9a-f]{16}/")


class Pages:
    """What is served: a page for a path and query, None for a good page that is not there."""

    def __init__(self, good: int) -> None:
        self.good = good

    def good_paths(self) -> list[str]:
        """Where the good pages are: numbers, slugs with numbers, a parameter, and words."""
        return [self._good_path(number) for number in range(self.good)]

    def _good_path(self, number: int) -> str:
        chance = random.Random(number)
        kind, slug = number % 4, f"{chance.choice(WORDS)}-{chance.choice(WORDS)}"
        if kind == 0:
            return f"/articles/{number}.html"
        if kind == 1:
            return f"/posts/{slug}-{number}"
        if kind == 2:
            return f"/product?id={number}"
        return f"/notes/{slug}-{_letters(number)}.html"

    def page(self, path: str, query: str) -> str | None:
        """The page of a URL."""
        target = f"{path}?{query}" if query else path
        if target == "/":
            start = ("/list/1.html", "/calendar/2026/11/21", "/month?month=11&year=2026", "/shop", "/grow/", "/maze/")
            return build_page("Start", "<p>Everything begins here.</p>", [*start, f"/s/{make_session(1)}/list/1.html"])
        if LIST.fullmatch(path):
            return self.list_page(path, "")
        if path == "/product" or _ARTICLE.fullmatch(path) or path.startswith("/notes/"):
            return self._good(path, query, "")
        if path.startswith("/calendar/"):
            return _day(path)
        if path == "/month":
            return _month(query)
        if path == "/shop":
            return _shop(query)
        if _SESSION.match(path):
            return self._session(path, query)
        if path.startswith("/grow/"):
            return build_page("Growing", "<p>There is always one more.</p>", ["a/", "b/", "c/"])
        return _maze(path)

    def list_page(self, path: str, before: str, more: Sequence[str] = ()) -> str:
        """Twenty good pages and the next list, all of them below the path ``before``, and ``more`` links."""
        number = int(re.findall(r"\d+", path)[-1])
        first = (number - 1) * 20
        paths = [before + self._good_path(one) for one in range(first, min(first + 20, self.good))]
        following = [f"{before}/list/{number + 1}.html"] if first + 20 < self.good else []
        titles = "".join(f"<p>{_title(one)}</p>" for one in range(first, min(first + 20, self.good)))
        text = f"<p>Part {number} of the list.</p>{titles}"
        return build_page(f"List {number}", text, [*paths, *following, *more])

    def _good(self, path: str, query: str, before: str) -> str | None:
        parameters = dict(parse_qsl(query))
        session = parameters.pop("sid", "")
        target = f"{path}?{urlencode(parameters)}" if parameters else path
        note = f"<p>Your session is {session or before}.</p>" if session or before else ""
        joint = "&" if "?" in target else "?"
        # Whoever comes without a session gets one, and whoever has one gets another.
        fresh = make_session(zlib.crc32((path + query + before).encode()) % SESSIONS)
        lost = random.Random(zlib.crc32(target.encode())).choice(WORDS)
        links = [f"{target}{joint}sid={fresh}", f"/s/{fresh}{target}", f"/lost/{lost}/"]
        return self.good_page(target, links, note)

    def good_page(self, target: str, links: Sequence[str], note: str = "") -> str | None:
        """The good page at a path with its query; it has a word of its own (``token_of``)."""
        number = self._number_of(target)
        if number is None:
            return None
        chance = random.Random(zlib.crc32(target.encode()))
        text = "".join(f"<p>{' '.join(chance.choices(WORDS, k=40))}.</p>" for _ in range(3))
        return build_page(_title(number), f"<p>{token_of(number)}</p>{text}{note}", links)

    def _number_of(self, target: str) -> int | None:
        found = [int(text) for text in re.findall(r"\d+", target)]
        number = found[-1] if found else _number(target.rpartition("-")[2].partition(".")[0])
        return number if number < self.good and self._good_path(number) == target else None

    def _session(self, path: str, query: str) -> str | None:
        _, _, session, rest = path.split("/", 3)
        if LIST.fullmatch(f"/{rest}"):
            return self.list_page(f"/{rest}", f"/s/{make_session(zlib.crc32(path.encode()) % SESSIONS)}")
        return self._good(f"/{rest}", query, session)


def make_session(number: int) -> str:
    """The session id of a number."""
    return f"{zlib.crc32(b'%d' % number):08x}{zlib.crc32(b'-%d' % number):08x}"


def token_of(number: int) -> str:
    """The word that one good page alone has."""
    return f"token{_letters(number)}"


def _title(number: int) -> str:
    return f"The {' '.join(random.Random(-number).choices(WORDS, k=3))} of {number}"


def _letters(number: int) -> str:
    return "".join(chr(ord("a") + int(digit)) for digit in str(number))


def _number(letters: str) -> int:
    digits = "".join(str(ord(letter) - ord("a")) for letter in letters)
    return int(digits) if digits.isdigit() else sys.maxsize


def build_page(title: str, text: str, links: Sequence[str]) -> str:
    """A page with the navigation that all pages share."""
    anchors = "".join(f'<li><a href="{link}">more</a></li>\n' for link in links)
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><title>{title}</title></head><body><ul>{_NAVIGATION}</ul>\n'
        f"<h1>{title}</h1>\n{text}\n<ul>{anchors}</ul></body></html>\n"
    )


def _day(path: str) -> str | None:
    try:
        day = date(*map(int, path.split("/")[2:5]))
    except (TypeError, ValueError):
        return None
    near = [day + timedelta(days=step) for step in (-30, -7, -1, 1, 7, 30, 365)]
    links = [f"/calendar/{one:%Y/%m/%d}" for one in near if 0 <= (one - _FIRST_DAY).days < _DAYS]
    title = f"{day.day} {MONTHS[day.month - 1]} {day.year}"
    return build_page(
        title, f"<p>Nothing happens on {title}.</p>", [*links, f"/month?month={day.month}&year={day.year}"]
    )


def _month(query: str) -> str | None:
    given = dict(parse_qsl(query))
    month, year = int(given.get("month", "1")), int(given.get("year", "2026"))
    if not 1900 <= year < 2300:
        return None
    steps = [(month + step - 1, year) for step in (-1, 1)]
    links = [f"/month?month={one % 12 + 1}&year={then + one // 12}" for one, then in steps]
    links += [f"/month?year={year + step}&month={month}" for step in (-1, 1)]
    cells = "".join(f"<td>{day}</td>" for day in range(1, 29))
    return build_page(f"{MONTHS[month - 1]} {year}", f"<table><tr>{cells}</tr></table>", links)


def _shop(query: str) -> str:
    chosen = dict(parse_qsl(query))
    chance = random.Random(zlib.crc32(repr(sorted(chosen.items())).encode()))
    items = "".join(f"<div>{name}</div>" for name in chance.sample(PRODUCTS, 10))
    links = [
        f"/shop?{urlencode({**chosen, name: value})}"
        for name, values in _FACETS.items()
        for value in chance.sample(values, 3)
    ]
    return build_page("Lamps", f"<p>Chosen: {', '.join(chosen.values()) or 'all'}</p>{items}", links)


def _maze(path: str) -> str:
    chance = random.Random(zlib.crc32(path.encode()))
    links = [f"{chance.choice(WORDS)}/{chance.choice(WORDS)}.html" for _ in range(3)]
    links += [f"/{chance.choice(WORDS)}/{chance.choice(WORDS)}/{chance.choice(WORDS)}" for _ in range(3)]
    return build_page("Oops", f"<p>Sorry, {path} is not here. Try one of these.</p>", links)


class TrapSite:
    """The running site; as a context manager it starts on entry and stops on exit."""

    def __init__(self, good: int, *, module: str = "tests.trap_site", arguments: Sequence[str] = ()) -> None:
        self.pages = Pages(good)
        self.port = 0
        self._command = [sys.executable, "-m", module, str(good), *arguments]

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self._command,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])},
        )
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], START_SECONDS)
        line = self._process.stdout.readline() if ready else ""
        if not line:
            self.__exit__(None, None, None)
            raise RuntimeError("the trap site did not start")
        self.port = int(line)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(10)
        if self._process.stdout is not None:
            self._process.stdout.close()

    def url(self, path: str = "/") -> str:
        """The URL of a page."""
        return f"http://traps.acme.test:{self.port}{path}"

    def requested(self) -> list[str]:
        """The path and query of each request so far, but for robots.txt and sitemaps."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/-/log", timeout=30) as answer:
            found: list[str] = json.load(answer)
        return found


async def serve(pages: Pages) -> None:
    """Serves pages on a free port, which is printed, until the process is told to end."""
    log: list[str] = []
    listener = Listener(0)

    def handle(request: Request, wire: Wire) -> None:
        target = request.path + (f"?{request.query}" if request.query else "")
        status, kind, text = 200, "text/html; charset=utf-8", ""
        if target == "/-/log":
            kind, text = "application/json", json.dumps(log)
        elif request.path in {"/robots.txt", "/sitemap.xml"}:
            status = 404
        else:
            log.append(target)
            found = pages.page(request.path, request.query)
            status, text = (200, found) if found is not None else (404, "Not found")
        data = text.encode()
        wire.send(head(status, [("Content-Type", kind), ("Content-Length", str(len(data)))]) + data)

    await listener.start(handle)
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    print(listener.port, flush=True)
    await stopped.wait()
    listener.refuse()


def kinds_of(paths: Iterator[str] | list[str]) -> dict[str, int]:
    """How many of these paths lead to each part of the site, by the first segment."""
    counts: dict[str, int] = {}
    for path in paths:
        part = re.split(r"[/?]", path)[1]
        counts[part] = counts.get(part, 0) + 1
    return counts


if __name__ == "__main__":
    asyncio.run(serve(Pages(int(sys.argv[1]))))
