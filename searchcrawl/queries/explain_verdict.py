"""The verdict on a URL: one sentence, the rule that decided, and the rules that would decide alike (L1).

The rules are those of the source file as it is now; everything else is what the last visit left in the store.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from searchcrawl import urls
from searchcrawl.codes import COPIES, REDIRECTS, REFUSED, ROBOTS_UNAVAILABLE, Code, describe_code, facts_of, is_failure
from searchcrawl.html.shell import needs_scripts
from searchcrawl.queries.explain_address import list_address_refusals
from searchcrawl.queries.explain_advice import locate
from searchcrawl.queries.explain_context import Context, leads_outside, read_page
from searchcrawl.queries.explain_presence import IN, NOT_IN, STAYS, describe_presence, explain_orphan
from searchcrawl.queries.explain_reasons import Reason, Verdict, build_reason, is_changed, parse_reason
from searchcrawl.queries.explain_redirects import find_last_url
from searchcrawl.rules import forgotten
from searchcrawl.rules.boundary import refusal_code
from searchcrawl.rules.decision import Decision, describe_unavailable
from searchcrawl.rules.redirects import read_target
from searchcrawl.sources.project import FILE
from searchcrawl.store.states import EndReason, FetchState
from searchcrawl.store.urls.unfollowed_table import Nofollow
from searchcrawl.store.urls.url_queries import ListedUrl, UrlFacts
from searchcrawl.store.urls.url_state import UrlState

#: No key sets the limit of 1,000 times the bytes sent.
_MORE_THAN: Final = re.compile(r"more than ([0-9]+)(?![0-9]| times)")
_WAITING: Final = {
    UrlState.CACHED: "fetched, and waits to be delivered",
    UrlState.SENDING: "being delivered",
    UrlState.TODO: "to be fetched again: it is to be indexed, and its copy is gone from the cache",
}


def find_verdict(context: Context) -> Verdict:
    """Finds the verdict on a URL, whether or not its source has seen it."""
    refusals = [context.discarded] if context.discarded is not None else context.list_refusals()
    if refusals and context.discarded is None:
        # Without the rules of the source it would still be forbidden.
        refusals += context.list_robots_refusals()
    facts = context.facts
    if facts is None:
        return _explain_unseen(context, refusals)
    listed = facts.listed
    if refusals:
        return _explain_outside(context, facts, refusals)
    if listed.code in REFUSED and listed.rule is not None and not leads_outside(listed):
        if is_changed(context.changed, listed.rule) or listed.rule.startswith(f"{forgotten.KEY}: "):
            return _explain_lifted(context, f"refused when it was found ({listed.rule})")
        # A rule about all URLs of the source refused it: the boundary itself lets it pass.
        step = "rewrite" if listed.rule.startswith("rewrite") else "boundary"
        reason = parse_reason(listed.rule, step, context.source)
        return Verdict(f"{describe_presence(context, facts)}: {describe_code(listed.code)}", [reason])
    if listed.fetch_state != FetchState.SETTLED:
        return _explain_unvisited(context, facts)
    reasons = _find_reasons_of_visit(context, facts)
    if reasons and (leaving := _list_waiting(context, facts)):
        presence = f"{IN} as it was, and leaves at its next good visit by {leaving[0].text}"
        return Verdict(f"{presence}: {_describe_visit(context, facts)}", [*reasons, *leaving])
    if reasons:
        return Verdict(f"{describe_presence(context, facts)}: {_describe_visit(context, facts)}", reasons)
    if listed.code == 200:
        return explain_orphan(context, facts) or _add_hint(context, facts, _explain_good(context, facts))
    if listed.code in REDIRECTS:
        text = f"{NOT_IN}: {_describe_visit(context, facts)}, which no rule refuses now: the next run asks for it"
        return Verdict(text, [Reason(step="redirect", rule=f"leads to {read_target(listed.error)}")])
    said = listed.rule or listed.error or describe_code(listed.code)
    return _explain_lifted(context, f"refused at the last visit ({said})")


def explain_gone(context: Context) -> Verdict:
    """The verdict on a URL for a source whose file is gone: what is in the index stays there."""
    name, file = context.source.name, context.source.file
    reason = Reason(step="source", rule="the file of the source is gone", file=file)
    if context.in_index:
        text = f"{IN}: no run visits it any more, as {file} is gone: put it back, or searchcrawl delete {name}"
    else:
        text = f"{NOT_IN}: {file} is gone, so no run of {name} looks at it"
    return Verdict(text, [reason])


def _list_waiting(context: Context, facts: UrlFacts) -> Sequence[Reason]:
    """The rules of ``[keep]`` that refuse a document of the index once a visit does not fail."""
    stays = describe_presence(context, facts) == STAYS
    return context.list_filter_refusals() if stays and is_failure(facts.listed.code, facts.listed.rule) else []


def _explain_unseen(context: Context, refusals: Sequence[Reason]) -> Verdict:
    if context.led:
        return _explain_led(context, refusals)
    code = _code_of(refusals[0]) if refusals else int(Code.ROBOTS)
    if refusals and context.is_only_counted and context.run is not None:
        return Verdict(f"{NOT_IN}: {describe_code(code)}", refusals)
    refusals = refusals or context.list_robots_refusals()
    if refusals:
        seen = f"never requested ({context.led_away[0].url} redirects to it)" if context.led_away else "never seen"
        return Verdict(f"{NOT_IN}: {seen}, and it would be refused ({describe_code(code)})", refusals)
    unreachable = list_address_refusals(context)
    if unreachable:
        text = f"never seen, and its address may not be reached ({int(Code.ADDRESS_NOT_FOUND)})"
        return Verdict(f"{NOT_IN}: {text}", unreachable)
    if context.submitted:
        reason = Reason(step="found", rule="submitted by hand")
        return Verdict(f"{NOT_IN} as yet: submitted by hand; the next run visits it", [reason])
    if context.led_away:
        return _explain_led(context, ())
    if context.is_start:
        file, key = locate(context.source, "start.urls" if context.source.start.urls else "start.files")
        reason = Reason(step="found", rule="a start URL", file=file, key=key)
        return Verdict(f"{NOT_IN}: the next run asks for it, as a start URL", [reason])
    if context.run is None:
        reason = Reason(step="found", rule="its source was never crawled")
        return Verdict(f"{NOT_IN}: {reason.rule}; the rules would let it pass", [reason])
    takes_links = context.source.finds_urls and context.source.scope.follow_links
    # A link to it may have been refused by the rules of before, without a row.
    lifted = [
        link for link in context.unfollowed if link.kind is not Nofollow.REL and not context.source.keep.meta_robots
    ]
    if takes_links and (lifted or any(key.startswith(("scope.", "rewrite")) for key in context.changed)):
        text = (
            f"{NOT_IN} as yet: no rule refuses it as they are now; the next run reads all pages, and takes links to it"
        )
        return Verdict(text, context.list_includes())
    return _explain_unfound(context)


def _explain_led(context: Context, refusals: Sequence[Reason]) -> Verdict:
    """The verdict on a URL without a row, from which the pages of others came: they stand for its page."""
    led = context.led or context.led_away
    reasons = [Reason(step="redirect", rule=f"{one.url} redirects to it") for one in led]
    first = led[0]
    if first.in_index:
        text = f"its page is in the index as {first.url}, which redirects to it"
    else:
        text = f"{first.url} redirects to it, and is not in the index either ({describe_code(first.code)})"
    return Verdict(f"{NOT_IN} by itself: {text}", [*reasons, *refusals])


def _explain_unfound(context: Context) -> Verdict:
    """The verdict on a URL to which nothing led: because of a key, or because nothing that may be followed does."""
    source, run = context.source, context.run
    unlinked = context.list_unlinked()
    if not source.finds_urls:
        return Verdict(f"{NOT_IN}: never seen: no URL is new with {unlinked[0].row_rule}", unlinked)
    sitemaps_off = source.start.sitemaps == "off"
    reasons = [build_reason("found", Decision(False, "off", key="start.sitemaps"), source)] if sitemaps_off else []
    listed = "no sitemap is read" if sitemaps_off else "no sitemap that was read lists it"
    if unlinked:
        return Verdict(f"{NOT_IN}: never seen: links are not followed, and {listed}", [*unlinked, *reasons])
    unfollowed = context.list_unfollowed()
    text = f"{NOT_IN}: never seen: no page that was read has a link to it that may be followed"
    if unfollowed:
        text += f" ({unfollowed[0].rule})"
    elif context.unfollowed_cut:
        text += " (some pages have so many that may not that not all are known)"
    text += f", and {listed}"
    reasons[:0] = unfollowed or [Reason(step="found", rule="no link to it was followed")]
    if run is not None and run.end_reason not in {None, EndReason.FINISHED}:
        text += f"; the last run ended before all pages were read ({run.end_reason})"
    return Verdict(text, reasons)


def _explain_outside(context: Context, facts: UrlFacts, refusals: Sequence[Reason]) -> Verdict:
    presence = describe_presence(context, facts)
    # A run with these rules has settled it in this way already; otherwise the next run does.
    if context.in_index and facts.listed.code not in REFUSED:
        presence = f"{IN}, and leaves with the next run"
    return Verdict(f"{presence}: {describe_code(_code_of(refusals[0]))}", refusals)


def _code_of(refusal: Reason) -> int:
    key = refusal.key or ""
    # The key has the name that the boundary uses, wherever it is written.
    return refusal_code(Decision(False, key=key[max(key.find("scope."), 0) :]))


def _explain_lifted(context: Context, refused: str) -> Verdict:
    """The verdict on a URL that a rule refused before, and that no rule refuses now."""
    presence = f"{IN}, and stays" if context.in_index else f"{NOT_IN} as yet"
    return Verdict(f"{presence}: {refused}, by no rule as they are now", context.list_includes())


def _explain_unvisited(context: Context, facts: UrlFacts) -> Verdict:
    code = facts.listed.code
    now = facts.listed.fetch_state in {FetchState.FETCHING, FetchState.ALONE} and context.running
    what = "being visited now" if now else "to be visited" if code == 0 else "to be visited again"
    so_far = f", so far {describe_code(code)}" if code not in (0, 200) else ""
    if context.in_index:
        return Verdict(f"{IN}, and {what}{so_far}", context.list_includes())
    return Verdict(f"{NOT_IN}: {what}{so_far}", [Reason(step="visit", rule=what)])


def _explain_good(context: Context, facts: UrlFacts) -> Verdict:
    """The verdict on a page that was fetched well, and is or will be in the index."""
    # The index filter was applied at its visit: only rules that were edited since can refuse it.
    refusals = context.list_filter_refusals() if any(key.startswith("keep.") for key in context.changed) else []
    if refusals:
        leaves = f"{IN}, and leaves with the next run" if context.in_index else f"{NOT_IN} as yet, and will not be"
        return Verdict(f"{leaves}: {refusals[0].text}", refusals)
    waits = _WAITING.get(context.state) if context.state is not None else None
    if context.in_index:
        return Verdict(IN if waits is None else f"{IN}, and a newer version is {waits}", context.list_includes())
    if waits is None:
        held = "kept in the cache, and not sent" if facts.place is not None else "removed, or never sent"
        return Verdict(f"{NOT_IN}: {held}", [Reason(step="index", rule=held)])
    source = context.source
    if source.no_delivery_key is not None and context.state in {UrlState.CACHED, UrlState.SENDING}:
        rule = source.mode if source.no_delivery_key == "mode" else "true"
        reason = build_reason("index", Decision(False, rule, key=source.no_delivery_key), source)
        return Verdict(
            f"not yet in the index: fetched, and nothing is delivered because of {reason.row_rule}", [reason]
        )
    return Verdict(f"not yet in the index: {waits}", [Reason(step="index", rule=waits)])


def _add_hint(context: Context, facts: UrlFacts, verdict: Verdict) -> Verdict:
    hint = find_hint(context, facts)
    if not hint or not verdict.reasons or verdict.reasons[0].proposal is not None:
        return verdict
    return Verdict(verdict.text, [replace(verdict.reasons[0], hint=hint), *verdict.reasons[1:]])


def _describe_visit(context: Context, facts: UrlFacts) -> str:
    """Says how the last visit ended."""
    listed = facts.listed
    meaning = describe_code(listed.code)
    if listed.index_error is not None and listed.code == 200:
        return "the index refuses the document"
    if listed.code in COPIES or listed.code == Code.DISPLAY_URL_CLASH:
        return f"{meaning}: {facts.survivor}" if facts.survivor else meaning
    if listed.rule == ROBOTS_UNAVAILABLE:
        return f"{int(Code.ROBOTS)}, {describe_unavailable(listed.error)}"
    if listed.code in REDIRECTS | {Code.ROBOTS} or leads_outside(listed):
        target = read_target(listed.error)
        return f"{meaning}: {target}{_describe_target(context)}" if target else meaning
    return f"removed: {meaning}" if context.state is UrlState.GONE and not context.in_index else meaning


def _describe_target(context: Context) -> str:
    """Whether the page to which it leads is in the index by itself."""
    target = context.target
    if target is None or (context.listed is not None and context.listed.rule is not None):
        return ""
    if target.code is None:
        return f", which {context.source.name} does not know"
    return (
        ", which is in the index" if target.in_index else f", which is not in the index ({describe_code(target.code)})"
    )


def _find_reasons_of_visit(context: Context, facts: UrlFacts) -> Sequence[Reason]:
    """The results of the last visit that keep the page out of the index, with what may help; may be empty."""
    reasons = _find_results(context, facts)
    hint = find_hint(context, facts) if reasons and reasons[0].proposal is None else ""
    return [replace(reasons[0], hint=hint), *reasons[1:]] if hint else reasons


def _find_results(context: Context, facts: UrlFacts) -> Sequence[Reason]:
    """The same without advice."""
    listed = facts.listed
    if listed.code == 200:
        return [Reason(step="index", rule=listed.index_error)] if listed.index_error is not None else []
    if listed.code == Code.ROBOTS and not context.source.robots.obey:
        return []
    if listed.rule == ROBOTS_UNAVAILABLE:
        # An outage is no rule of the owner's that one may be allowed to pass over.
        return [replace(context.build_robots_reason(listed.rule, _find_asked(listed)), proposal=None)]
    if listed.code == Code.ROBOTS and listed.rule is not None:
        first = context.build_robots_reason(listed.rule, read_target(listed.error))
        return [first, *(line for line in context.list_robots_refusals() if line.rule != first.rule)]
    if listed.code in COPIES:
        if listed.code == Code.DUPLICATE and facts.is_near_copy:
            of_near = Decision(False, f"a near copy of {facts.survivor or 'another URL'}", key="copies.near")
            return [build_reason("duplicate", of_near, context.source)]
        relation = "its canonical URL is" if listed.code == Code.NOT_CANONICAL else "a copy of"
        return [Reason(step="duplicate", rule=f"{relation} {facts.survivor or 'another URL'}")]
    if listed.code == Code.DISPLAY_URL_CLASH:
        return [_build_clash(context, listed)]
    if listed.code in REDIRECTS or leads_outside(listed):
        return _find_reasons_of_redirect(context, facts)
    step = facts_of(listed.code).step
    if listed.rule is not None and step == "keep":
        return _find_reasons_of_filter(context, listed.rule)
    if listed.rule is not None:
        return [parse_reason(listed.rule, step, context.source)]
    return _find_fetch_limit(context, facts)


def _find_asked(listed: ListedUrl) -> str | None:
    return None if listed.redirects is None else find_last_url(listed)


def _build_clash(context: Context, listed: ListedUrl) -> Reason:
    """Another page is shown with the same URL: by the mapping that counts for this one, if any does."""
    rule = f"shown with the URL of {listed.duplicate_of or 'another page'}"
    pairs = [urls.resolve(display.from_) for display in context.source.display] if listed.display_url is None else []
    matching = [(len(prefix), number) for number, prefix in enumerate(pairs) if listed.url.startswith(prefix)]
    key = f"display[{max(matching)[1]}]" if matching else ""
    return build_reason("display", Decision(False, rule, key=key), context.source)


def _find_reasons_of_redirect(context: Context, facts: UrlFacts) -> Sequence[Reason]:
    listed = facts.listed
    target = read_target(listed.error)
    if listed.rule is None:
        kind = "meta refresh" if listed.code == Code.META_REFRESH else "moved for good"
        return [Reason(step="redirect", rule=f"{kind} to {target}" if target is not None else kind)]
    if target is None:
        # Without the target it is unknown whether the rule still holds.
        return [parse_reason(listed.rule, "boundary", context.source)]
    # A redirect that is followed may lead to hosts that no rule includes.
    return context.list_exclusions(target) if leads_outside(listed) else context.list_refusals(target)


def _find_reasons_of_filter(context: Context, rule: str) -> Sequence[Reason]:
    """The rule of the row first, unless it was edited since; then the others of ``[keep]`` that refuse it now."""
    first = parse_reason(rule, "keep", context.source)
    refusals = context.list_filter_refusals()
    same = [reason for reason in refusals if (reason.key, reason.rule) == (first.key, first.rule)]
    others = [reason for reason in refusals if reason not in same]
    return others if not same and is_changed(context.changed, rule) else [*(same or [first]), *others]


def _find_fetch_limit(context: Context, facts: UrlFacts) -> Sequence[Reason]:
    """The limit of ``[fetch]`` that ended the visit, or the answer; empty if the limit was raised since."""
    listed = facts.listed
    name = facts_of(listed.code).limit
    passed = _MORE_THAN.search(listed.error or "")
    if name is None or passed is None:
        return [Reason(step="answer", rule=describe_code(listed.code))]
    if getattr(context.source.fetch, name) > int(passed[1]):
        return []
    return [build_reason("answer", Decision(False, f"{name} = {passed[1]}", key=f"fetch.{name}"), context.source)]


_OK = 200
_UNAUTHORIZED = 401


def find_hint(context: Context, facts: UrlFacts) -> str:
    """What to look at in the files of the project, as the code of the last visit asks for; empty without anything."""
    source, code = context.source, facts.listed.code
    if code in {_UNAUTHORIZED, Code.LOGIN_FAILED}:
        if source.login.type is None:
            return f"it asks for a login: give {source.file} a table [login]"
        return f"the login does not open it: see to [login] in {source.file}"
    is_page = "html" in (facts.mimetype or "html") and source.render.mode == "never"
    if is_page and (code == Code.EMPTY or (code == _OK and _is_shell(context, facts))):
        return f'if scripts write its text, have a browser render it: set mode = "auto" in [render] of {source.file}'
    if code == Code.NO_CONVERTER:
        return f"a class of your own may read its type: see to [converters] in {FILE}"
    if code == Code.CERTIFICATE:
        return f"if its authority is one of your own, name it in fetch.ca_file of {source.file}"
    return ""


def _is_shell(context: Context, facts: UrlFacts) -> bool:
    """Whether it is one of the pages that ``status`` counts as in need of their scripts."""
    page = read_page(context, facts)
    return page is not None and needs_scripts(page.body, str(page.fields.get("content") or ""))
