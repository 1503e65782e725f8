"""``test``: a page as it would be stored, with the decision on each of its links."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from searchcrawl import clock
from searchcrawl.commit.decide import find_nofollow
from searchcrawl.commit.document_rows import build_record
from searchcrawl.convert.convert_pipeline import build_text_rules
from searchcrawl.convert.html_converter import convert_html
from searchcrawl.delivery.documents import build_indexed_document
from searchcrawl.delivery.freezing import choose_languages, load_of_hosts, tell_title
from searchcrawl.html.context import ConversionContext
from searchcrawl.http.visit_end import join_lines
from searchcrawl.index_fields import LANGUAGE_PREFIXES
from searchcrawl.items import Document, Headers, Outcome, Page
from searchcrawl.operations.dry_run import DryRun
from searchcrawl.render.rendered_page import RenderedPage
from searchcrawl.rules.index_filter import META_ROBOTS_KEY
from searchcrawl.rules.rendering import find_failing
from searchcrawl.run import Run
from searchcrawl.store.batch_table import BatchDocument
from searchcrawl.store.urls.link_table import Nofollow

_MOST_REASONS: Final = 20
#: Fields that are shown as ``text``, or that are not known before the page is stored.
_LEFT_OUT: Final = frozenset({"content", "first_seen"})


def describe_page(url: str, seen: Document | Outcome, run: Run) -> dict[str, Any]:
    """What ``test --json`` prints: ``{"url", "code", "rule", "error", "redirects", "rendered", "fields", "text", "links"}``.

    ``rendered`` is why a browser rendered it, null if none did. Where it was asked to, ``text_before`` is the text of what
    the server sent, and ``refused_requests`` the reasons why the browser was refused what the page asked for, with their
    numbers; ``failing_parts`` are scripts, data and frames that failed, ``gave_up`` what it was not waited for any longer, null if it
    was done. ``fields`` are those of the index, without those that only a delivery sets; empty where nothing would be stored.
    """
    found: dict[str, Any] = {
        "url": url,
        "code": int(seen.code),
        "rule": seen.rule,
        "error": seen.error if isinstance(seen, Outcome) else None,
        "redirects": [{"url": hop.url, "code": hop.code} for hop in seen.redirects],
        "rendered": seen.rendered if isinstance(seen, Document) else None,
        "fields": {},
        "text": "",
        "links": [],
    }
    trial = run.trial if isinstance(run, DryRun) else None
    if trial is not None and trial.plain is not None:
        found["text_before"] = _read_plain(trial.plain, run)
        found |= _describe_rendering(trial.page)
    if isinstance(seen, Outcome) or seen.page is None:
        return found
    if seen.code == 200:
        found["fields"] = _build_fields(seen, run)
    found["text"] = seen.page.text
    found["links"] = list(_decide_links(seen, seen.page, run))
    return found


def _describe_rendering(page: RenderedPage | None) -> dict[str, Any]:
    """What a page was refused, and what it lacked."""
    refused = Counter({} if page is None else page.refused).most_common(_MOST_REASONS)
    failing = [] if page is None else find_failing(page.parts)
    return {
        "refused_requests": [{"reason": reason, "requests": count} for reason, count in refused],
        "failing_parts": [join_lines(part.words) for part in failing[:_MOST_REASONS]],
        "gave_up": None if page is None or page.gave_up is None else join_lines(page.gave_up),
    }


def _read_plain(plain: tuple[str, Headers, bytes], run: Run) -> str:
    """The text of a page as it was sent."""
    url, headers, body = plain
    context = ConversionContext(
        url=url,
        headers=headers,
        mimetype="text/html",
        default_charset=run.source.fetch.default_charset,
        user_agent="",
        text_rules=build_text_rules(run.source.content),
    )
    return convert_html(body, context).text


def _build_fields(document: Document, run: Run) -> dict[str, Any]:
    fetched_ms = clock.to_ms(document.fetched_at)
    row = BatchDocument(
        url_id=0,
        url=document.claim.url,
        depth=document.claim.depth,
        segment=None,
        record_offset=None,
        response_bytes=None,
        fields_bytes=None,
        fields_digest=document.fields_digest,
        mimetype=document.mimetype,
        content_length=len(document.body),
        last_modified=document.last_modified,
        first_seen_ms=fetched_ms,
        last_fetched_ms=fetched_ms,
    )
    record, of_hosts = dict(build_record(document).fields), load_of_hosts(run)
    record |= choose_languages(record, document.claim.url, of_hosts.languages)
    record["title"] = tell_title(record, document.claim.url, document.mimetype, of_hosts.titles)
    found = build_indexed_document(row, record, source=run.source.name, duplicates=(), display=run.display).fields
    return {
        name: clock.iso(clock.to_ms(value)) if isinstance(value, datetime) else value
        for name, value in found.items()
        if name not in _LEFT_OUT and not name.startswith(LANGUAGE_PREFIXES)
    }


def _decide_links(document: Document, page: Page, run: Run) -> Iterator[dict[str, Any]]:
    """Each link as a crawl would request it, with the rule that allows or refuses it."""
    depth = document.claim.depth + 1
    kept, discarded = run.rewriting.normalise_links(page.links, document.claim.url)
    for link in kept:
        decision = run.boundary.decide(link.url, depth)
        allowed, rule = decision.allowed, decision.text
        if link.nofollow or (page.nofollow and run.source.keep.meta_robots):
            by_page = f"{META_ROBOTS_KEY}: {find_nofollow(page).title}"
            allowed, rule = False, Nofollow.REL.title if link.nofollow else by_page
        elif not run.source.finds_urls:
            allowed, rule = False, f"mode: {run.source.mode}"
        elif not run.source.scope.follow_links:
            allowed, rule = False, "scope.follow_links: false"
        yield {"url": link.url, "allowed": allowed, "rule": rule}
    for normalised in discarded:
        yield {"url": normalised.url, "allowed": False, "rule": normalised.decision.text}
