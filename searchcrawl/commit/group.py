"""What one group of visits changes, and what the ends of all kinds of visits have in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field

import orjson

from searchcrawl.admission.admit import FoundLinks
from searchcrawl.codes import WITH_DOCUMENT
from searchcrawl.commit import next_visit
from searchcrawl.commit.next_visit import NextVisit
from searchcrawl.items import Claim, Document, Hop
from searchcrawl.rules.recrawl import Proof
from searchcrawl.sources.config import Source
from searchcrawl.sources.secrets import redact
from searchcrawl.store.documents.document_table import Confirmed
from searchcrawl.store.documents.former_table import Restored
from searchcrawl.store.urls.url_table import Settled


@dataclass(slots=True)
class Group:
    """What one group of visits changes: rows, documents, links, counters.

    ``stored`` documents are new or changed. ``unchanged`` are rows whose document is as before: they keep the code of
    the document. For unchanged documents, ``canonicals`` and ``displays`` are new keys by row id, ``new_bodies`` are
    rows whose body may have other bytes, ``answered`` are the URLs, by key, that gave the pages of rows which redirect
    now or did before, None: the rows' own, and ``recovered`` are rows that came back. ``with_evidence`` are rows with
    evidence against their document, ``hidden`` those that failed in too many runs, with what is held against them.
    ``unread`` are rows whose visit brought no text, ``relinked`` those of them whose links are now those of a redirect,
    and rows whose page is asked for whole.
    ``released`` are claims that were given back without a visit, ``waiting`` those that are not to be requested before a moment.
    ``submitted`` are URLs that were submitted, as they were given.
    ``back`` are rows whose documents are put back as they were before this run, ``readable`` those of them whose old
    record is there, and ``restored`` what became of them. ``proofs`` are what visits showed of the dates of sitemaps.
    ``bare`` are new rows whose pages have no text of their own. ``incomplete`` are rows whose rendered page lacked something and was
    not taken, with what is noted of that.
    """

    settled: list[Settled] = field(default_factory=list)
    stored: list[Document] = field(default_factory=list)
    confirmed: list[Confirmed] = field(default_factory=list)
    canonicals: dict[int, int | None] = field(default_factory=dict)
    displays: dict[int, int | None] = field(default_factory=dict)
    new_bodies: list[int] = field(default_factory=list)
    answered: dict[int, int | None] = field(default_factory=dict)
    unchanged: list[Settled] = field(default_factory=list)
    recovered: list[int] = field(default_factory=list)
    with_evidence: list[int] = field(default_factory=list)
    hidden: dict[int, str] = field(default_factory=dict)
    unread: list[int] = field(default_factory=list)
    relinked: list[int] = field(default_factory=list)
    released: list[int] = field(default_factory=list)
    waiting: dict[int, int] = field(default_factory=dict)
    back: list[int] = field(default_factory=list)
    readable: set[int] = field(default_factory=set)
    restored: list[Restored] = field(default_factory=list)
    found: list[FoundLinks] = field(default_factory=list)
    submitted: list[str] = field(default_factory=list)
    proofs: list[Proof] = field(default_factory=list)
    bare: set[int] = field(default_factory=set)
    incomplete: dict[int, str | None] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    horizon_ms: int = 0
    after_run: int = 0
    edited: tuple[str, ...] = ()
    same_links: bool = False

    def copy(self) -> Group:
        """A copy with lists of its own: if a transaction is repeated, it begins with the original ones."""
        return Group(**{name: copy(getattr(self, name)) for name in Group.__slots__})


def encode_redirects(hops: Sequence[Hop]) -> str | None:
    """The redirects of a visit, as rows keep them; None without any."""
    return orjson.dumps([{"url": redact(hop.url), "code": hop.code} for hop in hops]).decode() if hops else None


def plan_next(
    claim: Claim, source: Source, group: Group, *, visited_ms: int, changed: bool | None, failed_runs: int = 0
) -> NextVisit:
    """When a row is due after a visit; notes what it shows of the sitemap that lists it."""
    proof = next_visit.find_proof(claim, source.lifecycle, changed=changed, now_ms=visited_ms)
    group.proofs += [] if proof is None else [proof]
    return next_visit.find_next_visit(
        claim,
        source.lifecycle,
        visited_ms=visited_ms,
        changed=changed,
        failed_runs=failed_runs,
        horizon_ms=group.horizon_ms,
    )


def came_back(claim: Claim) -> bool:
    """Whether the last visit failed, or the document left without one, as an orphan: copies may stand in its place."""
    return claim.code not in WITH_DOCUMENT or not claim.is_known
