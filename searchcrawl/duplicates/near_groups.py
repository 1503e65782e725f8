"""Which documents are copies of which, where near copies are taken out: decided for all of a source at once (F6).

In their order (``rules.copy_order``) a document stays unless its text is near to that of a better one that stays. So the result
depends on the documents alone, and not on the order in which they came. Documents with the same content are one here; the
best of them is what the others are compared with.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from searchcrawl.rules.copy_order import CopyOrder
from searchcrawl.rules.near_copies import NearGroups


class SignedDocument(NamedTuple):
    """A document that may be a copy, with the digest of its content and the signature of its text, empty without one."""

    order: CopyOrder
    digest: bytes
    signature: str


def find_groups(documents: Iterable[SignedDocument]) -> dict[bytes, bytes]:
    """The digest of the content that stands for another, by the digest of that, where it is another one."""
    best: dict[bytes, tuple[CopyOrder, str]] = {}
    for document in documents:
        known = best.get(document.digest)
        if known is None:
            best[document.digest] = document.order, document.signature
        else:
            # The record of one of them may be lost: the text of the others is the same.
            best[document.digest] = min(known[0], document.order), known[1] or document.signature
    ordered = sorted(best, key=lambda digest: best[digest][0])
    groups = NearGroups()
    found: dict[bytes, bytes] = {}
    for number, digest in enumerate(ordered):
        first = groups.add(number, best[digest][1])
        if first != number:
            found[digest] = ordered[first]
    return found
