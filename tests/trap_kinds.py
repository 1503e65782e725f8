"""Sites with one kind of trap each, beside good pages (L8): ``python -m tests.trap_kinds GOOD KIND`` serves one.

Every page leads into the trap, which has no end, or one that is far beyond any crawl. ``KINDS`` says which of them have text of
their own on each page, so that nothing but their growth tells that they are traps.
"""

from __future__ import annotations

import asyncio
import random
import re
import sys
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, urlencode

from tests.trap_site import LIST, MONTHS, PRODUCTS, WORDS, Pages, build_page, make_session, serve

_SESSION_PATH: Final = re.compile(r"/s/[0-9a-f]{16}(?=/)")
_FACETS: Final[Mapping[str, Sequence[str]]] = {
    "brand": WORDS[:12],
    "color": ("red", "green", "blue", "black", "white", "grey"),
    "page": tuple(map(str, range(1, 21))),
    "size": ("xs", "s", "m", "l", "xl"),
    "sort": ("price", "name", "new", "rating"),
}
_COLUMNS: Final = ("name", "date", "size", "owner", "type", "place", "price", "state")
_MENU: Final = ("about", "docs", "news", "shop", "team")

#: The page of a trap at a path with a query; None where nothing is.
Answer = Callable[[str, Mapping[str, str]], str | None]


class Kind(NamedTuple):
    """A trap: what answers below its path, where it begins, and whether its pages have text of their own."""

    answer: Answer
    start: str
    own_text: bool = False


class OneTrap(Pages):
    """Good pages, a start page and lists of the good ones, all of which link to the beginning of one trap."""

    def __init__(self, good: int, kind: str) -> None:
        super().__init__(good)
        self._kind = kind
        self._trap = KINDS.get(kind)

    def page(self, path: str, query: str) -> str | None:
        """The page of a URL."""
        before, session = "", ""
        if self._kind == "session-path" and (found := _SESSION_PATH.match(path)):
            before, path = found[0], path[found.end() :]
        if self._kind == "session-query":
            given = dict(parse_qsl(query))
            session, query = given.pop("sid", ""), urlencode(given)
        target = f"{path}?{query}" if query else path
        fresh = make_session(zlib.crc32(f"{before} {session} {target}".encode()))
        if path == "/":
            page = build_page("Start", "<p>Everything begins here.</p>", ["/list/1.html", *self._door()])
        elif LIST.fullmatch(path):
            page = self.list_page(path, "", self._door())
        elif (good := self.good_page(target, [*self._door(), target])) is not None:
            # From here on whoever came without a session has one, and a new one with each page.
            return self._in_session(good, fresh)
        else:
            return self._trap.answer(path, dict(parse_qsl(query))) if self._trap else None
        return self._in_session(page, fresh) if before or session else page

    def _door(self) -> list[str]:
        return [self._trap.start] if self._trap else []

    def _in_session(self, page: str, fresh: str) -> str:
        """The page with a new session in each of its links, as servers do to clients without cookies."""
        if self._kind == "session-path":
            return page.replace('href="/', f'href="/s/{fresh}/')
        if self._kind == "session-query":
            return re.sub(
                r'href="(/[^"?]*)(\?)?', lambda link: f'href="{link[1]}?sid={fresh}{"&amp;" if link[2] else ""}', page
            )
        return page


def _words(seed: str, count: int) -> str:
    return " ".join(random.Random(zlib.crc32(seed.encode())).choices(WORDS, k=count))


def _calendar(path: str, *, events: bool) -> str | None:
    found = re.fullmatch(r"/calendar/(\d{1,6})/(\d\d)/", path)
    if found is None or not 1 <= int(found[2]) <= 12:
        return None
    year, month = int(found[1]), int(found[2])
    near = [divmod(year * 12 + month - 1 + step, 12) for step in (-12, -1, 1, 12)]
    days = "".join(f"<td>{day}</td>" for day in range(1, 29))
    text = (
        "".join(f"<p>{day}: {_words(f'{path}{day}', 12)}</p>" for day in range(1, 29, 4))
        if events
        else "<p>No events.</p>"
    )
    title = f"{MONTHS[month - 1]} {year}"
    links = [f"/calendar/{then}/{number + 1:02}/" for then, number in near if then > 0]
    return build_page(title, f"<table><tr>{days}</tr></table>{text}", links)


def _shop(path: str, given: Mapping[str, str]) -> str | None:
    if path != "/shop" or not given.keys() <= _FACETS.keys():
        return None
    chance = random.Random(zlib.crc32(repr(sorted(given.items())).encode()))
    items = "".join(f"<div>{name}</div>" for name in chance.sample(PRODUCTS, 10))
    links = [f"/shop?{urlencode({**given, name: value})}" for name, values in _FACETS.items() for value in values]
    chosen = ", ".join(given.values()) or "all"
    return build_page("Lamps", f"<p>Chosen: {chosen}</p>{items}", [link.replace("&", "&amp;") for link in links])


