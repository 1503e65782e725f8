"""What the traps of a source say of a URL, as its last run left them (L1, L8); nothing is written or counted."""

from __future__ import annotations

from searchcrawl.admission.trap_watch import MAX_URLS, PROVEN, TRAP_AFTER
from searchcrawl.rules.decision import Decision
from searchcrawl.rules.traps import cut_by, values_pattern
from searchcrawl.store import pattern_table
from searchcrawl.store.database import Transaction


def standing_trap(
    transaction: Transaction, source_id: int, url: str, *, trap_after: int, max_urls_per_pattern: int, file: str = ""
) -> Decision | None:
    """Why a new URL would be refused under the limits given (0 is none), or None."""
    if trap_after:
        rows = pattern_table.all_of(transaction, source_id)
        # What another limit cut is forgiven by the next run.
        cuts = {row.text for row in rows if row.cut == TRAP_AFTER and row.cut_limit == trap_after}
        proven = {row.text for row in rows if row.cut is None and row.new_permille >= 1000 * PROVEN}
        text = cut_by(url, cuts, proven) if cuts else None
        if text is not None:
            return Decision(False, text, file, TRAP_AFTER)
    text = values_pattern(url) if max_urls_per_pattern else None
    if text is not None and pattern_table.counts(transaction, source_id, [text])[text] >= max_urls_per_pattern:
        return Decision(False, f"max_urls_per_pattern = {max_urls_per_pattern} of {text}", file, MAX_URLS)
    return None
