"""What is kept of a body whose type nothing reads (908), and when it is asked for again (D2)."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Final

import orjson

from searchcrawl import clock
from searchcrawl.items import Unread

#: The longest gap between two visits.
_MAX_GAP_MS: Final = 7 * clock.DAY_MS
_MOST_DOUBLINGS: Final = 8
_DIGEST_BYTES: Final = 16


def parse(text: str | None) -> Unread | None:
    """What a row keeps; None where it keeps none."""
    return None if text is None else Unread(**orjson.loads(text))


def dump(unread: Unread | None) -> str | None:
    """As a row keeps it."""
    return None if unread is None else orjson.dumps(unread).decode()


def compute_digest(body: bytes) -> str:
    """The digest of a body that is not read."""
    return hashlib.blake2b(body, digest_size=_DIGEST_BYTES).hexdigest()


def follow(before: Unread | None, found: Unread) -> Unread:
    """What a visit found after another one: the same once more, or a new body."""
    is_same = before is not None and replace(found, times=before.times) == before
    return replace(found, times=before.times + 1) if is_same and before is not None else found


def find_gap_ms(unread: Unread) -> int:
    """How long a body is not asked for: the next run does after the first visit, then for a day, and twice as long each time."""
    doublings = min(unread.times - 2, _MOST_DOUBLINGS)
    return 0 if doublings < 0 else min(clock.DAY_MS << doublings, _MAX_GAP_MS)