def _grow(path: str, _: Mapping[str, str]) -> str | None:
    if not path.startswith("/grow/"):
        return None
    return build_page("Growing", "<p>There is always one more.</p>", ["a/", "b/", "c/"])


def _random_words(path: str, _: Mapping[str, str]) -> str | None:
    if not path.startswith("/words/"):
        return None
    chance = random.Random(zlib.crc32(path.encode()))
    links = [f"/words/{'-'.join(chance.choices(WORDS, k=4))}" for _ in range(5)]
    title = path.removeprefix("/words/").replace("-", " ")
    return build_page(title, f"<p>{_words(path, 60)}.</p><p>{_words(path + '2', 60)}.</p>", links)


def _menu(path: str, _: Mapping[str, str]) -> str | None:
    """Relative links in a menu that each folder answers with the page of its last name."""
    names = path.strip("/").split("/")
    if not set(names) <= set(_MENU):
        return None
    return build_page(names[-1].title(), f"<p>{_words(names[-1], 50)}.</p>", [f"{name}/" for name in _MENU])


def _sorted_table(path: str, given: Mapping[str, str]) -> str | None:
    columns = [part.removeprefix("-") for part in given.get("sort", "name").split(",")]
    if path != "/table" or not set(columns) <= set(_COLUMNS):
        return None
    rows = list(PRODUCTS[:30])
    random.Random(zlib.crc32(given.get("sort", "").encode())).shuffle(rows)
    order = given.get("sort", "name").split(",")
    others = [part for name in _COLUMNS for part in (name, f"-{name}")]
    links = [
        f"/table?sort={','.join([part, *(one for one in order if one.lstrip('-') != part.lstrip('-'))])}"
        for part in others
    ]
    return build_page("All lamps", "".join(f"<div>{row}</div>" for row in rows), links)


def _endless_next(path: str, given: Mapping[str, str]) -> str | None:
    number = given.get("page", "1")
    if path != "/archive" or not number.isdecimal():
        return None
    items = "".join(f"<div>{name}</div>" for name in PRODUCTS[min(int(number), 9) * 10 :][:10])
    links = [f"/archive?page={int(number) + step}" for step in (1, 2, 3, 10)]
    return build_page(f"Archive, page {number}", f"{items}<p>Page {number}</p>", links)


def _pair(path: str, _: Mapping[str, str]) -> str | None:
    """Tags that name topics, and topics that name tags, all of them made up on the spot."""
    found = re.fullmatch(r"/(tag|topic)/([0-9a-f]{8})", path)
    if found is None:
        return None
    other = "topic" if found[1] == "tag" else "tag"
    links = [f"/{other}/{zlib.crc32(f'{path}{number}'.encode()):08x}" for number in range(4)]
    return build_page(f"{found[1].title()} {found[2]}", f"<p>All that belongs to this {found[1]}.</p>", links)


def _maze(path: str, _: Mapping[str, str]) -> str:
    chance = random.Random(zlib.crc32(path.encode()))
    links = [f"{chance.choice(WORDS)}/{chance.choice(WORDS)}.html" for _ in range(3)]
    links += [f"/{'/'.join(chance.choices(WORDS, k=3))}" for _ in range(3)]
    return build_page("Oops", f"<p>Sorry, {path} is not here. Try one of these.</p>", links)


def _nothing(path: str, given: Mapping[str, str]) -> None:
    del path, given


KINDS: Final[Mapping[str, Kind]] = {
    "calendar": Kind(lambda path, _: _calendar(path, events=False), "/calendar/2030/06/"),
    "calendar with events": Kind(lambda path, _: _calendar(path, events=True), "/calendar/2030/06/", own_text=True),
    "faceted search": Kind(_shop, "/shop"),
    "session-path": Kind(_nothing, "/list/1.html"),
    "session-query": Kind(_nothing, "/list/1.html"),
    "growing paths": Kind(_grow, "/grow/"),
    "random words": Kind(_random_words, "/words/north-iron-heath-keel", own_text=True),
    "mirrored menus": Kind(_menu, "/docs/"),
    "sort orders": Kind(_sorted_table, "/table?sort=name"),
    "infinite next": Kind(_endless_next, "/archive?page=1"),
    "two patterns": Kind(_pair, "/tag/0badcafe"),
    "maze": Kind(_maze, "/maze/"),
}


if __name__ == "__main__":
    asyncio.run(serve(OneTrap(int(sys.argv[1]), sys.argv[2])))
