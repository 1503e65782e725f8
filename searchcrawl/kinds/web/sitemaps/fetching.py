"""Fetches one sitemap, and hands what it lists to the writer, in parts and no faster than they are written."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from searchcrawl.codes import REDIRECT_STATUSES, Code, is_retried
from searchcrawl.html.content_type import parse_content_type
from searchcrawl.http.content_coding import BrokenCoding
from searchcrawl.http.side_requests import (
    SideAnswer,
    SideLimits,
    SidePolicy,
    SideRequestFailed,
    SideRequests,
)
from searchcrawl.http.visit_end import PAGES, BodyTooLarge, describe_status
from searchcrawl.items import SitemapEnd, SitemapPart, SitemapUrl
from searchcrawl.kinds.web.sitemaps.formats import MAX_BYTES, NotASitemap, SitemapKind, SitemapParser
from searchcrawl.kinds.web.sitemaps.queue import WantedSitemap
from searchcrawl.rules.boundary import Boundary
from searchcrawl.sources.secrets import redact

# One byte more shows that the file is longer.
_POLICY: Final = SidePolicy(kind="sitemap", max_bytes=MAX_BYTES + 1, limits=SideLimits.HOST_CONCURRENCY)
_MAX_VALIDATOR_CHARACTERS: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Validators:
    """The validators that a server sent with a sitemap, and that are sent back to ask whether it changed."""

    etag: str | None = None
    last_modified: str | None = None

    def build_headers(self) -> dict[str, str]:
        """The conditions of a request; a validator that is not plain text cannot be sent back as it came."""
        conditions = {"If-None-Match": self.etag, "If-Modified-Since": self.last_modified}
        return {name: value for name, value in conditions.items() if value and value.isascii() and value.isprintable()}


@dataclass(frozen=True, slots=True, kw_only=True)
class SitemapBody:
    """The body of a sitemap as it was sent; ``codings`` and ``charset`` are those of its headers.

    ``url`` is where it came from, if redirects led there.
    """

    body: bytes
    url: str | None = None
    codings: tuple[str, ...] = ()
    charset: str | None = None
    validators: Validators = Validators()


async def fetch_sitemap(
    url: str,
    validators: Validators,
    *,
    side: SideRequests,
    boundary: Boundary,
    check: Callable[[str], Awaitable[None]],
    count_bytes: Callable[[int], None] | None = None,
) -> SitemapBody | None:
    """The sitemap at ``url``, None where it has not changed (304); raises SideRequestFailed.

    ``check`` is called with each URL before it is requested, targets of redirects too, and raises SideRequestFailed.
    ``count_bytes`` is called with the bytes of bodies as they come.
    """

    async def check_url(target: str) -> None:
        decision = boundary.decide_sitemap(target)
        if target != url and not decision.allowed:
            raise SideRequestFailed(
                f"redirects to {target[:200]}, outside the boundary ({decision.text})",
                code=Code.OUTSIDE_BOUNDARY,
            )
        await check(target)

    conditions = validators.build_headers()
    answer = await side.fetch(url, _POLICY, headers=conditions, check=check_url, count_bytes=count_bytes)
    if answer.status == 304 and conditions and not answer.redirected:
        return None
    if answer.status not in PAGES:
        raise _build_failure(answer)
    etag, last_modified = (
        redact(answer.header(name))[:_MAX_VALIDATOR_CHARACTERS] or None for name in ("ETag", "Last-Modified")
    )
    return SitemapBody(
        body=answer.body,
        url=answer.url if answer.redirected else None,
        codings=tuple(answer.codings),
        charset=parse_content_type(answer.header("Content-Type")).charset,
        # Validators belong to the URL that answered.
        validators=Validators() if answer.redirected else Validators(etag=etag, last_modified=last_modified),
    )


def _build_failure(answer: SideAnswer) -> SideRequestFailed:
    status = answer.status
    if status in REDIRECT_STATUSES:
        return SideRequestFailed(f"{describe_status(status)} without a Location", code=Code.NO_LOCATION)
    return SideRequestFailed(
        describe_status(status),
        code=status,
        # A 304 without a condition in the request.
        transient=is_retried(status) or status == 304,
        retry_after_seconds=answer.retry_after_seconds,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """How the reading of a sitemap ended, how many URLs it lists, and which sitemaps it names."""

    end: SitemapEnd
    urls: int = 0
    skipped: int = 0
    children: tuple[str, ...] = ()


class BodyRoom:
    """The memory for the bodies of all sitemaps that are fetched or read at once; for the event loop."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._held = 0

    @property
    def is_low(self) -> bool:
        """Whether no more bodies should come for now."""
        return self._held > self._most_bytes // 2

    @contextmanager
    def hold(self) -> Iterator[HeldBody]:
        """What one body takes, until it was read."""
        held = HeldBody(self._take)
        try:
            yield held
        finally:
            self._held -= held.size

    def _take(self, own: int, size: int) -> bool:
        # One alone may always come: there is a limit for each.
        if self._held > own and self._held + size > self._most_bytes:
            return False
        self._held += size
        return True


