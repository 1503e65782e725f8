"""When a page has changed, what removes it, and what rows keep meanwhile (``[change]``, ``[lifecycle]``; D2, D4, D5, L3).

That are the failures since the last good visit, and a body whose type nothing reads.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final, Self

import orjson

from searchcrawl import clock
from searchcrawl.bodies import Body, list_pieces
from searchcrawl.codes import REMOVING, ROBOTS_UNAVAILABLE, Code, FailureKind
from searchcrawl.items import Unread
from searchcrawl.rules.boundary import is_trap_limit
from searchcrawl.wording import counted

#: So many removals are always within ``max_delete_percent``; so many known pages may become one text in a run.
FREE_DOCUMENTS: Final = 10


#: What is held against a document whose URL nothing names any more.
ORPHAN: Final = "orphan"
#: The rule of rows that are not visited until something names them again.
ORPHAN_RULE: Final = "lifecycle.orphans: no page names it"


class Condition(StrEnum):
    """What is compared to find out whether a page changed."""

    #: the Last-Modified header
    DATE = "date"
    #: the digest of the body
    CHECKSUM = "checksum"
    #: the ETag header, compared weakly (RFC 9110 §8.8.3.2)
    ETAG = "etag"


@dataclass(frozen=True, slots=True, kw_only=True)
class PageVersion:
    """What identifies the version of a page that a visit saw; None where the server did not send it."""

    last_modified: str | None = None
    etag: str | None = None
    checksum: bytes | None = None


def is_denied(failures: str | None) -> bool:
    """Whether a visit since the last good one was refused, by what a row keeps of its failures.

    Of a document that says who may see it nobody knows any more who may.
    """
    return FailureKind.CLIENT in Failures.parse(failures).counts


def has_changed(condition: Collection[str], before: PageVersion, after: PageVersion) -> bool:
    """Whether anything that ``condition`` lists (values of Condition) differs.

    If one of the visits lacks it, or if the condition is empty, the checksums are compared. A missing checksum counts
    as a difference.
    """
    return any(_differs(Condition(name), before, after) for name in condition or (Condition.CHECKSUM,))


def _differs(condition: Condition, before: PageVersion, after: PageVersion) -> bool:
    if condition is Condition.DATE and before.last_modified and after.last_modified:
        return before.last_modified.strip() != after.last_modified.strip()
    if condition is Condition.ETAG and before.etag and after.etag:
        return _strip_weak_mark(before.etag) != _strip_weak_mark(after.etag)
    return before.checksum is None or before.checksum != after.checksum


def _strip_weak_mark(etag: str) -> str:
    return etag.strip().removeprefix("W/")


def is_evidence(code: int, rule: str | None, remove_on: Collection[int]) -> bool:
    """Whether a visit's code and rule say that the known document at this URL is to be removed.

    For 953 and 954 without a rule the caller looks at the end of the redirects (``delivery.removals``). Copies
    (909, 956, 964) are no evidence: they are removed once the page that is indexed instead is in the index.
    """
    if code == Code.ROBOTS:
        return bool(rule) and rule != ROBOTS_UNAVAILABLE
    if rule is not None and is_trap_limit(rule.partition(": ")[0]):
        # The target of a redirect is beyond such a limit: it may be there, and nobody has looked.
        return False
    return code in REMOVING or code in remove_on


def describe_evidence(code: int, rule: str | None) -> str:
    """What is held against a document, as rows keep it and ``quarantine list`` shows it."""
    return f"{int(code)} {rule}" if rule else str(int(code))


def describe_failures(runs: int) -> str:
    """What is held against a document whose visits failed in ``runs`` runs and in all since, whatever their codes."""
    return f"failed in {counted(runs, 'run', 'runs')} in a row"


#: The rule that rows have whose pages were taken before their host was known to answer any path with such a page, until they
#: are visited again; and what is held against a document that was new.
WITHDRAWN_RULE: Final = "sentinel: like what its host answers to any path"
WITHDRAWN: Final = describe_evidence(Code.SENTINEL, WITHDRAWN_RULE)


#: A page that stopped the crawler, or the worker that read it, so many times is set aside.
MOST_STOPS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Failures:
    """How many runs failed, by FailureKind.

    ``last`` is what failed last, ``after_run`` the last completed run at that time: a run that ended early counts as
    one with those that continue it. ``stops`` is how many visits stopped the crawler, or the worker that read the page.
    """

    counts: Mapping[str, int] = field(default_factory=dict)
    last: str | None = None
    after_run: int | None = None
    stops: int = 0

    @classmethod
    def parse(cls, text: str | None) -> Self:
        """What a row keeps; None for no failure."""
        return cls() if text is None else cls(**orjson.loads(text))

    def dump(self) -> str:
        """As a row keeps it."""
        kept = {"counts": self.counts, "last": self.last, "after_run": self.after_run}
        return orjson.dumps(kept | {"stops": self.stops} if self.stops else kept).decode()

    def is_of(self, after_run: int) -> bool:
        """Whether the last failure was in the run that follows the completed run ``after_run``."""
        return self.after_run == after_run

    def add(self, kind: FailureKind, *, after_run: int) -> Failures:
        """Adds a failed visit. A second one in the same run takes the place of the first."""
        counts = dict(self.counts)
        if self.last is not None and self.is_of(after_run):
            counts[self.last] -= 1
        counts[kind.value] = counts.get(kind.value, 0) + 1
        counts = {name: count for name, count in counts.items() if count}
        return replace(self, counts=counts, last=kind.value, after_run=after_run)

    def add_stop(self) -> Failures:
        """Adds a visit that stopped the crawler, or the worker that read the page."""
        return replace(self, stops=self.stops + 1)

    @property
    def is_set_aside(self) -> bool:
        """Whether the page has stopped too much to be tried again by itself (966)."""
        return self.stops >= MOST_STOPS


def has_stopped(failures: str | None) -> bool:
    """Whether a visit of the page stopped the crawler, or a worker, since its last good one; ``failures`` is what the row keeps."""
    return failures is not None and Failures.parse(failures).stops > 0


def is_confirmed(code: int, failures: str | None, *, remove_on: Collection[int], confirmations: int) -> bool:
    """Whether a status that removes was seen in enough runs; ``failures`` is what the row keeps. True for other codes."""
    if confirmations <= 1 or code not in remove_on:
        return True
    return Failures.parse(failures).counts.get(FailureKind.GONE.value, 0) >= confirmations


#: The longest gap between two visits of a body whose type nothing reads (908).
_MAX_GAP_MS: Final = 7 * clock.DAY_MS
_MOST_DOUBLINGS: Final = 8
_DIGEST_BYTES: Final = 16


def parse_unread(text: str | None) -> Unread | None:
    """What a row keeps of a body whose type nothing reads (908); None where it keeps nothing."""
    return None if text is None else Unread(**orjson.loads(text))


def dump_unread(unread: Unread | None) -> str | None:
    """As a row keeps it."""
    return None if unread is None else orjson.dumps(unread).decode()


def digest_unread(body: Body) -> str:
    """The digest of a body that is not read."""
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for piece in list_pieces(body):
        digest.update(piece)
    return digest.hexdigest()


def follow_unread(before: Unread | None, found: Unread) -> Unread:
    """What a visit found after another one: the same once more, or a new body."""
    is_same = before is not None and replace(found, times=before.times) == before
    return replace(found, times=before.times + 1) if is_same and before is not None else found


def find_unread_gap_ms(unread: Unread) -> int:
    """How long a body is not asked for: the next run does after the first visit, then for a day, and twice as long each time."""
    doublings = min(unread.times - 2, _MOST_DOUBLINGS)
    return 0 if doublings < 0 else min(clock.DAY_MS << doublings, _MAX_GAP_MS)
