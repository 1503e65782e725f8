"""Whether the index has a URL, and what is about to become of it: removals, and URLs that nothing names any more (L1, L3)."""

from __future__ import annotations

from typing import Final

from searchcrawl.codes import COPIES, REDIRECTS, Code
from searchcrawl.queries.explain_context import Context, leads_outside
from searchcrawl.queries.explain_reasons import Verdict, build_reason
from searchcrawl.rules.decision import Decision
from searchcrawl.rules.lifecycle import ORPHAN, ORPHAN_RULE, is_confirmed, is_evidence
from searchcrawl.store.states import DocumentState, Leaving
from searchcrawl.store.urls.url_queries import UrlFacts
from searchcrawl.wording import counted

IN: Final = "in the index"
#: What is said of a document whose last visit failed.
STAYS: Final = f"{IN} as it was, and the last visit brought nothing better"
#: What is said of an orphan.
NAMED_BY_NOTHING: Final = "no page, sitemap or start list names it any more"
NOT_IN: Final = "not in the index"


def describe_presence(context: Context, facts: UrlFacts) -> str:
    """Says whether the index has it, and whether it is about to be removed."""
    listed = facts.listed
    if not context.in_index:
        return NOT_IN
    if facts.quarantine_run is not None:
        return f"{IN}, and its removal waits in quarantine"
    if facts.rejected_run is not None:
        return f"{IN}, and stays: its removal was rejected"
    if listed.document_state == DocumentState.REMOVING:
        return f"{IN}, and being removed"
    if listed.code in COPIES or listed.code == Code.DISPLAY_URL_CLASH:
        return f"{IN}, and leaves at the end of a run in which the index has the other page as it is now"
    if listed.code in REDIRECTS and listed.rule is None:
        return f"{IN}, and leaves once the page that it leads to was fetched or is gone"
    keys = context.source.lifecycle
    if not is_confirmed(listed.code, facts.failures, remove_on=keys.remove_on, confirmations=keys.gone_confirmations):
        return f"{IN}, and leaves once this was seen in {counted(keys.gone_confirmations, 'run', 'runs')}"
    if facts.leaving == Leaving.FAILED:
        return f"{IN}, and leaves at the end of a completed run, because it failed in {facts.failed_runs} in a row"
    # An excluded target is evidence only if its rule is new.
    if facts.leaving or (not leads_outside(listed) and is_evidence(listed.code, listed.rule, keys.remove_on)):
        return f"{IN}, and leaves at the end of a run"
    return STAYS


def explain_orphan(context: Context, facts: UrlFacts) -> Verdict | None:
    """The verdict on a page that was fetched well, and that nothing names any more; None for all others."""
    if not facts.is_orphan:
        return None
    mode = context.source.lifecycle.orphans
    if mode == "check" and facts.quarantine_run is None:
        presence = f"{IN}, and stays" if context.in_index else f"{NOT_IN} as yet"
        return Verdict(
            f"{presence}: {NAMED_BY_NOTHING}, and the next run visits it all the same", context.list_includes()
        )
    presence = describe_presence(context, facts)
    if context.in_index and facts.listed.rule == ORPHAN_RULE and facts.evidence != ORPHAN:
        presence = f"{IN}, and not visited any more"
    elif not context.in_index:
        presence = f"{NOT_IN}: removed"
    reason = build_reason("found", Decision(False, mode, key="lifecycle.orphans"), context.source)
    return Verdict(f"{presence}: {NAMED_BY_NOTHING}", [reason, *context.list_unfollowed()])
