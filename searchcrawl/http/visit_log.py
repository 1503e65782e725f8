"""``logs.urls``: a line of the log for each visit, with what came of it (J4)."""

from __future__ import annotations

import logging
from typing import Final, NamedTuple

from searchcrawl.codes import describe_code
from searchcrawl.items import Document, Outcome

logger = logging.getLogger(__name__)

#: Visits whose requests ended, and that did not end themselves yet, are few: this many can only be lost ones.
_MOST: Final = 10_000


class _Sent(NamedTuple):
    seconds: float = 0.0
    sent_bytes: int = 0


class VisitLog:
    """Adds up what the requests of a visit took, redirects included, and writes the line when it ends."""

    def __init__(self) -> None:
        self._sent: dict[int, _Sent] = {}

    def note(self, url_id: int, *, seconds: float, sent_bytes: int) -> None:
        """Notes a request of a visit that brought an answer or failed; ``sent_bytes`` are those of the body as sent."""
        if len(self._sent) >= _MOST:
            self._sent.clear()
        before = self._sent.get(url_id, _Sent())
        self._sent[url_id] = _Sent(before.seconds + seconds, before.sent_bytes + sent_bytes)

    def write(self, item: Document | Outcome) -> None:
        """Writes the line of a visit that is over."""
        sent = self._sent.pop(item.claim.url_id, _Sent())
        logger.info(
            "%d %s: %d bytes, %.0f ms: %s",
            item.code,
            item.claim.url,
            sent.sent_bytes,
            sent.seconds * 1000,
            _describe(item),
        )


def _describe(item: Document | Outcome) -> str:
    if isinstance(item, Document):
        text = (
            f"not indexed ({item.rule})"
            if item.rule
            else "the bytes of the last visit"
            if item.page is None
            else "read"
        )
        return f"{text}, redirected {len(item.redirects)} times" if item.redirects else text
    if item.released:
        return "released: the process stops"
    again = "; it is tried again" if item.transient else ""
    return f"{item.rule or item.error or describe_code(item.code)}{again}"
