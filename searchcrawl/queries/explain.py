"""``explain``: why a URL is or is not in the index, for each source, the deciding one first (J2, L1).

The verdict is one sentence, the rule that decided, and the rules that would decide alike. The rules are those of the source
file as it is now; everything else is what the last visit left in the store. Each function here is a table: a condition, and
what is said if none before it holds.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from searchcrawl import urls
from searchcrawl.codes import (
    COPIES,
    REDIRECTS,
    REFUSED,
    ROBOTS_UNAVAILABLE,
    SUCCESS,
    Code,
    describe_code,
    facts_of,
    is_failure,
)
from searchcrawl.html.raw_page import needs_scripts
from searchcrawl.queries.explain_access import add_verdict
from searchcrawl.queries.explain_context import (
    Context,
    SourceInputs,
    build_context,
    build_inputs,
    leads_outside,
    read_page,
)
from searchcrawl.queries.explain_reasons import Reason, Step, Verdict, is_changed, locate, parse_reason
from searchcrawl.queries.explain_steps import NAMED_BY_NOTHING, list_steps, list_steps_of_gone
from searchcrawl.queries.explain_targets import find_last_url
from searchcrawl.rules import forgotten
from searchcrawl.rules.boundary import refusal_code
from searchcrawl.rules.decision import Decision, describe_unavailable
from searchcrawl.rules.lifecycle import ORPHAN, ORPHAN_RULE, is_confirmed, is_evidence
from searchcrawl.rules.redirects import read_target
from searchcrawl.sources.config import Source
from searchcrawl.sources.loading import stand_in_for
from searchcrawl.sources.project import FILE, Project
from searchcrawl.store.engine.database import Database
from searchcrawl.store.states import DocumentState, EndReason, FetchState, Leaving
from searchcrawl.store.urls.link_table import Nofollow
from searchcrawl.store.urls.url_queries import ListedUrl, UrlFacts
from searchcrawl.store.urls.url_state import UrlState
from searchcrawl.wording import counted

_IN: Final = "in the index"
_NOT_IN: Final = "not in the index"
#: What is said of a document whose last visit failed.
_STAYS: Final = f"{_IN} as it was, and the last visit brought nothing better"
#: No key sets the limit of 1,000 times the bytes sent.
_MORE_THAN: Final = re.compile(r"more than ([0-9]+)(?![0-9]| times)")
_WAITING: Final = {
    UrlState.CACHED: "fetched, and waits to be delivered",
    UrlState.SENDING: "being delivered",
    UrlState.TODO: "to be fetched again: it is to be indexed, and its copy is gone from the cache",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlExplanation:
    """The explanation of a URL for one source."""

    context: Context
    verdict: Verdict
    steps: Sequence[Step]

    @property
    def is_relevant(self) -> bool:
        """Whether the source knows the URL, or would request it."""
        if self.context.inputs.is_gone:
            return self.context.facts is not None
        return self.context.is_known or not self.context.list_refusals()

    def add_verdict(self, principals: Collection[str]) -> UrlExplanation:
        """The explanation with whether a user with these principals may see the document, and why."""
        return replace(self, steps=add_verdict(self.steps, self.context, principals))

    def as_json(self, others: Sequence[UrlExplanation] = ()) -> dict[str, Any]:
        """What ``explain --json`` prints: this source's explanation, and the verdicts of ``others``."""
        first, *also = self.verdict.reasons
        return {
            "url": self.context.url,
            "source": self.context.source.name,
            "in_index": self.context.in_index,
            "verdict": self.verdict.text,
            "decided_by": first.as_json(),
            "also": [reason.as_json() for reason in also],
            "steps": [asdict(step) for step in self.steps],
            "others": [
                {"source": other.context.source.name, "in_index": other.context.in_index, "verdict": other.verdict.text}
                for other in others
            ],
        }


