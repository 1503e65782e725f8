"""Part of the table of sitemaps: what visits showed of their dates, and which of these are believed (L5).

The sitemaps that an index names share its counts: a site makes all of them in the same way.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from sqlalchemy import Integer, case, func, or_, select, type_coerce, update

from searchcrawl.rules.recrawl import Proof, Word
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.schema import sitemaps

#: So many pages are visited sooner in a run by dates of which less is known than that.
PROBES: Final = 10
#: Of the pages that were called changed, one in so many must have been.
_MOST_FALSE_CALLS: Final = 4
#: Of the pages that were called unchanged, less than one in so many may have changed, once so many did.
_LEAST_TRUE_SILENCE: Final = 10
_FEW_MISSED: Final = 3
#: After so many proofs all of them count for half: a site may be mended.
_MOST_PROOFS: Final = 64

#: The sitemap, or the index that names it.
voices = sitemaps.alias("voices")
VOICE_ID: Final = func.coalesce(sitemaps.c.parent_id, sitemaps.c.id)
#: Enough is known of its calls.
IS_PROBED: Final = voices.c.said_changed >= PROBES
IS_BELIEVED: Final = or_(~IS_PROBED, voices.c.changed_as_said * _MOST_FALSE_CALLS >= voices.c.said_changed)
IS_SILENCE_BELIEVED: Final = or_(
    voices.c.changed_unsaid < _FEW_MISSED, voices.c.changed_unsaid * _LEAST_TRUE_SILENCE < voices.c.said_same
)


def note(transaction: Transaction, proofs: Sequence[Proof]) -> None:
    """Adds what visits showed to the counts."""
    if not proofs:
        return
    ids = sorted({proof.sitemap_id for proof in proofs})
    found = transaction.execute(select(sitemaps.c.id, VOICE_ID).where(sitemaps.c.id.in_(ids)))
    voice_of = {row[0]: row[1] for row in found}
    added: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for proof in proofs:
        voice = voice_of.get(proof.sitemap_id)
        if voice is None:
            # Its index does not name it any more.
            continue
        called = proof.said is Word.CHANGED
        added[voice]["said_changed" if called else "said_same"] += 1
        if proof.changed:
            added[voice]["changed_as_said" if called else "changed_unsaid"] += 1
    for voice, counts in sorted(added.items()):
        transaction.execute(update(sitemaps).where(sitemaps.c.id == voice).values(**_build_sums(counts)))


def _build_sums(counts: dict[str, int]) -> dict[str, object]:
    """The new values of the columns: halved where there are many, each count with the one that it is a part of."""
    values: dict[str, object] = {}
    for whole, part in (("said_changed", "changed_as_said"), ("said_same", "changed_unsaid")):
        if whole in counts:
            many = sitemaps.c[whole] + counts[whole] > _MOST_PROOFS
            for name in (whole, part):
                total = sitemaps.c[name] + counts.get(name, 0)
                values[name] = case((many, type_coerce(total, Integer).op("/")(2)), else_=total)
    return values
