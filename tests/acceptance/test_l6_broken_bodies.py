"""L6: a broken half never replaces a good whole, and the row says 958; it comes back when it is whole again."""

from __future__ import annotations

import gzip
import zlib
from typing import Final

import brotli

from tests.acceptance.support_project import CrawlProject
from tests.acceptance.support_stories import Run, Tell, page, pages, run, source
from tests.site.client import SiteProcess

HOST: Final = "half.acme.test"
WHOLE: Final = page("A better one", text="All of this is new, and longer than before. " * 200).encode()
_PACKED: Final = gzip.compress(WHOLE, mtime=0)
_WRONG: Final = _PACKED[:-8] + bytes(byte ^ 0xFF for byte in _PACKED[-8:-4]) + _PACKED[-4:]
_ZLIB: Final = zlib.compress(WHOLE)
#: What the site sends of a page whose body was coded: coding and bytes.
CODED: Final = {
    "gzip-cut": ("gzip", _PACKED[: len(_PACKED) // 2]),
    "gzip-tail": ("gzip", _PACKED[:-3]),
    "gzip-crc": ("gzip", _WRONG),
    "gzip-junk": ("gzip", b"this was never compressed"),
    "deflate-cut": ("deflate", _ZLIB[:-6]),
    "br-cut": ("br", brotli.compress(WHOLE)[:-9]),
    "zstd-junk": ("zstd", b"(\xb5/\xfd" + b"no frame" * 9),
    "unknown": ("x-secret", WHOLE),
}
#: How the wire fails.
CUT: Final = ("cut", "cut-chunked", "cut-by-reset")
NAMES: Final = (*CODED, *CUT)
#: Nothing is wrong with the body, but no text can be made of it.
UNREADABLE: Final = "pdf"


def at(name: str) -> str:
    return f"{HOST}/{name}.html"


def _broken(site: SiteProcess) -> None:
    for name, (coding, body) in CODED.items():
        site.set_page(HOST, f"/{name}.html", body, headers={"Content-Encoding": coding}, content_type="text/html")
    for mode in CUT:
        site.set_page(HOST, f"/{mode}.html", WHOLE)
        site.set_behaviour(HOST, path=f"/{mode}.html", mode=mode)
    site.set_page(HOST, f"/{UNREADABLE}.html", b"%PDF-1.7\n" + b"\x00junk" * 500, content_type="application/pdf")


def _story(project: CrawlProject) -> list[Run]:
    site = project.site
    project.edit(**source(site, HOST))
    pages(site, HOST, **{name: page(name, text=f"The first words of {name}") for name in (*NAMES, UNREADABLE)})
    first = run(project)
    _broken(site)
    second = run(project)
    site.clear_behaviours()
    for name in (*NAMES, UNREADABLE):
        text = page(name, text=f"The last words of {name}")
        site.set_page(HOST, f"/{name}.html", text, headers={}, content_type="text/html; charset=utf-8")
    third = run(project)
    assert len(project.hits("last words")) == len(NAMES) + 1
    return [first, second, third]


STORIES: Final = {"halves": _story}


def test_body_when_it_is_cut_or_broken_then_the_document_stays_and_the_row_says_so(tell: Tell) -> None:
    before, during, after = tell("halves")

    assert before.in_index == set(before.versions) == {f"{HOST}/", *map(at, (*NAMES, UNREADABLE))}
    assert {url: during.codes[url] for url in map(at, NAMES)} == dict.fromkeys(map(at, NAMES), 958)
    assert during.codes[at(UNREADABLE)] == 903
    assert during.versions == before.versions
    assert during.in_index == before.in_index
    assert during.counts["deleted"] == 0
    assert set(after.codes.values()) == {200}
    assert all(after.versions[url] > before.versions[url] for url in map(at, NAMES))