def explain_by_all(
    project: Project,
    sources: Sequence[Source],
    database: Database,
    text: str,
    *,
    gone: Sequence[str] = (),
) -> list[UrlExplanation]:
    """Explains the URL ``text`` for each source, the deciding one first; ``gone`` are sources whose files are gone.

    First comes a source that has it in the index, then one that knows it, then one that would request it, then the
    others; of these those first whose pages link to it, then those with the fewest rules against it. Raises InvalidUrl, StoreError, and ConfigurationError for a
    plugin of rewriters that cannot begin.
    """
    asked = [build_inputs(project, source) for source in sources]
    asked += [build_inputs(project, stand_in_for(project, name), is_gone=True) for name in gone]
    with ExitStack() as stack:
        for inputs in asked:
            inputs.rewriting.open(inputs.source.name)
            stack.callback(inputs.rewriting.close)
        return sorted((explain_url(database, inputs, text) for inputs in asked), key=_rank)


def explain_url(database: Database, inputs: SourceInputs, text: str) -> UrlExplanation:
    """Explains the URL ``text`` for one source; raises InvalidUrl, StoreError."""
    url = urls.resolve_typed(text, routes=inputs.source.scope.hash_routes)
    context = database.read(build_context, inputs, url)
    if inputs.is_gone:
        return UrlExplanation(context=context, verdict=_explain_gone(context), steps=tuple(list_steps_of_gone(context)))
    steps = tuple(list_steps(context, asked=text))
    return UrlExplanation(context=context, verdict=_find_verdict(context), steps=steps)


def _rank(explanation: UrlExplanation) -> tuple[bool | int | str, ...]:
    context = explanation.context
    refusals = len(context.list_refusals())
    known = not context.in_index, not context.is_known, context.inputs.is_gone
    # Links to its host say less than one to the URL itself.
    linked = not context.unfollowed, not context.is_linked
    return *known, refusals > 0, not context.is_start, *linked, refusals, context.source.name


def _find_verdict(context: Context) -> Verdict:
    refusals = [context.discarded] if context.discarded is not None else context.list_refusals()
    if refusals and context.discarded is None:
        # Without the rules of the source it would still be forbidden.
        refusals += context.list_robots_refusals()
    facts = context.facts
    if facts is None:
        return _explain_unseen(context, refusals)
    listed = facts.listed
    presence = _describe_presence(context, facts)
    if refusals:
        # A run with these rules has settled it in this way already; otherwise the next run does.
        if context.in_index and listed.code not in REFUSED:
            presence = f"{_IN}, and leaves with the next run"
        return Verdict(f"{presence}: {describe_code(_code_of(refusals[0]))}", refusals)
    if listed.code in REFUSED and listed.rule is not None and not leads_outside(listed):
        if is_changed(context.changed, listed.rule) or listed.rule.startswith(f"{forgotten.KEY}: "):
            return _explain_lifted(context, f"refused when it was found ({listed.rule})")
        # A rule about all URLs of the source refused it: the boundary itself lets it pass.
        step = "rewrite" if listed.rule.startswith("rewrite") else "boundary"
        return Verdict(f"{presence}: {describe_code(listed.code)}", [parse_reason(listed.rule, step, context.source)])
    if listed.fetch_state != FetchState.SETTLED:
        return _explain_unvisited(context, facts)
    how, reasons = _judge_visit(context, facts)
    reasons = _add_hint(context, facts, reasons)
    if reasons and presence == _STAYS and is_failure(listed.code, listed.rule):
        # These rules of [keep] refuse the document of the index once a visit does not fail.
        leaving = context.list_filter_refusals()
        if leaving:
            presence = f"{_IN} as it was, and leaves at its next good visit by {leaving[0].text}"
        return Verdict(f"{presence}: {how}", [*reasons, *leaving])
    if reasons:
        return Verdict(f"{presence}: {how}", reasons)
    if listed.code == 200 and facts.is_orphan:
        return _explain_orphan(context, facts)
    if listed.code == 200:
        text, reasons = _explain_good(context, facts)
        return Verdict(text, _add_hint(context, facts, reasons))
    if listed.code in REDIRECTS:
        text = f"{_NOT_IN}: {how}, which no rule refuses now: the next run asks for it"
        return Verdict(text, [Reason(step="redirect", rule=f"leads to {read_target(listed.error)}")])
    said = listed.rule or listed.error or describe_code(listed.code)
    return _explain_lifted(context, f"refused at the last visit ({said})")


