"""Decides what the end of each visit changes in its row and its document. Pure: it does not use the store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from copy import copy
from dataclasses import dataclass, field, replace

import orjson

from searchcrawl import clock, urls
from searchcrawl.admission.admit import FoundLinks
from searchcrawl.codes import (
    REFUSED,
    WITH_DOCUMENT,
    Code,
    CodeClass,
    facts_of,
    find_failure_kind,
    is_failure,
    is_refusal,
)
from searchcrawl.commit import next_visit
from searchcrawl.commit.next_visit import NextVisit
from searchcrawl.counters import LOGIN_FAILURES
from searchcrawl.items import Claim, Document, Hop, Link, Outcome, Page
from searchcrawl.politeness import backoff
from searchcrawl.rules import lifecycle
from searchcrawl.rules.failures import Failures, is_confirmed
from searchcrawl.rules.lifecycle import PageVersion
from searchcrawl.rules.recrawl import Proof
from searchcrawl.sources.config import Source
from searchcrawl.store.documents.document_table import Confirmed
from searchcrawl.store.documents.former_table import Restored
from searchcrawl.store.states import FetchState
from searchcrawl.store.urls.url_table import Settled


@dataclass(slots=True)
class Group:
    """What one group of visits changes: rows, documents, links, counters.

    ``stored`` documents are new or changed. ``unchanged`` are rows whose document is as before: they keep the code of
    the document. For unchanged documents, ``canonicals`` and ``displays`` are new keys by row id, ``new_bodies`` are
    rows whose body may have other bytes, ``redirects`` are those of rows that redirect now or did before, and
    ``recovered`` are rows that came back. ``with_evidence`` are rows with evidence against their document, ``hidden``
    those that failed in too many runs, with what is held against them. ``unread`` are rows whose visit brought no text.
    ``released`` are claims that were given back without a visit.
    ``back`` are rows whose documents are put back as they were before this run, ``readable`` those of them whose old
    record is there, and ``restored`` what became of them. ``proofs`` are what visits showed of the dates of sitemaps.
    """

    settled: list[Settled] = field(default_factory=list)
    stored: list[Document] = field(default_factory=list)
    confirmed: list[Confirmed] = field(default_factory=list)
    canonicals: dict[int, int | None] = field(default_factory=dict)
    displays: dict[int, int | None] = field(default_factory=dict)
    new_bodies: list[int] = field(default_factory=list)
    redirects: dict[int, str | None] = field(default_factory=dict)
    unchanged: list[Settled] = field(default_factory=list)
    recovered: list[int] = field(default_factory=list)
    with_evidence: list[int] = field(default_factory=list)
    hidden: dict[int, str] = field(default_factory=dict)
    unread: list[int] = field(default_factory=list)
    released: list[int] = field(default_factory=list)
    back: list[int] = field(default_factory=list)
    readable: set[int] = field(default_factory=set)
    restored: list[Restored] = field(default_factory=list)
    found: list[FoundLinks] = field(default_factory=list)
    proofs: list[Proof] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    horizon_ms: int = 0
    after_run: int = 0
    edited: tuple[str, ...] = ()
    same_links: bool = False

    def copy(self) -> Group:
        """A copy with lists of its own: if a transaction is repeated, it begins with the original ones."""
        return Group(**{name: copy(getattr(self, name)) for name in Group.__slots__})


def decide(
    items: Sequence[Document | Outcome],
    source: Source,
    *,
    horizon_ms: int = 0,
    after_run: int = 0,
    edited: Collection[str] = (),
    same_links: bool = False,
) -> Group:
    """Decides about the visits of a group; settled rows are due after ``horizon_ms``, the horizon of the run.

    ``after_run`` is the last completed run before it, ``edited`` are the keys that were edited since. With ``same_links``
    the links of known pages are the stored ones.
    """
    group = Group(horizon_ms=horizon_ms, after_run=after_run, edited=tuple(edited), same_links=same_links)
    for item in items:
        if isinstance(item, Document):
            _decide_document(item, source, group)
        else:
            _decide_outcome(_count_stop(item) if item.stopped_worker else item, source, group)
    return group


def _encode_redirects(hops: Sequence[Hop]) -> str | None:
    return orjson.dumps([{"url": hop.url, "code": hop.code} for hop in hops]).decode() if hops else None


def _plan_next(
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


def _decide_document(document: Document, source: Source, group: Group) -> None:
    claim = document.claim
    fetched_ms = clock.to_ms(document.fetched_at)
    differs = document.page is not None and _has_changed(document, source)
    changed = next_visit.observe(claim, document.code, differs=differs, edited=bool(group.edited))
    following = _plan_next(claim, source, group, visited_ms=fetched_ms, changed=changed)
    settled = Settled(
        url_id=claim.url_id,
        code=document.code,
        rule=document.rule,
        due_ms=following.due_ms,
        interval_ms=following.interval_ms,
        fetched_ms=fetched_ms,
        redirects=_encode_redirects(document.redirects),
    )
    if document.redirects or claim.redirected:
        group.redirects[claim.url_id] = settled.redirects
    if claim.has_document and (document.page is None or (document.code == 200 and not differs)):
        _confirm(document, settled, source, group)
    elif (claim.has_document or claim.is_known) and document.code == Code.EMPTY:
        # A page without text does not replace an earlier good one.
        group.settled.append(settled)
        group.unread.append(claim.url_id)
        group.counts["non_indexable"] += 1
    elif document.page is not None and _is_kept(document):
        # An operator keeps the document in spite of this.
        group.settled.append(settled)
        group.counts["non_indexable"] += 1
    elif document.page is None:
        # As empty as before, or refused by the same rule as before.
        group.unchanged.append(settled)
        group.counts["non_indexable"] += 1
    else:
        group.settled.append(settled)
        group.stored.append(document)
        group.counts["non_indexable" if document.code != 200 else _compare(document)] += 1
    if document.page is not None and not group.same_links and _has_links_to_note(document, source):
        group.found.append(_collect_links(document, document.page, source))


def _has_links_to_note(document: Document, source: Source) -> bool:
    """Whether the links of a page take the place of those that it had."""
    page = document.page
    # An empty page does not replace the links of an earlier good one either.
    is_cut = document.code == Code.EMPTY and document.claim.has_document and not (page and page.links)
    return source.finds_urls and not is_cut


def _is_kept(document: Document) -> bool:
    rejected = document.claim.rejected
    return rejected is not None and rejected == lifecycle.describe_evidence(document.code, document.rule)


def _compare(document: Document) -> str:
    """The counter of a stored document: new, changed or unchanged."""
    if not document.claim.fields_digest:
        return "new"
    # The record was lost; the page fetched in its place may be the same as before.
    return "unchanged" if document.claim.fields_digest == document.fields_digest else "changed"


def _collect_links(document: Document, page: Page, source: Source) -> FoundLinks:
    """The links of a page. Its canonical link counts also where robots may not follow its links."""
    follow = source.scope.follow_links
    canonical = document.canonical_link or (Link(document.canonical) if document.canonical is not None else None)
    canonicals = (canonical,) if canonical is not None and follow else ()
    links = page.links if follow and not (page.nofollow and source.keep.meta_robots) else ()
    return FoundLinks(document.claim.url_id, document.claim.depth + 1, links, canonicals, only_counted=True)


def build_key(url: str | None) -> int | None:
    """The key of a URL; None without one."""
    return None if url is None else urls.key(url)


def _has_changed(document: Document, source: Source) -> bool:
    """Whether an indexed value differs and the page counts as changed by ``change.condition``."""
    claim = document.claim
    if claim.fields_digest == document.fields_digest:
        return False
    before = PageVersion(last_modified=claim.last_modified, etag=claim.etag, checksum=claim.fields_digest)
    after = PageVersion(last_modified=document.last_modified, etag=document.etag, checksum=document.fields_digest)
    return lifecycle.has_changed(source.change.condition, before, after)


def _confirm(document: Document, settled: Settled, source: Source, group: Group) -> None:
    """Notes a document with the same text and fields as before; its date and its URLs may have changed."""
    claim = document.claim
    same_fields = document.page is None or claim.fields_digest == document.fields_digest
    date_changed = (
        "date" in source.change.condition
        and document.last_modified is not None
        and claim.last_modified is not None
        and document.last_modified != claim.last_modified
    )
    shown_url_changed = document.page is not None and _note_urls(document, group)
    group.confirmed.append(
        Confirmed(
            url_id=claim.url_id,
            etag=document.etag,
            last_modified=document.last_modified,
            # If the fields differ without counting as a change, they are compared again at the next visit.
            body_digest=document.body_digest if same_fields else None,
            send_again=date_changed or shown_url_changed,
            read=document.page is not None,
            unavailable_ms=None if document.page is None else document.page.unavailable_ms,
        )
    )
    if document.page is not None and same_fields and document.body_digest != claim.body_digest:
        # The document may have become a copy, or may no longer be one (F2).
        group.new_bodies.append(claim.url_id)
    elif bool(document.redirects) != claim.redirected:
        # The choice among pages with this body is made anew: one that answers itself comes before one that redirects.
        group.new_bodies.append(claim.url_id)
    group.unchanged.append(settled)
    group.counts["changed" if date_changed or shown_url_changed else "unchanged"] += 1
    if _came_back(claim):
        group.recovered.append(claim.url_id)


def _came_back(claim: Claim) -> bool:
    """Whether the last visit failed, or the document left without one, as an orphan: copies may stand in its place."""
    return claim.code not in WITH_DOCUMENT or not claim.is_known


def _note_urls(document: Document, group: Group) -> bool:
    """Notes a new canonical or display URL of an unchanged page; returns whether another URL is shown for it."""
    claim = document.claim
    canonical, display = build_key(document.canonical), build_key(document.display_url)
    if canonical != claim.canonical_key:
        group.canonicals[claim.url_id] = canonical
    if display == claim.display_key:
        return False
    group.displays[claim.url_id] = display
    own = urls.key(claim.url)
    return (own if display is None else display) != (own if claim.display_key is None else claim.display_key)


def _decide_outcome(outcome: Outcome, source: Source, group: Group) -> None:
    claim = outcome.claim
    if outcome.released:
        group.released.append(claim.url_id)
        return
    now_ms = clock.now_ms()
    attempt = claim.attempt + 1
    retry_after = outcome.retry_after_seconds
    if outcome.transient and backoff.may_retry(attempt, retries=source.fetch.retries, retry_after_seconds=retry_after):
        pause = backoff.retry_pause_seconds(attempt, retry_after)
        group.settled.append(_build_settled(outcome, due_ms=now_ms + int(pause * 1000), again=True))
        return
    failed = is_failure(outcome.code, outcome.rule)
    failed_runs, failures = 0, None
    if failed:
        failed_runs, failures = count_failure(
            outcome.code,
            source,
            failed_runs=claim.failed_runs,
            failures=claim.failures,
            after_run=group.after_run,
        )
    due_ms, interval_ms = _find_next_visit(outcome, source, group, now_ms, failed_runs)
    settled = _build_settled(
        outcome, due_ms=due_ms, interval_ms=interval_ms, failed_runs=failed_runs, failures=failures
    )
    if outcome.code == 304 and not outcome.transient:
        _confirm_unread(outcome, settled, group)
        return
    group.settled.append(settled)
    group.unread.append(claim.url_id)
    _judge_document(settled, outcome, source, group)
    if outcome.links and source.finds_urls:
        group.found.append(FoundLinks(claim.url_id, claim.depth, outcome.links, is_normalised=True))
    if not failed or facts_of(outcome.code).kind is CodeClass.FAILURE:
        # A code may be a failure only here, as 951 for a robots.txt that cannot be read.
        group.counts.update(facts_of(outcome.code).counters)
    group.counts[LOGIN_FAILURES] += outcome.code == Code.LOGIN_FAILED


def _confirm_unread(outcome: Outcome, settled: Settled, group: Group) -> None:
    """Notes a document of which the server says that it did not change."""
    claim = outcome.claim
    group.unchanged.append(settled)
    group.confirmed.append(Confirmed(url_id=claim.url_id, etag=outcome.etag, last_modified=outcome.last_modified))
    if _came_back(claim):
        group.recovered.append(claim.url_id)
    group.counts["not_modified"] += 1


def _find_next_visit(
    outcome: Outcome, source: Source, group: Group, now_ms: int, failed_runs: int
) -> tuple[int | None, int | None]:
    """When a row without a page is due again, None after a last visit; and its interval, None: as it was."""
    if _is_last_visit(outcome):
        return None, None
    if outcome.unasked and not source.lifecycle.intervals.are_set:
        # Before those that were asked: pages that block their host each time must not keep all others from being read.
        return group.horizon_ms + 1, None
    claim, changed = outcome.claim, None
    if not failed_runs:
        changed = next_visit.observe(claim, outcome.code, differs=False, edited=bool(group.edited))
    following = _plan_next(claim, source, group, visited_ms=now_ms, changed=changed, failed_runs=failed_runs)
    return following.due_ms, following.interval_ms


def _is_last_visit(outcome: Outcome) -> bool:
    # A redirect may lead elsewhere the next time.
    return outcome.code == Code.SET_ASIDE or (outcome.code in REFUSED and not _leads_outside(outcome))


def _leads_outside(outcome: Outcome) -> bool:
    """Whether the page was requested, and leads to a URL that an exclude rule names."""
    return outcome.code == Code.OUTSIDE_BOUNDARY and bool(outcome.redirects)


def _count_stop(outcome: Outcome) -> Outcome:
    """The outcome of a page that its worker did not survive: it is set aside if that happens again and again."""
    failures = Failures.parse(outcome.claim.failures).add_stop()
    claim = replace(outcome.claim, failures=failures.dump())
    return replace(outcome, claim=claim, code=Code.SET_ASIDE if failures.is_set_aside else outcome.code)


def count_failure(
    code: int, source: Source, *, failed_runs: int, failures: str | None, after_run: int
) -> tuple[int, str]:
    """How many runs in a row failed with this one, and the same by what failed, as rows keep it.

    ``failed_runs`` and ``failures`` are what the row said before the visit.
    """
    known = Failures.parse(failures)
    kind = find_failure_kind(code, source.lifecycle.remove_on)
    # Where the run ended early and goes on after an edit, its pages are visited once more.
    failed_runs = max(failed_runs, 1) if known.is_of(after_run) else failed_runs + 1
    return failed_runs, known.add(kind, after_run=after_run).dump()


def _judge_document(settled: Settled, outcome: Outcome, source: Source, group: Group) -> None:
    """Notes whether a visit without a page says that a known document is to leave."""
    claim, keys = outcome.claim, source.lifecycle
    if _leads_outside(outcome) and not (outcome.rule or "").startswith(group.edited):
        # A page may lead to an excluded one for a while, as to a login. If the rule is new, what was read there leaves.
        return
    confirmed = is_confirmed(
        settled.code, settled.failures, remove_on=keys.remove_on, confirmations=keys.gone_confirmations
    )
    if confirmed and lifecycle.is_evidence(settled.code, settled.rule, keys.remove_on):
        group.with_evidence.append(claim.url_id)
    elif claim.is_known and 0 < keys.error_runs_before_hidden <= settled.failed_runs:
        group.hidden[claim.url_id] = lifecycle.describe_failures(keys.error_runs_before_hidden)


def _build_settled(
    outcome: Outcome,
    *,
    due_ms: int | None,
    interval_ms: int | None = None,
    failed_runs: int = 0,
    failures: str | None = None,
    again: bool = False,
) -> Settled:
    claim = outcome.claim
    return Settled(
        url_id=claim.url_id,
        fetch_state=FetchState.TODO if again else FetchState.SETTLED,
        code=outcome.code,
        rule=outcome.rule,
        error=outcome.error,
        attempts=claim.attempt + 1 if again else 0,
        failed_runs=claim.failed_runs if again else failed_runs,
        failures=claim.failures if again else failures,
        due_ms=due_ms,
        interval_ms=interval_ms,
        fetched_ms=None if is_refusal(outcome.code, outcome.rule) and not outcome.redirects else clock.now_ms(),
        redirects=_encode_redirects(outcome.redirects),
    )
