"""Decides what the end of each visit changes in its row and its document, and when the row is due again (D2, L5).

Pure: it does not use the store. The writer thread calls it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from copy import copy
from dataclasses import dataclass, field, replace

import orjson

from searchcrawl import clock, urls
from searchcrawl.admission.admit import FoundLinks
from searchcrawl.codes import (
    REDIRECTS,
    REFUSED,
    WITH_DOCUMENT,
    Code,
    CodeClass,
    FailureKind,
    facts_of,
    find_failure_kind,
    is_failure,
    is_refusal,
)
from searchcrawl.counters import INCOMPLETE, LOGIN_FAILURES
from searchcrawl.items import Claim, Document, Hop, Link, Outcome, Page, Unread
from searchcrawl.politeness import backoff
from searchcrawl.rules import lifecycle, recrawl
from searchcrawl.rules.archives import MARK
from searchcrawl.rules.forgotten import KEY
from searchcrawl.rules.lifecycle import Failures, PageVersion, is_denied
from searchcrawl.rules.recrawl import Proof
from searchcrawl.rules.rendering import NO_TEXT
from searchcrawl.sources.config import Lifecycle, Source
from searchcrawl.sources.secrets import redact
from searchcrawl.store.documents.document_table import Confirmed
from searchcrawl.store.documents.former_table import Restored
from searchcrawl.store.states import FetchState
from searchcrawl.store.urls.link_table import Nofollow
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
    ``denied`` are rows whose document is not for anybody from now on, as it may not be read, or is no longer so: it is sent again.
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
    denied: list[int] = field(default_factory=list)
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
            _decide_outcome(count_stop(item) if item.stopped_worker else item, source, group)
    return group


def _decide_document(document: Document, source: Source, group: Group) -> None:
    claim = document.claim
    _note_denial(claim, None, source, group)
    fetched_ms = clock.to_ms(document.fetched_at)
    differs = document.page is not None and _has_changed(document, source)
    changed = _observe(claim, document.code, differs=differs, edited=bool(group.edited))
    due_ms, interval_ms = _plan_next(claim, source, group, visited_ms=fetched_ms, changed=changed)
    if _waits_for_listing(claim, document.code, source, failed=False):
        due_ms = recrawl.UNTIL_LISTED_MS
    settled = Settled(
        url_id=claim.url_id,
        code=document.code,
        rule=document.rule,
        due_ms=due_ms,
        interval_ms=interval_ms,
        fetched_ms=fetched_ms,
        redirects=_encode_redirects(document.redirects),
        lacks=document.lacks,
    )
    if _is_incomplete(document) and document.cached is None:
        group.counts[INCOMPLETE] += 1
    if claim.has_document and (document.page is None or (document.code == 200 and not differs)):
        _confirm(document, settled, source, group)
    elif (claim.has_document or claim.is_known) and (
        document.code == Code.EMPTY or (document.code != 200 and document.page is not None and _is_incomplete(document))
    ):
        # A page without text does not replace an earlier good one; nor is one that lacks something evidence.
        group.settled.append(settled)
        group.unread.append(claim.url_id)
        group.counts["non_indexable"] += 1
    elif document.page is not None and _is_kept(document):
        # An operator keeps the document in spite of this.
        group.settled.append(settled)
        group.counts["non_indexable"] += 1
    elif document.page is None:
        # As empty as before, or refused by the same rule as before.
        _note_answering_url(document, group)
        group.unchanged.append(settled)
        group.counts["non_indexable"] += 1
    else:
        group.settled.append(settled)
        group.stored.append(document)
        group.counts["non_indexable" if document.code != 200 else _compare(document)] += 1
    if document.page is not None and not group.same_links and _has_links_to_note(document, source):
        group.found.append(_collect_links(document, document.page, source))


def _is_incomplete(document: Document) -> bool:
    return document.lacks not in {None, NO_TEXT}


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
    if source.kind.is_listed:
        # Nothing but the files of an archive is found by what is read (D8).
        parts = tuple(link for link in page.links if link.url.startswith(f"{document.claim.url}{MARK}"))
        return FoundLinks(document.claim.url_id, document.claim.depth + 1, parts, only_counted=True)
    follow = source.scope.follow_links
    canonical = document.canonical_link or (Link(document.canonical) if document.canonical is not None else None)
    canonicals = (canonical,) if canonical is not None and follow else ()
    url_id, depth = document.claim.url_id, document.claim.depth + 1
    found = FoundLinks(url_id, depth, (), canonicals, only_counted=True, title=page.title)
    if not follow:
        return found
    if not (page.nofollow and source.keep.meta_robots):
        return found._replace(links=page.links)
    # What a link says itself holds also if an edit has the page's word ignored.
    by_themselves = [link for link in page.links if link.nofollow]
    by_page = [link for link in page.links if not link.nofollow]
    return found._replace(links=by_themselves, unfollowed=by_page, nofollow=find_nofollow(page))


def find_nofollow(page: Page) -> Nofollow:
    """What says that no link of a page is to be followed."""
    return Nofollow.HEADER if page.nofollow_by_header else Nofollow.META


def build_key(url: str | None) -> int | None:
    """The key of a URL; None without one."""
    return None if url is None else urls.key(url)


def build_answered_key(document: Document) -> int | None:
    """The key of the URL that gave a page, where redirects led there; None: the page answered itself."""
    return urls.key(document.answered_url or document.base_url) if document.redirects else None


def _note_answering_url(document: Document, group: Group) -> None:
    """Notes which URL gave an unchanged page: the row itself says what its last visit was led to, and that may fail."""
    if document.redirects or document.claim.redirected:
        group.answered[document.claim.url_id] = build_answered_key(document)


def _has_changed(document: Document, source: Source) -> bool:
    """Whether an indexed value differs and the page counts as changed by ``change.condition``."""
    claim = document.claim
    if claim.fields_digest == document.fields_digest:
        return False
    if source.kind.says_access:
        # Whoever may no longer see it must not, whatever its date is.
        return True
    before = PageVersion(last_modified=claim.last_modified, etag=claim.etag, checksum=claim.fields_digest)
    after = PageVersion(last_modified=document.last_modified, etag=document.etag, checksum=document.fields_digest)
    return lifecycle.has_changed(source.change.condition, before, after)


def _confirm(document: Document, settled: Settled, source: Source, group: Group) -> None:
    """Notes a document with the same text and fields as before; its date and its URLs may have changed."""
    claim = document.claim
    _note_answering_url(document, group)
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
            same_fields=document.page is not None and same_fields,
            copy_digest=document.copy_digest,
            url_fit=document.url_fit,
            rendered=document.rendered,
            parts=document.parts,
            read_version=claim.version or None,
        )
    )
    if document.page is not None and same_fields and document.body_digest != claim.body_digest:
        # The document may have become a copy, or may no longer be one (F2).
        group.new_bodies.append(claim.url_id)
    elif bool(document.redirects) != claim.redirected:
        # The choice among pages with this body is made anew: one that answers itself comes before one that redirects.
        group.new_bodies.append(claim.url_id)
    group.unchanged.append(settled)
    # One that was taken back in the same run is new.
    taken_back = claim.code == Code.SENTINEL and not claim.is_known
    group.counts["new" if taken_back else "changed" if date_changed or shown_url_changed else "unchanged"] += 1
    if _came_back(claim):
        group.recovered.append(claim.url_id)


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
    """Decides about the end of one visit, and notes it in its group."""
    claim = outcome.claim
    if outcome.released:
        group.released.append(claim.url_id)
        return
    if outcome.not_before_ms is not None:
        # Not in this run: it would be claimed again and again. Nor too late: the clock may be wrong.
        latest_ms = clock.now_ms() + recrawl.LONGEST_OPENING_MS
        group.waiting[claim.url_id] = max(min(outcome.not_before_ms, latest_ms), group.horizon_ms + 1)
        return
    if outcome.again_ms is not None:
        group.settled.append(_build_put_off(claim, outcome.again_ms))
        if outcome.whole:
            group.relinked.append(claim.url_id)
        return
    now_ms = clock.now_ms()
    attempt = claim.attempt + 1
    retry_after = outcome.retry_after_seconds
    if outcome.transient and backoff.may_retry(attempt, retries=source.fetch.retries, retry_after_seconds=retry_after):
        pause = backoff.retry_pause_seconds(attempt, retry_after)
        group.settled.append(_build_settled(outcome, due_ms=now_ms + int(pause * 1000), again=True))
        return
    _settle(outcome, source, group, now_ms)


def _settle(outcome: Outcome, source: Source, group: Group, now_ms: int) -> None:
    claim = outcome.claim
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
    _note_denial(claim, failures, source, group)
    due_ms, interval_ms = _find_next_visit(outcome, source, group, now_ms, failed_runs)
    body = None if outcome.unread is None else lifecycle.follow_unread(claim.unread, outcome.unread)
    if body is not None and due_ms is not None and not claim.is_known:
        due_ms = max(due_ms, _wait_unread(body, now_ms, group.horizon_ms))
    settled = _build_settled(
        outcome,
        due_ms=due_ms,
        interval_ms=interval_ms,
        failed_runs=failed_runs,
        failures=failures,
        kept=lifecycle.dump_unread(body),
    )
    if outcome.code == 304 and not outcome.transient:
        _confirm_unread(outcome, settled, group)
        return
    group.settled.append(settled)
    group.unread.append(claim.url_id)
    _judge_document(settled, outcome, source, group)
    _note_links(outcome, source, group)
    if not failed or facts_of(outcome.code).kind is CodeClass.FAILURE:
        # A code may be a failure only here, as 951 for a robots.txt that cannot be read.
        group.counts.update(facts_of(outcome.code).counters)
    group.counts[LOGIN_FAILURES] += outcome.code == Code.LOGIN_FAILED
    if outcome.lacks is not None:
        group.counts[INCOMPLETE] += 1
        group.incomplete[claim.url_id] = outcome.parts


def _note_denial(claim: Claim, failures: str | None, source: Source, group: Group) -> None:
    """Notes a document that may not be read any more, or may be again; ``failures`` are those of its row from now on."""
    if source.kind.says_access and claim.has_document and is_denied(claim.failures) != is_denied(failures):
        group.denied.append(claim.url_id)


def _wait_unread(body: Unread, now_ms: int, horizon_ms: int) -> int:
    """Until when a body that nothing reads is not asked for."""
    gap_ms = lifecycle.find_unread_gap_ms(body)
    return now_ms + gap_ms - recrawl.find_slack_ms(gap_ms, into_run_ms=now_ms - horizon_ms)


def _note_links(outcome: Outcome, source: Source, group: Group) -> None:
    claim, follows = outcome.claim, source.finds_urls and not source.kind.is_listed
    if follows and (outcome.links or _leads_nowhere(outcome, source)):
        group.found.append(FoundLinks(claim.url_id, claim.depth, outcome.links, is_normalised=True))
        group.relinked.append(claim.url_id)


def _leads_nowhere(outcome: Outcome, source: Source) -> bool:
    """Whether the page moved for good to a URL that a rule refuses, and has left: nobody has the links that it had."""
    return (
        not outcome.claim.is_known
        and outcome.code in REDIRECTS
        and outcome.rule is not None
        and lifecycle.is_evidence(outcome.code, outcome.rule, source.lifecycle.remove_on)
    )


def _confirm_unread(outcome: Outcome, settled: Settled, group: Group) -> None:
    """Notes a document of which the server says that it did not change."""
    claim = outcome.claim
    group.unchanged.append(settled)
    group.confirmed.append(
        Confirmed(
            url_id=claim.url_id,
            etag=outcome.etag,
            last_modified=outcome.last_modified,
            rendered=claim.rendered,
            parts=claim.parts,
        )
    )
    if _came_back(claim):
        group.recovered.append(claim.url_id)
    group.counts["not_modified"] += 1


def _find_next_visit(
    outcome: Outcome, source: Source, group: Group, now_ms: int, failed_runs: int
) -> tuple[int | None, int | None]:
    """When a row without a page is due again, None after a last visit; and its interval, None: as it was."""
    if _is_last_visit(outcome):
        return None, None
    if _waits_for_listing(outcome.claim, outcome.code, source, failed=bool(failed_runs)):
        return recrawl.UNTIL_LISTED_MS, None
    if outcome.unasked and not source.lifecycle.intervals.are_set:
        # Before those that were asked: pages that block their host each time must not keep all others from being read.
        return group.horizon_ms + 1, None
    claim, changed = outcome.claim, None
    if not failed_runs:
        changed = _observe(claim, outcome.code, differs=False, edited=bool(group.edited))
    return _plan_next(claim, source, group, visited_ms=now_ms, changed=changed, failed_runs=failed_runs)


def _waits_for_listing(claim: Claim, code: int, source: Source, *, failed: bool) -> bool:
    """Whether a row is visited once what lists it says that it differs: not after a failure of anything but its content."""
    # The files of an archive are due with it.
    if not source.kind.is_listed or (claim.sitemap_id is None and MARK not in claim.url):
        return False
    of_content = code != Code.CONVERSION_LIMIT and facts_of(code).failure is FailureKind.CONTENT
    return not failed or of_content or code in source.lifecycle.remove_on


def _is_last_visit(outcome: Outcome) -> bool:
    # A redirect may lead elsewhere the next time.
    return outcome.code == Code.SET_ASIDE or (outcome.code in REFUSED and not _leads_outside(outcome))


def _leads_outside(outcome: Outcome) -> bool:
    """Whether the page was requested, and leads to a URL that an exclude rule names."""
    return outcome.code == Code.OUTSIDE_BOUNDARY and bool(outcome.redirects)


def count_stop(outcome: Outcome) -> Outcome:
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
    if _leads_outside(outcome) and not (outcome.rule or "").startswith((*group.edited, f"{KEY}: ")):
        # A page may lead to an excluded one for a while, as to a login. If the rule is new, what was read there leaves; and
        # nothing stays of what is to be forgotten.
        return
    if keys.is_evidence(settled.code, settled.rule, settled.failures):
        group.with_evidence.append(claim.url_id)
    elif claim.is_known and outcome.lacks is None and 0 < keys.error_runs_before_hidden <= settled.failed_runs:
        group.hidden[claim.url_id] = lifecycle.describe_failures(keys.error_runs_before_hidden)


def _build_put_off(claim: Claim, again_ms: int) -> Settled:
    """A row that is as it was before its visit, and is to do at a later moment."""
    return Settled(
        url_id=claim.url_id,
        fetch_state=FetchState.TODO,
        code=claim.code,
        keep_rule=True,
        attempts=claim.attempt,
        failed_runs=claim.failed_runs,
        failures=claim.failures,
        due_ms=again_ms,
        fetched_ms=None,
        unread=lifecycle.dump_unread(claim.unread),
        lacks=claim.lacks,
    )


def _build_settled(
    outcome: Outcome,
    *,
    due_ms: int | None,
    interval_ms: int | None = None,
    failed_runs: int = 0,
    failures: str | None = None,
    again: bool = False,
    kept: str | None = None,
) -> Settled:
    claim = outcome.claim
    return Settled(
        url_id=claim.url_id,
        fetch_state=FetchState.TODO if again else FetchState.SETTLED,
        code=outcome.code,
        rule=outcome.rule,
        # Whoever wrote it: it may quote what a server sent back.
        error=redact(outcome.error) if outcome.error else None,
        attempts=claim.attempt + 1 if again else 0,
        failed_runs=claim.failed_runs if again else failed_runs,
        failures=claim.failures if again else failures,
        due_ms=due_ms,
        interval_ms=interval_ms,
        fetched_ms=None if is_refusal(outcome.code, outcome.rule) and not outcome.redirects else clock.now_ms(),
        redirects=_encode_redirects(outcome.redirects),
        unread=kept,
        lacks=outcome.lacks,
    )


def _encode_redirects(hops: Sequence[Hop]) -> str | None:
    """The redirects of a visit, as rows keep them; None without any."""
    return orjson.dumps([{"url": redact(hop.url), "code": hop.code} for hop in hops]).decode() if hops else None


def _came_back(claim: Claim) -> bool:
    """Whether the last visit failed, or the document left without one, as an orphan: copies may stand in its place."""
    return claim.code not in WITH_DOCUMENT or not claim.is_known


def _observe(claim: Claim, code: int, *, differs: bool, edited: bool) -> bool | None:
    """Whether a visit that did not fail saw a change since the last one; None: it cannot tell.

    ``code`` is that of the visit, ``differs`` tells whether an indexed value of a good page does. After an edit of the
    source (``edited``), and where a page is processed again for another reason, the page itself need not have changed.
    """
    if edited or claim.anew or claim.code == Code.NOT_FETCHED:
        return None
    if code in WITH_DOCUMENT and claim.fields_digest is not None:
        return differs
    if claim.failed_runs:
        # What it was before it failed is not known.
        return None
    return code not in {304, claim.code}


def _plan_next(
    claim: Claim, source: Source, group: Group, *, visited_ms: int, changed: bool | None, failed_runs: int = 0
) -> tuple[int, int | None]:
    """When a row is due after a visit, and its interval, None: as it was; notes what it shows of the sitemap that lists it.

    ``changed`` is as ``_observe`` has it, ``failed_runs`` with this visit.
    """
    intervals, horizon_ms = source.lifecycle.intervals, group.horizon_ms
    proof = _find_proof(claim, source.lifecycle, changed=changed, now_ms=visited_ms)
    group.proofs += [] if proof is None else [proof]
    interval_ms, gap_ms = None, intervals.after_failure_ms
    if not failed_runs:
        elapsed_ms = None if claim.visited_ms is None else visited_ms - claim.visited_ms
        interval_ms = intervals.adapt(claim.interval_ms, changed=changed, elapsed_ms=elapsed_ms)
        gap_ms = intervals.every_ms if interval_ms is None else interval_ms
    due_ms = recrawl.next_due_ms(visited_ms, interval_ms=gap_ms, failed_runs=failed_runs)
    due_ms -= recrawl.find_slack_ms(due_ms - visited_ms, into_run_ms=visited_ms - horizon_ms)
    # Even if the clock was set back, a run must not visit a row twice.
    return max(due_ms, horizon_ms + 1), interval_ms


def _find_proof(claim: Claim, lifecycle: Lifecycle, *, changed: bool | None, now_ms: int) -> Proof | None:
    """What a visit shows of the date that a sitemap gave its page; None: nothing, or no date is used."""
    lastmod_ms, visited_ms = claim.lastmod_ms, claim.visited_ms
    is_used = lifecycle.trust_sitemap or lifecycle.intervals.are_set
    # A second try of this run, or the first after a failure, is not the visit that the date was compared with.
    if changed is None or not is_used or claim.sitemap_id is None or claim.attempt or claim.failed_runs:
        return None
    if lastmod_ms is None or visited_ms is None:
        return None
    said = recrawl.read_lastmod(lastmod_ms, visited_ms=visited_ms, now_ms=now_ms)
    if said is None or not recrawl.weigh(said, changed=changed, lastmod_ms=lastmod_ms, visited_ms=visited_ms):
        return None
    return Proof(sitemap_id=claim.sitemap_id, said=said, changed=changed)
