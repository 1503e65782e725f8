"""Hands what a sitemap lists to the writer, a part at a time and no faster than it is written."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from searchcrawl import urls
from searchcrawl.codes import Code
from searchcrawl.http.content_coding import BrokenCoding
from searchcrawl.items import ListedUrl, SitemapEnd, SitemapPart
from searchcrawl.sitemaps.formats import NotASitemap, SitemapKind, SitemapReader
from searchcrawl.sitemaps.queue import Wanted

#: Parts that the writer has not committed yet, of all sitemaps together.
PARTS_AHEAD: Final = 4
_LOOK_SECONDS: Final = 0.2


class ReadingStopped(Exception):
    """The run ends: nobody takes parts any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The body of a sitemap as sent; ``codings`` and ``charset`` are those of its headers."""

    body: bytes
    codings: tuple[str, ...] = ()
    charset: str | None = None
    etag: str | None = None
    last_modified: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """What became of a sitemap: how many URLs it lists, and the sitemaps that it names."""

    end: SitemapEnd
    urls: int = 0
    skipped: int = 0
    children: tuple[str, ...] = ()


class PartSender:
    """Gives parts to the writer; ``send`` blocks while too many are on their way, and is for threads."""

    def __init__(self, submit: Callable[[SitemapPart], None]) -> None:
        self._submit = submit
        self._room = threading.Semaphore(PARTS_AHEAD)
        self._stopped = False

    def send(self, part: SitemapPart) -> None:
        """Raises ReadingStopped once the run ends."""
        while not self._room.acquire(timeout=_LOOK_SECONDS):
            if self._stopped:
                break
        if self._stopped:
            raise ReadingStopped
        self._submit(part)

    def committed(self, part: SitemapPart) -> None:
        """A part is in the store."""
        self._room.release()

    def stop(self) -> None:
        """Ends the waiting."""
        self._stopped = True


def parse(wanted: Wanted, answer: Answer, send: Callable[[SitemapPart], None]) -> Parsed:
    """Reads a body to its end and sends all that it lists; blocks."""
    reader = SitemapReader(answer.body, codings=answer.codings, charset=answer.charset)
    children: list[str] = []
    count = 0
    try:
        for batch in reader.batches():
            count += len(batch)
            if reader.kind is SitemapKind.INDEX:
                names = tuple(listed.url for listed in batch)
                children.extend(names)
                send(SitemapPart(url=wanted.url, children=names))
            else:
                send(SitemapPart(url=wanted.url, urls=_believed(batch, wanted)))
        # What was cut is read again, whatever the server says about it then.
        validators = (answer.etag, answer.last_modified) if reader.whole else (None, None)
        end = SitemapEnd(
            code=200,
            error=reader.note or None,
            etag=validators[0],
            last_modified=validators[1],
            whole=reader.whole,
        )
    except (NotASitemap, BrokenCoding) as error:
        code = Code.CONVERSION_FAILED if isinstance(error, NotASitemap) else Code.READ_ERROR
        end = SitemapEnd(code=code, error=str(error))
    send(SitemapPart(url=wanted.url, end=end))
    return Parsed(end=end, urls=count, skipped=reader.skipped, children=tuple(children))


def _believed(batch: Sequence[ListedUrl], wanted: Wanted) -> tuple[ListedUrl, ...]:
    """The entries, without the dates that do not count (sitemaps.org, protocol.html#location).

    The lastmod of a sitemap counts for the URLs of ``wanted.origins``: its own and those whose robots.txt names it;
    None stands for all, as where the source file names it. Others could keep pages of foreign hosts from being visited.
    """
    if wanted.origins is None:
        return tuple(batch)
    return tuple(
        one if one.lastmod_ms is None or urls.origin_of(one.url) in wanted.origins else ListedUrl(one.url)
        for one in batch
    )
