"""The steps of a URL that ``explain`` shows, in order: where it was found, what answered, what was sent (L1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, NamedTuple

from searchcrawl import clock, urls
from searchcrawl.admission.url_normalisation import LISTED_DEPTH
from searchcrawl.cache.opening import use_cache
from searchcrawl.cache.segment import Place
from searchcrawl.codes import NEVER_REQUESTED, READ, REDIRECTS, ROBOTS_UNAVAILABLE, Code, describe_code, facts_of
from searchcrawl.delivery.telling_titles import tell_title
from searchcrawl.delivery.usual_languages import choose_languages
from searchcrawl.documents.digests import compute_fields_digest
from searchcrawl.exceptions import CacheError
from searchcrawl.items import CANONICAL_ETAG, Document, Fallback, FallbackReason, Guess, Outcome
from searchcrawl.politeness.backoff import explain_block
from searchcrawl.queries import explain_canonical, explain_redirects
from searchcrawl.queries.explain_address import list_address_refusals
from searchcrawl.queries.explain_context import Context, leads_outside
from searchcrawl.queries.explain_presence import NAMED_BY_NOTHING
from searchcrawl.rules import recrawl, rendering
from searchcrawl.rules.copy_order import build_order, describe_preference
from searchcrawl.rules.decision import ROBOTS_ERROR, describe_unavailable
from searchcrawl.rules.host_texts import unpack_keys
from searchcrawl.rules.lifecycle import ORPHAN_RULE, Failures, find_unread_gap_ms, parse_unread
from searchcrawl.rules.recrawl import Word
from searchcrawl.rules.redirects import read_target
from searchcrawl.rules.rendering import NO_TEXT, RUNS, Record
from searchcrawl.sources.config import Lifecycle
from searchcrawl.sources.fingerprint import describe_keys
from searchcrawl.store.states import FetchState, Leaving
from searchcrawl.store.urls.url_queries import ListedUrl, UrlFacts
from searchcrawl.wording import counted

#: So many texts of links to a page are shown.
_SHOWN_TEXTS: Final = 3
_NOT_ASKED: Final = "not asked (--live asks it)"


@dataclass(frozen=True, slots=True)
class Step:
    """One step; ``rule`` is ``KEY: RULE`` as rows keep it, where a rule decided it."""

    step: str
    outcome: str
    detail: str
    rule: str | None = None

    def as_json(self) -> dict[str, Any]:
        """``{"step", "outcome", "detail", "rule"}``."""
        return asdict(self)


def list_steps(context: Context, *, asked: str) -> Iterator[Step]:
    """Lists all steps that a URL has reached, in order; ``asked`` is the text of the question."""
    yield _describe_identity(context, asked)
    if context.discarded is not None:
        detail = f"links to it are discarded by {context.discarded.text}"
        yield Step("rewrite", "discarded", detail, context.discarded.row_rule)
        return
    yield from _describe_boundary(context)
    yield from _describe_patterns(context)
    yield _describe_discovery(context)
    yield _describe_robots(context)
    if context.block is not None:
        until, why = clock.iso(context.block.until_ms), explain_block(context.block.code)
        yield Step("host", "waits", f"{context.block.name} gets no request from any run before {until} {why}")
    facts = context.facts
    if facts is None:
        yield from (Step("address", "refused", each.rule, each.row_rule) for each in list_address_refusals(context))
        yield from (Step("redirect", *lead) for lead in explain_redirects.list_leads(context))
        return
    listed = facts.listed
    trail = explain_redirects.describe_redirects(context, facts)
    if trail is not None:
        yield Step("redirect", *trail)
    if listed.code not in NEVER_REQUESTED | {Code.ROBOTS}:
        yield _describe_answer(facts)
    rendering = describe_rendering(context, facts)
    if rendering is not None:
        yield Step("render", *rendering)
    if listed.document_state is not None:
        yield _describe_content(context, facts)
    code_facts = facts_of(listed.code)
    if code_facts.step == "keep":
        yield Step("keep", "refused", code_facts.title, listed.rule)
    elif listed.code in READ and code_facts.step != "content":
        yield _describe_kept(context)
    yield from _describe_duplicates(context, facts)
    if listed.document_state is not None:
        yield _describe_index(context, facts)
    if listed.document_state is not None:
        yield from _describe_removal(context, facts)
    yield Step("visit", *describe_next_visit(context, facts))


def _describe_kept(context: Context) -> Step:
    """A page that the index filter let pass at its visit: the rules of ``[keep]`` may have been edited since."""
    edited = any(key.startswith("keep.") for key in context.changed)
    refusals = context.list_filter_refusals() if edited else []
    if refusals:
        return Step("keep", "refused", f"refused by {refusals[0].text} as it is now", refusals[0].row_rule)
    return Step("keep", "allowed", "no rule about what is indexed refused it")


def list_steps_of_gone(context: Context) -> Iterator[Step]:
    """Lists what is known of a URL of a source whose file is gone: no rule can be asked any more."""
    yield Step("identity", "ok", f"{context.url}; source {context.source.name}")
    yield Step("source", "gone", f"{context.source.file} is gone: nothing says what may be requested, or indexed")
    if context.facts is not None:
        yield _describe_answer(context.facts)
        if context.facts.listed.document_state is not None:
            yield _describe_index(context, context.facts)


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
    return Step("live", outcome, "; ".join(filter(None, parts)), answer.rule)


def _describe_identity(context: Context, asked: str) -> Step:
    detail = context.url if asked == context.url else f"{urls.hide_user_info(asked)} is asked for as {context.url}"
    if context.shown_as is not None:
        detail = f"{context.shown_as} is shown for {context.url}"
    if context.listed is not None and context.listed.found_as is not None:
        detail += f"; found as {context.listed.found_as}, and rewritten"
    return Step("identity", "ok", f"{detail}; source {context.source.name}")


def _describe_patterns(context: Context) -> Iterator[Step]:
    """What the patterns of the URL were judged by that grow by themselves (L8, L12)."""
    for pattern in context.patterns:
        if pattern.cut is None:
            yield Step(
                "trap",
                "visited last",
                f"{pattern.text} names its own URLs as fast as it is visited: {pattern.describe()}",
            )
        elif pattern.pages:
            key = f"{pattern.cut} = {pattern.cut_limit}"
            yield Step(
                "trap", "ended", f"{pattern.text}: {pattern.describe()} ({key})", f"{pattern.cut}: {pattern.text}"
            )


def _describe_boundary(context: Context) -> Iterator[Step]:
    refusals, listed = context.list_refusals(), context.listed
    for refusal in refusals:
        advice = f"; to admit it, {refusal.advice}" if refusal.advice else ""
        yield Step("boundary", "refused", f"refused by {refusal.text}{advice}", refusal.row_rule)
    if refusals:
        return
    includes = context.list_includes()
    detail = f"inside by {', '.join(rule.text for rule in includes)}"
    yield Step("boundary", "allowed", detail, includes[0].row_rule)
    if listed is not None and listed.rule is not None and _was_never_requested(listed):
        error = f" ({listed.error})" if listed.error else ""
        when = "when it was found" if listed.last_fetched_ms is None else "after it had been visited"
        yield Step("admission", "refused", f"refused {when}{error}", listed.rule)


def _was_never_requested(listed: ListedUrl) -> bool:
    return listed.code in NEVER_REQUESTED and not leads_outside(listed)


def _describe_discovery(context: Context) -> Step:
    if context.facts is None:
        if context.is_start:
            return Step("found", "start", "a start URL, not yet looked at")
        if context.is_only_counted:
            detail = "links to it get no row: status counts them by rule and host (refused_links)"
            if context.refused_links:
                detail += f"; to its host {counted(context.refused_links, 'link', 'links')} so far"
            return Step("found", "unknown", detail)
        if context.submitted:
            return Step("found", "submitted", "submitted by hand: the next run looks at it")
        unfollowed = context.list_unfollowed()
        if unfollowed:
            named = "; ".join(reason.row_rule for reason in unfollowed)
            return Step("found", "never", f"links to it may not be followed: {named}", unfollowed[0].row_rule)
        return Step("found", "never", "no link to it was followed")
    facts, listed = context.facts, context.facts.listed
    places = ["in the start list"] if context.is_start else []
    if listed.referrer is not None:
        places = [_describe_referrer(facts, listed.referrer)]
    if facts.sitemap is not None:
        lastmod = f" (lastmod {clock.iso(facts.lastmod_ms)})" if facts.lastmod_ms is not None else ""
        places.append(f"in the sitemap {facts.sitemap}{lastmod}")
    where = ", and ".join(places) or _name_unknown_place(listed)
    detail = f"{where}, at depth {listed.depth}, first seen {clock.iso(listed.first_seen_ms)}"
    return Step("found", "seen", f"once {detail}; {NAMED_BY_NOTHING}" if facts.is_orphan else detail)


def _name_unknown_place(listed: ListedUrl) -> str:
    by_hand = ", or submitted by hand" if listed.depth == LISTED_DEPTH else ""
    return f"by no page that is still known{by_hand}"


def _describe_referrer(facts: UrlFacts, referrer: str) -> str:
    """Where a URL was found first: a row without a page that leads to it has no link, and neither has a canonical one."""
    if facts.referrer_code in REDIRECTS:
        kind = "meta refresh" if facts.referrer_code == Code.META_REFRESH else "redirect"
        return f"by the {kind} of {referrer}"
    return f"as the canonical URL of {referrer}" if facts.named_as_canonical else f"on {referrer}"


def _describe_robots(context: Context) -> Step:
    file, listed = f"{urls.parse(context.url).origin}/robots.txt", context.listed
    if not context.source.kind.asks_beside:
        return Step("robots", "ignored", f"there is no robots.txt for {context.source.kind.url}")
    if not context.source.robots.obey:
        return Step("robots", "ignored", f"{file} is not obeyed", "robots.obey: false")
    decided = listed is not None and listed.code == Code.ROBOTS
    if listed is not None and (decided or (not _was_never_requested(listed) and listed.last_fetched_ms is not None)):
        return _describe_robots_of_visit(listed, file)
    # The URL was never requested: the last good copy says what would happen.
    if context.robots is None:
        return Step("robots", "unknown", f"{file}: {_NOT_ASKED}")
    lines = context.list_robots_refusals()
    if lines:
        return Step("robots", "refused", f"{file}, as read last, forbids it", lines[0].rule)
    return Step("robots", "allowed", f"{file}, as read last, does not forbid it")


def _describe_robots_of_visit(listed: ListedUrl, file: str) -> Step:
    """What robots.txt said to the last visit; its redirects may have led to another host."""
    decided = listed.code == Code.ROBOTS
    last = explain_redirects.find_last_url(listed)
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


def _describe_answer(facts: UrlFacts) -> Step:
    listed = facts.listed
    parts = [describe_code(listed.code)]
    error = listed.error
    if error is not None and read_target(error) is None:
        # The error of a status only repeats the status, and the URL that answered.
        parts[0] = error if error.startswith(parts[0]) else f"{parts[0]}; {error}"
    if listed.last_fetched_ms is not None:
        parts.append(f"last visit {clock.iso(listed.last_fetched_ms)}")
    kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(Failures.parse(facts.failures).counts.items()))
    if facts.failed_runs > 1:
        parts.append(f"failed in {facts.failed_runs} runs in a row ({kinds})")
    if listed.etag == CANONICAL_ETAG:
        parts.append("asked for whole each time, as a header names its canonical URL")
    else:
        validators = ("ETag", listed.etag), ("Last-Modified", listed.last_modified)
        parts += [f"{name} {value}" for name, value in validators if value is not None]
    outcome = "read" if listed.code in READ else "moved" if listed.code in REDIRECTS else "failed"
    return Step("answer", outcome, "; ".join(parts))


def _describe_content(context: Context, facts: UrlFacts) -> Step:
    listed = facts.listed
    parts = [f"{facts.mimetype or 'type unknown'}, {facts.content_length} bytes"]
    if listed.fields_digest:
        parts.append(f"checksum {listed.fields_digest.hex()}")
    if listed.last_changed_ms is not None:
        parts.append(f"last changed {clock.iso(listed.last_changed_ms)}")
    if facts.place is None:
        return Step("content", "noted", "; ".join([*parts, "no copy in the cache"]))
    try:
        return Step("content", "kept", "; ".join([*parts, _describe_fields(context, facts.place, facts.mimetype)]))
    except CacheError as error:
        return Step("content", "damaged", "; ".join([*parts, f"its copy cannot be read: {error}"]))


def _describe_fields(context: Context, place: tuple[int, int, int, int], mimetype: str | None) -> str:
    """The fields of the record in the cache, the text by its length; raises CacheError."""
    segment, offset, response_bytes, fields_bytes = place
    at = Place(segment=segment, offset=offset, response_bytes=response_bytes, fields_bytes=fields_bytes)
    with use_cache(context.inputs.project, context.source.name) as cache:
        fields = cache.read_fields(at, url=context.url)
    languages = describe_languages(
        fields, context.url, forced=context.source.content.language, usual=context.usual_language
    )
    title = f'title "{fields["title"]}"' if fields.get("title") else ""
    shared = {urls.host_and_port(context.url): unpack_keys(context.shared_titles)}
    told, shown = tell_title(fields, context.url, mimetype or "", shared), ""
    if told != fields.get("title"):
        shown = f'shown as "{told}", because {"other pages share its title" if title else "it has no title"}'
    fallback = describe_fallback(Fallback(*noted) if (noted := fields.get("fallback")) else None)
    said = (f"{len(str(fields.get('content') or ''))} characters of text", title, shown, languages)
    return "; ".join(filter(None, (", ".join(filter(None, said)), fallback)))


def _describe_duplicates(context: Context, facts: UrlFacts) -> Iterator[Step]:
    """Describes copies, canonical links and display URLs: which URL represents which."""
    listed = facts.listed
    canonical = explain_canonical.describe_canonical(context, facts)
    if canonical is not None:
        yield Step("canonical", *canonical)
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


def _describe_index(context: Context, facts: UrlFacts) -> Step:
    listed = facts.listed
    state = listed.document_state
    parts = [state.facts.title] if state is not None else []
    if listed.indexed_version is not None:
        version = f"version {listed.indexed_version}" if listed.indexed_version else "an unknown version"
        parts.append(f"the index has {version}")
    if listed.batch_id is not None and facts.batch_state is not None:
        parts.append(f"delivery {listed.batch_id} is {facts.batch_state.facts.title}")
    if listed.index_error is not None:
        parts.append(f"the index refused it: {listed.index_error}")
    if context.anchors:
        shown = ", ".join(f'"{text}"' for text in context.anchors[:_SHOWN_TEXTS])
        more = len(context.anchors) - _SHOWN_TEXTS
        others = f" and {counted(more, 'other text', 'other texts')}" if more > 0 else ""
        parts.append(f"links to it say {shown}{others}")
    parts.append(f"id {urls.document_id(context.source.name, listed.url)}")
    return Step("index", "in the index" if context.in_index else "not in the index", "; ".join(parts))


def _describe_removal(context: Context, facts: UrlFacts) -> Iterator[Step]:
    """Describes the removal that waits, was rejected, or was carried out."""
    name, evidence = context.source.name, facts.evidence or "no evidence noted"
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
        listed = facts.listed
        when = "at the end of a completed run" if facts.leaving != Leaving.EVIDENCE else "at the end of the run"
        if listed.code in REDIRECTS and listed.rule is None:
            when = "once the page that it leads to was fetched or is gone"
        if context.source.no_delivery_key is not None:
            when += f" that delivers (not while {context.source.no_delivery_key} is as it is)"
        yield Step("removal", "waits", f"removed {when}, within the limits ({evidence})")
    elif facts.removed_run is not None and not context.in_index:
        detail = (
            f"removed by run {facts.removed_run} ({evidence}); searchcrawl undelete {facts.removed_run} takes it back"
        )
        yield Step("removal", "removed", detail)


class Visit(NamedTuple):
    """What the step says: its outcome, its detail, and the rule that decides."""

    outcome: str
    detail: str
    rule: str | None = None


def describe_next_visit(context: Context, facts: UrlFacts) -> Visit:
    """When a known URL is visited next, and which key decides it."""
    listed = facts.listed
    if listed.fetch_state in {FetchState.FETCHING, FetchState.ALONE} and context.running:
        return Visit("now", "a running process visits it")
    if context.changed:
        return Visit("due", f"the next run looks at everything again: changed: {describe_keys(context.changed)}")
    if listed.fetch_state == FetchState.SUSPECT:
        return Visit("due", "with the next run, after all others: a run stopped turning while it visited the URL")
    if listed.fetch_state == FetchState.TODO:
        return Visit("due", "with the next run: it is still to be visited")
    if listed.due_ms is None:
        return _describe_last_visit(listed)
    return Visit("due", _describe_due(context.source.lifecycle, facts, listed.due_ms))


def _describe_last_visit(listed: ListedUrl) -> Visit:
    if listed.rule == ORPHAN_RULE:
        return Visit("never", "not until a page, a sitemap or the start list names it again", listed.rule)
    if listed.code == Code.SET_ASIDE:
        return Visit("never", "not until the source file is edited: it stopped the crawler again and again")
    return Visit("never", "not by itself: a rule refuses it")


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


def describe_languages(record: Mapping[str, Any], url: str, *, forced: str, usual: str) -> str:
    """The languages that a document is sent with, and on what they were judged; empty where none is known.

    ``record`` has its fields, ``forced`` is ``content.language``, ``usual`` the language of most pages of its host.
    """
    of_host = {} if forced else {urls.host_and_port(url): usual}
    main, *others = choose_languages(record, url, of_host)["languages"] or [""]
    if not main:
        return ""
    guess = record.get("language_guess")
    if guess is None:
        by = "content.language" if forced else "declared"
    else:
        by = _BY[guess] if main == record.get("language") else "that of most pages of its host"
    also = "".join(f', also "{tag}"' for tag in others)
    return f'language "{main}" ({by}){also}'


def describe_rendering(context: Context, facts: UrlFacts) -> tuple[str, str] | None:
    """The outcome of the step and what it says; None where rendering is no question."""
    mode, listed = context.source.render.mode, facts.listed
    record = rendering.parse(facts.parts)
    if listed.error is not None and listed.error.startswith("not rendered: "):
        return "failed", listed.error + _describe_runs(facts, record) + _describe_refused(record)
    if facts.rendered is not None:
        said = f"by a browser: {facts.rendered}{_describe_lacks(facts, record)}{_describe_refused(record)}"
        return "rendered", said + _describe_gains(context)
    if mode == "never" or listed.code in NEVER_REQUESTED or listed.document_state is None:
        return None
    if facts.mimetype is not None and "html" not in facts.mimetype:
        return "plain", f"{facts.mimetype} is not rendered"
    return "plain", f"taken as the server sends it (render.mode: {mode}){_describe_gains(context)}"


def _describe_lacks(facts: UrlFacts, record: Record | None) -> str:
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


def _describe_runs(facts: UrlFacts, record: Record | None) -> str:
    """In how many runs in a row a page ended so."""
    if facts.lacks is None or record is None or not record.runs:
        return ""
    return f" ({counted(record.runs, 'run', 'runs in a row')}; after {RUNS} it is taken as it is)"


def _describe_refused(record: Record | None) -> str:
    """What the wall refused to the page, by rule."""
    if record is None or not record.refused:
        return ""
    return f"; refused to it: {', '.join(f'{count} × {rule}' for rule, count in record.refused)}"


def _describe_gains(context: Context) -> str:
    """What rendering brought for pages whose plain answers leave a doubt, or look whole."""
    shown = [
        f"of {counted(known.rendered, 'page', 'pages')} like it whose plain answer {said}, rendering gave {known.gained} more text"
        + (": such pages are rendered" if rendering.is_worth_it(*known) else "")
        for said, known in context.gains
    ]
    return "".join(f"; {text}" for text in shown)


def describe_fallback(fallback: Fallback | None) -> str:
    """What was taken in place of the main content, and how little that would have been; empty where it was taken."""
    if fallback is None:
        return ""
    share = f"{fallback.left} of {fallback.of} characters"
    if fallback.reason == FallbackReason.UNCUT:
        return f"taken uncut, because {share} would be left without what looks like navigation"
    return f"what it declares its main content is not taken for it, because that has {share}"
