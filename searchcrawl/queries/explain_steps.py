"""The steps of a URL that ``explain`` shows, in order: where it was found, what answered, what was sent (L1)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from searchcrawl import clock, urls
from searchcrawl.admission.url_normalisation import LISTED_DEPTH
from searchcrawl.cache.opening import use_cache
from searchcrawl.codes import (
    NEVER_REQUESTED,
    READ,
    REDIRECTS,
    ROBOTS_UNAVAILABLE,
    SUCCESS,
    Code,
    describe_code,
    facts_of,
)
from searchcrawl.delivery.freezing import KeysOfHosts, choose_languages, tell_title
from searchcrawl.documents.digests import compute_fields_digest
from searchcrawl.exceptions import CacheError
from searchcrawl.items import CANONICAL_ETAG, Document, Fallback, FallbackReason, Guess, Outcome, Place
from searchcrawl.politeness.backoff import explain_block
from searchcrawl.queries.explain_access import show_access
from searchcrawl.queries.explain_context import Context, leads_outside
from searchcrawl.queries.explain_reasons import Step
from searchcrawl.queries.explain_targets import find_last_url, show_canonical, show_leads, show_redirects
from searchcrawl.rules import recrawl, rendering
from searchcrawl.rules.copy_order import build_order, describe_preference
from searchcrawl.rules.decision import ROBOTS_ERROR, describe_unavailable
from searchcrawl.rules.lifecycle import ORPHAN_RULE, Failures, find_unread_gap_ms, parse_unread
from searchcrawl.rules.recrawl import Word
from searchcrawl.rules.redirects import read_target
from searchcrawl.rules.rendering import NO_TEXT, RUNS, RenderRecord
from searchcrawl.sources.config import Lifecycle
from searchcrawl.sources.fingerprint import describe_keys
from searchcrawl.store.owned_hosts import HostTurn
from searchcrawl.store.states import FetchState, Leaving
from searchcrawl.store.urls.url_queries import ListedUrl, UrlFacts
from searchcrawl.wording import counted

#: What is said of an orphan.
NAMED_BY_NOTHING: Final = "no page, sitemap or start list names it any more"
#: So many texts of links to a page are shown.
_SHOWN_TEXTS: Final = 3
_NOT_ASKED: Final = "not asked (--live asks it)"


def list_steps(context: Context, *, asked: str) -> Iterator[Step]:
    """Lists all steps that a URL has reached, in order; ``asked`` is the text of the question."""
    yield _show_identity(context, asked)
    if context.discarded is not None:
        detail = f"links to it are discarded by {context.discarded.text}"
        yield Step("rewrite", "discarded", detail, context.discarded.row_rule)
        return
    for show in _OF_ANY:
        yield from show(context)
    if context.facts is None:
        yield from (Step("address", "refused", each.rule, each.row_rule) for each in context.list_address_refusals())
        yield from show_leads(context)
        return
    for show_row in _OF_ROW:
        yield from show_row(context, context.facts)


def list_steps_of_gone(context: Context) -> Iterator[Step]:
    """Lists what is known of a URL of a source whose file is gone: no rule can be asked any more."""
    yield Step("identity", "ok", f"{context.url}; source {context.source.name}")
    yield Step("source", "gone", f"{context.source.path} is gone: nothing says what may be requested, or indexed")
    if context.facts is not None:
        yield _describe_answer(context.facts)
        yield from _show_index(context, context.facts)


def add_live_answer(steps: Sequence[Step], context: Context, answer: Document | Outcome) -> tuple[Step, ...]:
    """The steps with what the site answers now; a robots.txt that no run has stored was asked for as well."""
    known = (replace(step, detail=step.detail.replace(_NOT_ASKED, "asked for now, and not stored")) for step in steps)
    return (*known, _describe_live_answer(context, answer))


def _describe_live_answer(context: Context, answer: Document | Outcome) -> Step:
    """What the site answers now, and whether the index or the cache has the same (``--live``)."""
    parts = [f"now {describe_code(answer.code)}"]
    if answer.redirects:
        parts.append(" → ".join(f"{hop.url} ({hop.code})" for hop in answer.redirects))
    if isinstance(answer, Outcome):
        target = read_target(answer.error)
        error = answer.error or ""
        # The error of a status repeats it.
        if target is None and error.startswith(describe_code(answer.code)):
            parts[0] = f"now {error}"
        else:
            parts.append(f"leads to {target}" if target is not None else error)
        outcome = "refused" if answer.rule is not None else "moved" if target is not None else "failed"
    else:
        outcome = "read" if answer.code == 200 else "refused"
        parts.append(f"{answer.mimetype}, {len(answer.body)} bytes")
        known = None if context.listed is None else context.listed.fields_digest
        if known is not None:
            page = answer.page
            now = answer.fields_digest if page is None else compute_fields_digest(page, known=known)
            parts.append("as it is known" if now == known else "other than it is known")
        parts.append("" if answer.page is None else describe_fallback(answer.page.fallback))
    return Step("live", outcome, _join(*parts), answer.rule)


def _show_identity(context: Context, asked: str) -> Step:
    detail = context.url if asked == context.url else f"{urls.hide_user_info(asked)} is asked for as {context.url}"
    if context.shown_as is not None:
        detail = f"{context.shown_as} is shown for {context.url}"
    if context.listed is not None and context.listed.found_as is not None:
        detail += f"; found as {context.listed.found_as}, and rewritten"
    return Step("identity", "ok", f"{detail}; source {context.source.name}")


def _show_boundary(context: Context) -> Iterator[Step]:
    refusals, listed = context.list_refusals(), context.listed
    for refusal in refusals:
        advice = f"; to admit it, {refusal.advice}" if refusal.advice else ""
        yield Step("boundary", "refused", f"refused by {refusal.text}{advice}", refusal.row_rule)
    if refusals:
        return
    includes = context.list_includes()
    yield Step("boundary", "allowed", f"inside by {', '.join(rule.text for rule in includes)}", includes[0].row_rule)
    if listed is not None and listed.rule is not None and _was_never_requested(listed):
        error = f" ({listed.error})" if listed.error else ""
        when = "when it was found" if listed.last_fetched_ms is None else "after it had been visited"
        yield Step("admission", "refused", f"refused {when}{error}", listed.rule)


def _show_patterns(context: Context) -> Iterator[Step]:
    """What the patterns of the URL were judged by that grow by themselves (L8, L12)."""
    for pattern in context.patterns:
        said, rule = pattern.describe(), f"{pattern.cut}: {pattern.text}"
        if pattern.cut is None:
            yield Step("trap", "visited last", f"{pattern.text} names its own URLs as fast as it is visited: {said}")
        elif pattern.pages:
            yield Step("trap", "ended", f"{pattern.text}: {said} ({pattern.cut} = {pattern.cut_limit})", rule)


def _was_never_requested(listed: ListedUrl) -> bool:
    return listed.code in NEVER_REQUESTED and not leads_outside(listed)


def _show_discovery(context: Context) -> Iterator[Step]:
    facts = context.facts
    if facts is None:
        yield _describe_unseen(context)
        return
    listed = facts.listed
    places = ["in the start list"] if context.is_start else []
    if listed.referrer is not None:
        places = [_describe_referrer(facts, listed.referrer)]
    if facts.sitemap is not None:
        lastmod = f" (lastmod {clock.iso(facts.lastmod_ms)})" if facts.lastmod_ms is not None else ""
        kind = "" if context.source.kind.is_listed else "the sitemap "
        places.append(f"in {kind}{facts.sitemap}{lastmod}")
    by_hand = ", or submitted by hand" if listed.depth == LISTED_DEPTH else ""
    where = ", and ".join(places) or f"by no page that is still known{by_hand}"
    detail = f"{where}, at depth {listed.depth}, first seen {clock.iso(listed.first_seen_ms)}"
    yield Step("found", "seen", f"once {detail}; {NAMED_BY_NOTHING}" if facts.is_orphan else detail)


def _describe_unseen(context: Context) -> Step:
    """What leads, or does not lead, to a URL without a row."""
    if context.is_start:
        return Step("found", "start", "a start URL, not yet looked at")
    if context.is_only_counted:
        links = context.refused_links
        so_far = f"; to its host {counted(links, 'link', 'links')} so far" if links else ""
        detail = f"links to it get no row: status counts them by rule and host (refused_links){so_far}"
        return Step("found", "unknown", detail)
    if context.submitted:
        return Step("found", "submitted", "submitted by hand: the next run looks at it")
    unfollowed = [reason.row_rule for reason in context.list_unfollowed()]
    if unfollowed:
        return Step("found", "never", f"links to it may not be followed: {'; '.join(unfollowed)}", unfollowed[0])
    if context.source.kind.is_listed:
        container = context.container
        is_itself = container is not None and container.code in SUCCESS
        return Step(
            "found", "never", "a container: what is in it is listed" if is_itself else "no listing has named it"
        )
    return Step("found", "never", "no link to it was followed")


def _describe_referrer(facts: UrlFacts, referrer: str) -> str:
    """Where a URL was found first: a row without a page that leads to it has no link, and neither has a canonical one."""
    if facts.referrer_code in REDIRECTS:
        kind = "meta refresh" if facts.referrer_code == Code.META_REFRESH else "redirect"
        return f"by the {kind} of {referrer}"
    return f"as the canonical URL of {referrer}" if facts.named_as_canonical else f"on {referrer}"


def _show_robots(context: Context) -> Iterator[Step]:
    file, listed = f"{urls.parse(context.url).origin}/robots.txt", context.listed
    decided = listed is not None and listed.code == Code.ROBOTS
    lines = context.list_robots_refusals()
    if not context.source.kind.asks_beside:
        yield Step("robots", "ignored", f"there is no robots.txt for {context.source.kind.url}")
    elif not context.source.robots.obey:
        yield Step("robots", "ignored", f"{file} is not obeyed", "robots.obey: false")
    elif listed is not None and (decided or (not _was_never_requested(listed) and listed.last_fetched_ms is not None)):
        yield _describe_robots_of_visit(listed, file)
    # The URL was never requested: the last good copy says what would happen.
    elif context.robots is None:
        yield Step("robots", "unknown", f"{file}: {_NOT_ASKED}")
    elif lines:
        yield Step("robots", "refused", f"{file}, as read last, forbids it", lines[0].rule)
    else:
        yield Step("robots", "allowed", f"{file}, as read last, does not forbid it")


def _show_block(context: Context) -> Iterator[Step]:
    if context.block is not None:
        until, why = clock.iso(context.block.until_ms), explain_block(context.block.code)
        yield Step("host", "waits", f"{context.block.name} gets no request from any run before {until} {why}")
    elif context.turn is not None and context.turn.now.source != context.source.name:
        yield Step("host", "waits", _describe_turn(context.turn, urls.host_and_port(context.url), context.source.name))


def _describe_turn(turn: HostTurn, host: str, name: str) -> str:
    """Who asks a host that this source does not ask now, and when its turn comes."""
    now = f"{host} is asked by {turn.now.describe()} now"
    if turn.following is None:
        return f"{now}; it hands the host over within seconds of a request for it"
    next_one = name if turn.following.source == name else turn.following.describe()
    return f"{now}; {next_one} has the next turn, in a few seconds at most"


def _describe_robots_of_visit(listed: ListedUrl, file: str) -> Step:
    """What robots.txt said to the last visit; its redirects may have led to another host."""
    decided = listed.code == Code.ROBOTS
    last = find_last_url(listed)
    if listed.redirects is not None and (decided or _lacked_robots(listed)):
        file = "the robots.txt for the URL to which it redirects"
        file = file if last is None else f"{urls.parse(last).origin}/robots.txt, for the URL to which it redirects,"
    if decided and listed.rule != ROBOTS_UNAVAILABLE:
        return Step("robots", "refused", f"{file} forbade it at the last visit", listed.rule)
    if decided or _lacked_robots(listed):
        why = describe_unavailable(listed.error).removeprefix("robots.txt ") if decided else "could not be read"
        return Step("robots", "unreadable", f"{file} {why}", listed.rule)
    return Step("robots", "allowed", f"{file} did not forbid it at the last visit")


def _lacked_robots(listed: ListedUrl) -> bool:
    return listed.error is not None and listed.error.startswith(ROBOTS_ERROR)


def _show_answer(context: Context, facts: UrlFacts) -> Iterator[Step]:
    if facts.listed.code not in NEVER_REQUESTED | {Code.ROBOTS}:
        yield _describe_answer(facts)


def _describe_answer(facts: UrlFacts) -> Step:
    listed = facts.listed
    meaning, error = describe_code(listed.code), listed.error
    if error is not None and read_target(error) is None:
        # The error of a status only repeats the status, and the URL that answered.
        meaning = error if error.startswith(meaning) else f"{meaning}; {error}"
    kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(Failures.parse(facts.failures).counts.items()))
    validators = [("ETag", listed.etag), ("Last-Modified", listed.last_modified)]
    asked = [f"{name} {value}" for name, value in validators if value is not None]
    if listed.etag == CANONICAL_ETAG:
        asked = ["asked for whole each time, as a header names its canonical URL"]
    outcome = "read" if listed.code in READ else "moved" if listed.code in REDIRECTS else "failed"
    detail = _join(
        meaning,
        f"last visit {clock.iso(listed.last_fetched_ms)}" if listed.last_fetched_ms is not None else "",
        f"failed in {facts.failed_runs} runs in a row ({kinds})" if facts.failed_runs > 1 else "",
        *asked,
    )
    return Step("answer", outcome, detail)


def _join(*details: str) -> str:
    """Those of the details that are not empty."""
    return "; ".join(filter(None, details))


def _show_rendering(context: Context, facts: UrlFacts) -> Iterator[Step]:
    """Whether a browser rendered it; nothing where rendering is no question."""
    mode, listed = context.source.render.mode, facts.listed
    record = rendering.parse(facts.parts)
    refused = "" if record is None else ", ".join(f"{count} × {rule}" for rule, count in record.refused)
    refused = refused and f"; refused to it: {refused}"
    if listed.error is not None and listed.error.startswith("not rendered: "):
        yield Step("render", "failed", f"{listed.error}{_describe_runs(facts, record)}{refused}")
    elif facts.rendered is not None:
        said = f"by a browser: {facts.rendered}{_describe_lacks(facts, record)}{refused}{_describe_gains(context)}"
        yield Step("render", "rendered", said)
    elif mode == "never" or listed.code in NEVER_REQUESTED or listed.document_state is None:
        return
    elif facts.mimetype is not None and "html" not in facts.mimetype:
        yield Step("render", "plain", f"{facts.mimetype} is not rendered")
    else:
        plain = f"taken as the server sends it (render.mode: {mode}){_describe_gains(context)}"
        yield Step("render", "plain", plain)


def _describe_lacks(facts: UrlFacts, record: RenderRecord | None) -> str:
    if facts.lacks == NO_TEXT:
        return f"; it is whole, and has {NO_TEXT}"
    if facts.lacks is not None:
        return f"; incomplete: {facts.lacks}{_describe_runs(facts, record)}"
    if record is None:
        return ""
    if record.accepted:
        number = counted(len(record.accepted), "thing", "things")
        return f"; as it is now: it lacks {number} that it lacked in {RUNS} runs"
    return "; complete"


def _describe_runs(facts: UrlFacts, record: RenderRecord | None) -> str:
    """In how many runs in a row a page ended so."""
    if facts.lacks is None or record is None or not record.runs:
        return ""
    return f" ({counted(record.runs, 'run', 'runs in a row')}; after {RUNS} it is taken as it is)"


def _describe_gains(context: Context) -> str:
    """What rendering brought for pages whose plain answers leave a doubt, or look whole."""
    return "".join(
        f"; of {counted(known.rendered, 'page', 'pages')} like it whose plain answer {said}, rendering gave {known.gained} "
        f"more text{': such pages are rendered' if rendering.is_worth_it(*known) else ''}"
        for said, known in context.gains
    )


def _show_content(context: Context, facts: UrlFacts) -> Iterator[Step]:
    listed, place = facts.listed, facts.place
    if listed.document_state is None:
        return
    outcome, copy = "noted", "no copy in the cache"
    if place is not None:
        try:
            outcome, copy = "kept", _describe_fields(context, place, facts.mimetype)
        except CacheError as error:
            outcome, copy = "damaged", f"its copy cannot be read: {error}"
    detail = _join(
        f"{facts.mimetype or 'type unknown'}, {facts.content_length} bytes",
        f"checksum {listed.fields_digest.hex()}" if listed.fields_digest else "",
        f"last changed {clock.iso(listed.last_changed_ms)}" if listed.last_changed_ms is not None else "",
        copy,
    )
    yield Step("content", outcome, detail)


def _describe_fields(context: Context, place: Place, mimetype: str | None) -> str:
    """The fields of the record in the cache, the text by its length; raises CacheError."""
    with use_cache(context.inputs.project, context.source.name) as cache:
        fields = cache.read_fields(place, url=context.url)
    languages = _describe_languages(context, fields)
    title = f'title "{fields["title"]}"' if fields.get("title") else ""
    shared = KeysOfHosts({urls.host_and_port(context.url): context.shared_titles})
    told, shown = tell_title(fields, context.url, mimetype or "", shared), ""
    if told != fields.get("title"):
        shown = f'shown as "{told}", because {"other pages share its title" if title else "it has no title"}'
    fallback = describe_fallback(Fallback(*noted) if (noted := fields.get("fallback")) else None)
    said = (f"{len(str(fields.get('content') or ''))} characters of text", title, shown, languages)
    return _join(", ".join(filter(None, said)), fallback)


def _show_kept(context: Context, facts: UrlFacts) -> Iterator[Step]:
    """Whether ``[keep]`` lets a page into the index: it did at its visit, and its rules may have been edited since."""
    listed, code_facts = facts.listed, facts_of(facts.listed.code)
    if code_facts.step == "keep":
        yield Step("keep", "refused", code_facts.title, listed.rule)
    elif listed.code in READ and code_facts.step != "content":
        edited = any(key.startswith("keep.") for key in context.changed)
        refusals = context.list_filter_refusals() if edited else []
        if refusals:
            yield Step("keep", "refused", f"refused by {refusals[0].text} as it is now", refusals[0].row_rule)
        else:
            yield Step("keep", "allowed", "no rule about what is indexed refused it")


def _show_duplicates(context: Context, facts: UrlFacts) -> Iterator[Step]:
    """Describes copies and display URLs: which URL represents which."""
    listed = facts.listed
    if listed.code in {Code.DUPLICATE, Code.DUPLICATE_IN_RUN} and listed.duplicate_of is not None:
        copy = f"a {'near ' if facts.is_near_copy else ''}copy of {facts.survivor}"
        yield Step("duplicate", "copy", f"{copy}{_describe_preference(context, facts)}")
    elif facts.copies:
        yield Step("duplicate", "stands for", ", ".join(facts.copies))
    if facts_of(listed.code).step == "display":
        detail = f"shown with the URL of {listed.duplicate_of}" if listed.duplicate_of else describe_code(listed.code)
        yield Step("display", "refused", f"{detail}{_describe_preference(context, facts)}", listed.rule)


def _describe_preference(context: Context, facts: UrlFacts) -> str:
    """Why the other page is indexed in its place, after a colon; empty where it is not the better one any more."""
    listed = facts.listed
    if listed.duplicate_of is None or (listed.duplicate_source is not None and not facts.has_survivor):
        return ""
    place = 1 if listed.duplicate_source is not None and listed.duplicate_source > context.source.name else -1
    own = build_order(listed.url, redirected=facts.redirected, url_fit=facts.url_fit)
    other = build_order(
        listed.duplicate_of, redirected=facts.survivor_redirected, url_fit=facts.survivor_fit, place=place
    )
    why = describe_preference(other, own)
    return f": {why}" if why else ""


def _show_index(context: Context, facts: UrlFacts) -> Iterator[Step]:
    listed = facts.listed
    if listed.document_state is None:
        return
    texts, more = context.anchors[:_SHOWN_TEXTS], len(context.anchors) - _SHOWN_TEXTS
    shown = ", ".join(f'"{text}"' for text in texts)
    others = f" and {counted(more, 'other text', 'other texts')}" if more > 0 else ""
    version = f"version {listed.indexed_version}" if listed.indexed_version else "an unknown version"
    delivery = None if listed.batch_id is None else facts.batch_state
    detail = _join(
        listed.document_state.facts.title,
        f"the index has {version}" if context.in_index else "",
        f"delivery {listed.batch_id} is {delivery.facts.title}" if delivery is not None else "",
        f"the index refused it: {listed.index_error}" if listed.index_error is not None else "",
        f"links to it say {shown}{others}" if texts else "",
        f"id {urls.document_id(context.source.name, listed.url)}",
    )
    yield Step("index", "in the index" if context.in_index else "not in the index", detail)


def _show_removal(context: Context, facts: UrlFacts) -> Iterator[Step]:
    """Describes the removal that waits, was rejected, or was carried out."""
    listed, name, evidence = facts.listed, context.source.name, facts.evidence or "no evidence noted"
    if listed.document_state is None:
        return
    if facts.quarantine_run is not None:
        detail = f"run {facts.quarantine_run} would have removed more than the limits on deleting allow ({evidence})"
        yield Step("removal", "quarantined", detail)
    elif facts.rejected_run is not None:
        detail = (
            f"the removal by run {facts.rejected_run} was rejected ({evidence}): it stays until there is other evidence; "
            f"to let it go after all: searchcrawl quarantine restore {name} --run {facts.rejected_run}"
        )
        yield Step("removal", "rejected", detail)
    elif facts.leaving:
        when = "at the end of a completed run" if facts.leaving != Leaving.EVIDENCE else "at the end of the run"
        if listed.code in REDIRECTS and listed.rule is None:
            when = "once the page that it leads to was fetched or is gone"
        if context.source.no_delivery_key is not None:
            when += f" that delivers (not while {context.source.no_delivery_key} is as it is)"
        yield Step("removal", "waits", f"removed {when}, within the limits ({evidence})")
    elif facts.removed_run is not None and not context.in_index:
        undo = f"searchcrawl undelete {facts.removed_run} takes it back"
        yield Step("removal", "removed", f"removed by run {facts.removed_run} ({evidence}); {undo}")


def _show_visit(context: Context, facts: UrlFacts) -> Iterator[Step]:
    """When a known URL is visited next, and which key decides it."""
    listed = facts.listed
    if listed.fetch_state in {FetchState.FETCHING, FetchState.ALONE} and context.running:
        yield Step("visit", "now", "a running process visits it")
    elif context.changed:
        keys = describe_keys(context.changed)
        yield Step("visit", "due", f"the next run looks at everything again: changed: {keys}")
    elif listed.fetch_state == FetchState.SUSPECT:
        waits = "with the next run, after all others: a run stopped turning while it visited the URL"
        yield Step("visit", "due", waits)
    elif listed.fetch_state == FetchState.TODO:
        yield Step("visit", "due", "with the next run: it is still to be visited")
    elif listed.due_ms == recrawl.UNTIL_LISTED_MS:
        again = "it again" if listed.code == Code.NO_LONGER_LISTED else "another version of it"
        yield Step("visit", "listed", f"once {facts.sitemap} lists {again}, or the source file is edited")
    elif listed.due_ms is not None:
        yield Step("visit", "due", _describe_due(context.source.lifecycle, facts, listed.due_ms))
    elif listed.rule == ORPHAN_RULE:
        named = "not until a page, a sitemap or the start list names it again"
        yield Step("visit", "never", named, listed.rule)
    elif listed.code == Code.SET_ASIDE:
        edited = "not until the source file is edited: it stopped the crawler again and again"
        yield Step("visit", "never", edited)
    else:
        yield Step("visit", "never", "not by itself: a rule refuses it")


def _describe_due(lifecycle: Lifecycle, facts: UrlFacts, due_ms: int) -> str:
    now_ms, visited_ms = clock.now_ms(), facts.listed.last_fetched_ms
    said = recrawl.read_lastmod(facts.lastmod_ms, visited_ms=visited_ms, now_ms=now_ms)
    if facts.listed.opens_ms == due_ms > now_ms:
        # The row does not say who: the next run asks again.
        return f"not before {clock.iso(due_ms)}: find_opening of its spider, or a plug-in that said not yet"
    if due_ms <= now_ms:
        put_off = lifecycle.trust_sitemap and said is Word.SAME
        return "with the next run" + (
            ", unless its sitemap, if its dates proved true, gives no later one (trust_sitemap)" if put_off else ""
        )
    sooner = (
        f"; sooner if its sitemap, if its dates proved true, gives one after {clock.iso(visited_ms)}" if said else ""
    )
    return f"with the first run after {clock.iso(due_ms)}{_name_interval(lifecycle, facts)}{sooner}"


def _name_interval(lifecycle: Lifecycle, facts: UrlFacts) -> str:
    body = parse_unread(facts.unread)
    if body is not None and find_unread_gap_ms(body):
        how = "asked with its validators" if body.etag or body.last_modified else "it has no validators"
        return f" (nothing reads its type: {how}, found the same {counted(body.times, 'time', 'times')})"
    if not lifecycle.intervals.are_set:
        return ""
    if facts.failed_runs:
        return f" (failed in {counted(facts.failed_runs, 'run', 'runs')} in a row)"
    interval_ms = facts.listed.interval_ms
    if not lifecycle.intervals.are_adaptive or interval_ms is None:
        return f" (lifecycle.recrawl_every_hours = {lifecycle.recrawl_every_hours:g})"
    bounds = (
        f"recrawl_min_hours = {lifecycle.recrawl_min_hours:g} and recrawl_max_hours = {lifecycle.recrawl_max_hours:g}"
    )
    return f" (its interval is {interval_ms / recrawl.HOUR_MS:.3g} hours by its changes, between lifecycle.{bounds})"


_BY: Final[Mapping[str, str]] = {
    Guess.TEXT: "by its text",
    Guess.SCRIPT: "by its script",
    Guess.DEFAULT: "fetch.default_language",
}


def _describe_languages(context: Context, record: Mapping[str, Any]) -> str:
    """The languages that a document is sent with, and on what they were judged; empty where none is known."""
    forced = context.source.content.language
    of_host = {} if forced else {urls.host_and_port(context.url): context.usual_language}
    main, *others = choose_languages(record, context.url, of_host)["languages"] or [""]
    if not main:
        return ""
    guess = record.get("language_guess")
    if guess is None:
        by = "content.language" if forced else "declared"
    else:
        by = _BY[guess] if main == record.get("language") else "that of most pages of its host"
    also = "".join(f', also "{tag}"' for tag in others)
    return f'language "{main}" ({by}){also}'


def describe_fallback(fallback: Fallback | None) -> str:
    """What was taken in place of the main content, and how little that would have been; empty where it was taken."""
    if fallback is None:
        return ""
    share = f"{fallback.left} of {fallback.of} characters"
    if fallback.reason == FallbackReason.UNCUT:
        return f"taken uncut, because {share} would be left without what looks like navigation"
    return f"what it declares its main content is not taken for it, because that has {share}"


#: The steps in their order, which a reader reads from top to bottom; each shows what there is to say, which may be nothing.
_OF_ANY: Final[Sequence[Callable[[Context], Iterator[Step]]]] = (
    _show_boundary,
    _show_patterns,
    _show_discovery,
    _show_robots,
    _show_block,
)
#: The same for a URL that has a row.
_OF_ROW: Final[Sequence[Callable[[Context, UrlFacts], Iterator[Step]]]] = (
    show_redirects,
    _show_answer,
    _show_rendering,
    _show_content,
    show_access,
    _show_kept,
    show_canonical,
    _show_duplicates,
    _show_index,
    _show_removal,
    _show_visit,
)
