"""Decides what the end of each visit changes in its row and its document. Pure: it does not use the store."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from searchcrawl import clock, urls
from searchcrawl.admission.admit import FoundLinks
from searchcrawl.codes import Code
from searchcrawl.commit import next_visit
from searchcrawl.commit.decide_outcome import count_stop, decide_outcome
from searchcrawl.commit.group import Group, came_back, encode_redirects, plan_next
from searchcrawl.counters import INCOMPLETE
from searchcrawl.items import Document, Link, Outcome, Page
from searchcrawl.rules import lifecycle
from searchcrawl.rules.lifecycle import PageVersion
from searchcrawl.rules.rendering import NO_TEXT
from searchcrawl.sources.config import Source
from searchcrawl.store.documents.document_table import Confirmed
from searchcrawl.store.urls.unfollowed_table import Nofollow
from searchcrawl.store.urls.url_table import Settled


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
            decide_outcome(count_stop(item) if item.stopped_worker else item, source, group)
    return group


def _decide_document(document: Document, source: Source, group: Group) -> None:
    claim = document.claim
    fetched_ms = clock.to_ms(document.fetched_at)
    differs = document.page is not None and _has_changed(document, source)
    changed = next_visit.observe(claim, document.code, differs=differs, edited=bool(group.edited))
    following = plan_next(claim, source, group, visited_ms=fetched_ms, changed=changed)
    settled = Settled(
        url_id=claim.url_id,
        code=document.code,
        rule=document.rule,
        due_ms=following.due_ms,
        interval_ms=following.interval_ms,
        fetched_ms=fetched_ms,
        redirects=encode_redirects(document.redirects),
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
    if came_back(claim):
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