class HeldBody:
    """Counts the bytes of a body as they come; ``refused``: there was no room for it beside others."""

    def __init__(self, take: Callable[[int, int], bool]) -> None:
        self._take = take
        self.size = 0
        self.refused = False

    def count(self, size: int) -> None:
        """Notes that so many bytes came; raises BodyTooLarge where there is no room."""
        if not self._take(self.size, size):
            self.refused = True
            raise BodyTooLarge("no room for the body of a sitemap beside those of others")
        self.size += size


def parse(
    wanted: WantedSitemap, sitemap: SitemapBody, send: Callable[[SitemapPart], None], *, routes: bool = False
) -> Parsed:
    """Reads a body to its end and sends all that it lists; blocks. With ``routes`` URLs keep theirs."""
    parser = SitemapParser(
        sitemap.body, url=sitemap.url or wanted.url, codings=sitemap.codings, charset=sitemap.charset, routes=routes
    )
    children: list[str] = []
    count, left_out = 0, False
    try:
        for batch in parser.batches():
            count += len(batch)
            if parser.kind is SitemapKind.INDEX:
                names = tuple(listed.url for listed in batch)
                children.extend(names)
                own = tuple(name for name in names if wanted.speaks_for(name))
                send(SitemapPart(url=wanted.url, children=names, own_children=own))
            else:
                listed = _without_foreign_dates(batch, wanted)
                left_out = left_out or listed != tuple(batch)
                send(SitemapPart(url=wanted.url, urls=listed))
        # A sitemap that was cut is fetched again, even if it has not changed; so is one of which dates were left out as
        # only foreign origins lead to it: its own may, next time.
        is_kept = parser.whole and (wanted.is_own or not left_out)
        validators = sitemap.validators if is_kept else Validators()
        end = SitemapEnd(
            code=200,
            error=redact(parser.note) or None,
            etag=validators.etag,
            last_modified=validators.last_modified,
            whole=parser.whole,
        )
    except (NotASitemap, BrokenCoding) as error:
        code = Code.CONVERSION_FAILED if isinstance(error, NotASitemap) else Code.READ_ERROR
        end = SitemapEnd(code=code, error=redact(str(error)))
    send(build_last_part(wanted, end))
    return Parsed(end=end, urls=count, skipped=parser.skipped, children=tuple(children))


def build_last_part(wanted: WantedSitemap, end: SitemapEnd) -> SitemapPart:
    """The part of a sitemap that says how its reading ended."""
    return SitemapPart(
        url=wanted.url, end=end, is_root=wanted.is_root, is_guess=wanted.is_guess, is_feed=wanted.is_feed
    )


def _without_foreign_dates(batch: Sequence[SitemapUrl], wanted: WantedSitemap) -> tuple[SitemapUrl, ...]:
    """The entries, without the lastmods of URLs outside ``wanted.origins``.

    Those of a foreign sitemap could keep pages from being visited (sitemaps.org, protocol.html#location).
    """
    if wanted.origins is None:
        return tuple(batch)
    return tuple(one if one.lastmod_ms is None or wanted.speaks_for(one.url) else SitemapUrl(one.url) for one in batch)