def _explain_gone(context: Context) -> Verdict:
    """The verdict on a URL for a source whose file is gone: what is in the index stays there."""
    name, file = context.source.name, context.source.path
    reason = Reason(step="source", rule="the file of the source is gone", file=file)
    if context.in_index:
        text = f"{_IN}: no run visits it any more, as {file} is gone: put it back, or searchcrawl delete {name}"
    else:
        text = f"{_NOT_IN}: {file} is gone, so no run of {name} looks at it"
    return Verdict(text, [reason])


def _explain_unseen(context: Context, refusals: Sequence[Reason]) -> Verdict:
    if context.led:
        return _explain_led(context, refusals)
    code = _code_of(refusals[0]) if refusals else int(Code.ROBOTS)
    if refusals and context.is_only_counted and context.run is not None:
        return Verdict(f"{_NOT_IN}: {describe_code(code)}", refusals)
    refusals = refusals or context.list_robots_refusals()
    if refusals:
        seen = f"never requested ({context.led_away[0].url} redirects to it)" if context.led_away else "never seen"
        return Verdict(f"{_NOT_IN}: {seen}, and it would be refused ({describe_code(code)})", refusals)
    unreachable = context.list_address_refusals()
    if unreachable:
        text = f"never seen, and its address may not be reached ({int(Code.ADDRESS_NOT_FOUND)})"
        return Verdict(f"{_NOT_IN}: {text}", unreachable)
    if context.submitted:
        reason = Reason(step="found", rule="submitted by hand")
        return Verdict(f"{_NOT_IN} as yet: submitted by hand; the next run visits it", [reason])
    if context.led_away:
        return _explain_led(context, ())
    if context.is_start:
        file, key = locate(context.source, "start.urls" if context.source.start.urls else "start.files")
        reason = Reason(step="found", rule="a start URL", file=file, key=key)
        return Verdict(f"{_NOT_IN}: the next run asks for it, as a start URL", [reason])
    if context.run is None:
        reason = Reason(step="found", rule="its source was never crawled")
        return Verdict(f"{_NOT_IN}: {reason.rule}; the rules would let it pass", [reason])
    takes_links = context.source.finds_urls and context.source.scope.follow_links
    # A link to it may have been refused by the rules of before, without a row.
    lifted = [
        link for link in context.unfollowed if link.kind is not Nofollow.REL and not context.source.keep.meta_robots
    ]
    if takes_links and (lifted or any(key.startswith(("scope.", "rewrite")) for key in context.changed)):
        text = (
            f"{_NOT_IN} as yet: no rule refuses it as they are now; the next run reads all pages, and takes links to it"
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
    return Verdict(f"{_NOT_IN} by itself: {text}", [*reasons, *refusals])


def _explain_unlisted(context: Context) -> Verdict:
    """The verdict on what no lister has named: perhaps because of what it is in."""
    container = context.container
    if container is None:
        return Verdict(f"{_NOT_IN}: never seen: no listing has named it", [Reason(step="found", rule="not listed")])
    if container.code in SUCCESS:
        reason = Reason(step="found", rule="a container")
        return Verdict(f"{_NOT_IN}: it is no document: what is in it is listed", [reason])
    said = container.error or describe_code(container.code)
    if container.code == Code.OUTSIDE_BOUNDARY:
        reason = parse_reason(said, "found", context.source)
        return Verdict(f"{_NOT_IN}: never seen: {container.url} is left out", [reason])
    text = f"{container.url} could not be listed ({describe_code(container.code)})"
    return Verdict(f"{_NOT_IN}: never seen: {text}", [Reason(step="found", rule=said)])


def _explain_unfound(context: Context) -> Verdict:
    """The verdict on a URL to which nothing led: because of a key, or because nothing that may be followed does."""
    source, run = context.source, context.run
    if source.kind.is_listed:
        return _explain_unlisted(context)
    unlinked = context.list_unlinked()
    if not source.finds_urls:
        return Verdict(f"{_NOT_IN}: never seen: no URL is new with {unlinked[0].row_rule}", unlinked)
    sitemaps_off = source.start.sitemaps == "off"
    reasons = [context.blame("found", "off", "start.sitemaps")] if sitemaps_off else []
    listed = "no sitemap is read" if sitemaps_off else "no sitemap that was read lists it"
    if unlinked:
        return Verdict(f"{_NOT_IN}: never seen: links are not followed, and {listed}", [*unlinked, *reasons])
    unfollowed = context.list_unfollowed()
    text = f"{_NOT_IN}: never seen: no page that was read has a link to it that may be followed"
    if unfollowed:
        text += f" ({unfollowed[0].rule})"
    elif context.unfollowed_cut:
        text += " (some pages have so many that may not that not all are known)"
    text += f", and {listed}"
    reasons[:0] = unfollowed or [Reason(step="found", rule="no link to it was followed")]
    if run is not None and run.end_reason not in {None, EndReason.FINISHED}:
        text += f"; the last run ended before all pages were read ({run.end_reason})"
    return Verdict(text, reasons)


def _code_of(refusal: Reason) -> int:
    key = refusal.key or ""
    # The key has the name that the boundary uses, wherever it is written.
    return refusal_code(Decision(False, key=key[max(key.find("scope."), 0) :]))


def _explain_lifted(context: Context, refused: str) -> Verdict:
    """The verdict on a URL that a rule refused before, and that no rule refuses now."""
    presence = f"{_IN}, and stays" if context.in_index else f"{_NOT_IN} as yet"
    return Verdict(f"{presence}: {refused}, by no rule as they are now", context.list_includes())


def _explain_unvisited(context: Context, facts: UrlFacts) -> Verdict:
    code = facts.listed.code
    now = facts.listed.fetch_state in {FetchState.FETCHING, FetchState.ALONE} and context.running
    what = "being visited now" if now else "to be visited" if code == 0 else "to be visited again"
    so_far = f", so far {describe_code(code)}" if code not in (0, 200) else ""
    if context.in_index:
        return Verdict(f"{_IN}, and {what}{so_far}", context.list_includes())
    return Verdict(f"{_NOT_IN}: {what}{so_far}", [Reason(step="visit", rule=what)])


def _explain_good(context: Context, facts: UrlFacts) -> Verdict:
    """The verdict on a page that was fetched well, and is or will be in the index."""
    # The index filter was applied at its visit: only rules that were edited since can refuse it.
    refusals = context.list_filter_refusals() if any(key.startswith("keep.") for key in context.changed) else []
    if refusals:
        leaves = f"{_IN}, and leaves with the next run" if context.in_index else f"{_NOT_IN} as yet, and will not be"
        return Verdict(f"{leaves}: {refusals[0].text}", refusals)
    waits = _WAITING.get(context.state) if context.state is not None else None
    if context.in_index:
        return Verdict(_IN if waits is None else f"{_IN}, and a newer version is {waits}", context.list_includes())
    if waits is None:
        held = "kept in the cache, and not sent" if facts.place is not None else "removed, or never sent"
        return Verdict(f"{_NOT_IN}: {held}", [Reason(step="index", rule=held)])
    source = context.source
    if source.no_delivery_key is not None and context.state in {UrlState.CACHED, UrlState.SENDING}:
        rule = source.mode if source.no_delivery_key == "mode" else "true"
        reason = context.blame("index", rule, source.no_delivery_key)
        text = f"not yet in the index: fetched, and nothing is delivered because of {reason.row_rule}"
        return Verdict(text, [reason])
    return Verdict(f"not yet in the index: {waits}", [Reason(step="index", rule=waits)])


def _explain_orphan(context: Context, facts: UrlFacts) -> Verdict:
    """The verdict on a page that was fetched well, and that nothing names any more."""
    mode = context.source.lifecycle.orphans
    if mode == "check" and facts.quarantine_run is None:
        presence = f"{_IN}, and stays" if context.in_index else f"{_NOT_IN} as yet"
        return Verdict(
            f"{presence}: {NAMED_BY_NOTHING}, and the next run visits it all the same", context.list_includes()
        )
    presence = _describe_presence(context, facts)
    if context.in_index and facts.listed.rule == ORPHAN_RULE and facts.evidence != ORPHAN:
        presence = f"{_IN}, and not visited any more"
    elif not context.in_index:
        presence = f"{_NOT_IN}: removed"
    reasons = [context.blame("found", mode, "lifecycle.orphans"), *context.list_unfollowed()]
    return Verdict(f"{presence}: {NAMED_BY_NOTHING}", reasons)


def _describe_presence(context: Context, facts: UrlFacts) -> str:
    """Says whether the index has it, and whether it is about to be removed."""
    listed = facts.listed
    if not context.in_index:
        return _NOT_IN
    if facts.quarantine_run is not None:
        return f"{_IN}, and its removal waits in quarantine"
    if facts.rejected_run is not None:
        return f"{_IN}, and stays: its removal was rejected"
    if listed.document_state == DocumentState.REMOVING:
        return f"{_IN}, and being removed"
    if listed.code in COPIES or listed.code == Code.DISPLAY_URL_CLASH:
        return f"{_IN}, and leaves at the end of a run in which the index has the other page as it is now"
    if listed.code in REDIRECTS and listed.rule is None:
        return f"{_IN}, and leaves once the page that it leads to was fetched or is gone"
    keys = context.source.lifecycle
    if not is_confirmed(listed.code, facts.failures, remove_on=keys.remove_on, confirmations=keys.gone_confirmations):
        return f"{_IN}, and leaves once this was seen in {counted(keys.gone_confirmations, 'run', 'runs')}"
    if facts.leaving == Leaving.FAILED:
        return f"{_IN}, and leaves at the end of a completed run, because it failed in {facts.failed_runs} in a row"
    # An excluded target is evidence only if its rule is new.
    if facts.leaving or (not leads_outside(listed) and is_evidence(listed.code, listed.rule, keys.remove_on)):
        return f"{_IN}, and leaves at the end of a run"
    return _STAYS


def _judge_visit(context: Context, facts: UrlFacts) -> Verdict:
    """How the last visit ended, and its results that keep the page out of the index; these may be none."""
    listed, source = facts.listed, context.source
    meaning, target = describe_code(listed.code), read_target(listed.error)
    led = f"{meaning}: {target}{_describe_target(context)}" if target else meaning
    behind = f"{meaning}: {facts.survivor}" if facts.survivor else meaning
    gone = f"removed: {meaning}" if context.state is UrlState.GONE and not context.in_index else meaning
    step = facts_of(listed.code).step
    if listed.code == 200 and listed.index_error is not None:
        return Verdict("the index refuses the document", [Reason(step="index", rule=listed.index_error)])
    if listed.code == 200 or (listed.code == Code.ROBOTS and not source.robots.obey):
        return Verdict(meaning, [])
    if listed.rule == ROBOTS_UNAVAILABLE:
        # An outage is no rule of the owner's that one may be allowed to pass over.
        asked = None if listed.redirects is None else find_last_url(listed)
        reason = replace(context.build_robots_reason(listed.rule, asked), proposal=None)
        return Verdict(f"{int(Code.ROBOTS)}, {describe_unavailable(listed.error)}", [reason])
    if listed.code == Code.ROBOTS and listed.rule is not None:
        first = context.build_robots_reason(listed.rule, target)
        return Verdict(led, [first, *(line for line in context.list_robots_refusals() if line.rule != first.rule)])
    if listed.code == Code.DUPLICATE and facts.is_near_copy:
        near = f"a near copy of {facts.survivor or 'another URL'}"
        return Verdict(behind, [context.blame("duplicate", near, "copies.near")])
    if listed.code in COPIES:
        relation = "its canonical URL is" if listed.code == Code.NOT_CANONICAL else "a copy of"
        return Verdict(behind, [Reason(step="duplicate", rule=f"{relation} {facts.survivor or 'another URL'}")])
    if listed.code == Code.DISPLAY_URL_CLASH:
        return Verdict(behind, [_build_clash(context, listed)])
    if listed.code in REDIRECTS or leads_outside(listed):
        return Verdict(led, _find_reasons_of_redirect(context, listed, target))
    if listed.rule is not None and step == "keep":
        return Verdict(gone, _find_reasons_of_filter(context, listed.rule))
    if listed.rule is not None:
        return Verdict(gone, [parse_reason(listed.rule, step, source)])
    return Verdict(led if listed.code == Code.ROBOTS else gone, _find_fetch_limit(context, listed))


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


def _build_clash(context: Context, listed: ListedUrl) -> Reason:
    """Another page is shown with the same URL: by the mapping that counts for this one, if any does."""
    rule = f"shown with the URL of {listed.duplicate_of or 'another page'}"
    pairs = [urls.resolve(display.from_) for display in context.source.display] if listed.display_url is None else []
    matching = [(len(prefix), number) for number, prefix in enumerate(pairs) if listed.url.startswith(prefix)]
    key = f"display[{max(matching)[1]}]" if matching else ""
    return context.blame("display", rule, key)


def _find_reasons_of_redirect(context: Context, listed: ListedUrl, target: str | None) -> Sequence[Reason]:
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


def _find_fetch_limit(context: Context, listed: ListedUrl) -> Sequence[Reason]:
    """The limit of ``[fetch]`` that ended the visit, or the answer; empty if the limit was raised since."""
    name = facts_of(listed.code).limit
    passed = _MORE_THAN.search(listed.error or "")
    if name is None or passed is None:
        return [Reason(step="answer", rule=describe_code(listed.code))]
    if getattr(context.source.fetch, name) > int(passed[1]):
        return []
    return [context.blame("answer", f"{name} = {passed[1]}", f"fetch.{name}")]


def _add_hint(context: Context, facts: UrlFacts, reasons: Sequence[Reason]) -> Sequence[Reason]:
    """The reasons, of which the first has what may help where no edit of a file would end it."""
    if not reasons or reasons[0].proposal is not None:
        return reasons
    return [replace(reasons[0], hint=_find_hint(context, facts)), *reasons[1:]]


def _find_hint(context: Context, facts: UrlFacts) -> str:
    """What to look at in the files of the project, as the code of the last visit asks for; empty without anything."""
    source, code = context.source, facts.listed.code
    if code in {401, Code.LOGIN_FAILED} and source.login.type is None:
        return f"it asks for a login: give {source.path} a table [login]"
    if code in {401, Code.LOGIN_FAILED}:
        return f"the login does not open it: see to [login] in {source.path}"
    is_page = "html" in (facts.mimetype or "html") and source.render.mode == "never"
    page = read_page(context, facts) if is_page and code == 200 else None
    # One of the pages that ``status`` counts as in need of their scripts.
    is_shell = page is not None and needs_scripts(page.body, str(page.fields.get("content") or ""))
    if (is_page and code == Code.EMPTY) or is_shell:
        return f'if scripts write its text, have a browser render it: set mode = "auto" in [render] of {source.path}'
    if code == Code.NO_CONVERTER:
        return f"a class of your own may read its type: see to [converters] in {FILE}"
    if code == Code.CERTIFICATE:
        return f"if its authority is one of your own, name it in fetch.ca_file of {source.path}"
    return ""
