"""Pages made on demand on hosts ``gen*``: ``/n/COUNT[,OPTION=VALUE…]/`` is a site of COUNT pages.

``/n/100,delay=0.05,links=20,kb=8/`` is its first page and ``/n/100,…/K.html`` its others, K from 1 to 99. Page K
links to its children in a ternary tree, so all are reachable, and to ``links`` more; each has the word
``pageK`` (unique in its site). Options: ``delay`` (seconds), ``links``, ``kb`` (of text), ``seed``.
"""

from __future__ import annotations

import random
import re
import zlib
from dataclasses import dataclass
from functools import lru_cache

from tests.site.pages import Page, etag_of

_PATH = re.compile(r"/n/(?P<count>\d+)(?P<options>(?:,[a-z]+=[\d.]+)*)/(?:(?P<page>[1-9]\d*)\.html)?")
_SUBJECTS = ("The technician", "Each logger", "A careful reader", "The rain gauge", "Our laboratory", "The station")
_VERBS = ("records", "compares", "calibrates", "reports", "measures", "checks", "describes")
_OBJECTS = ("the pressure at noon", "every reading twice", "a slow drift", "the humidity of the store room")
_ENDINGS = ("before the report is signed.", "and keeps a copy.", "as the manual asks.", "when the weather turns.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Generated:
    """A page and the pause in seconds before it is sent."""

    page: Page
    delay_seconds: float


@lru_cache(maxsize=20_000)
def generate(host: str, path: str) -> Generated | None:
    """The page at ``path``, the same each time; None for a path that is not one of the site."""
    match = _PATH.fullmatch(path)
    if match is None:
        return None
    count, number = int(match["count"]), int(match["page"] or 0)
    if number >= count:
        return None
    options = dict(part.split("=") for part in match["options"].split(",")[1:])
    chance = random.Random(zlib.crc32(f"{host} {count} {number} {options.get('seed', 0)}".encode()))
    targets = [child for child in range(3 * number + 1, 3 * number + 4) if child < count]
    targets += [chance.randrange(count) for _ in range(int(options.get("links", "5")))]
    links = "".join(f'<li><a href="{_name(target)}">reading {target}</a></li>\n' for target in targets)
    title = f"Generated page {number} of {count}"
    body = (
        f'<!DOCTYPE html>\n<html lang="en"><head><title>{title}</title>\n<meta name="description" '
        f'content="Page {number} of a generated site"></head>\n<body><h1>{title}</h1>\n<p>The word of this page is '
        f"page{number}.</p>\n{_text(chance, float(options.get('kb', '1')))}\n<ul>\n{links}</ul></body></html>\n"
    ).encode()
    page = Page(body=body, etag=etag_of(body), last_modified="Mon, 13 May 2024 08:00:00 GMT")
    return Generated(page=page, delay_seconds=float(options.get("delay", "0")))


def _name(number: int) -> str:
    return f"{number}.html" if number else "./"


def _text(chance: random.Random, kilobytes: float) -> str:
    sentences: list[str] = []
    size = 0
    while size < kilobytes * 1024:
        sentences.append(" ".join(chance.choice(part) for part in (_SUBJECTS, _VERBS, _OBJECTS, _ENDINGS)))
        size += len(sentences[-1]) + 1
    return "\n".join(f"<p>{' '.join(sentences[start : start + 6])}</p>" for start in range(0, len(sentences), 6))
