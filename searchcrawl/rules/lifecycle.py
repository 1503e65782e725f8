"""When a page has changed, and what removes it (``[change]``, ``[lifecycle]``; D2, D4, D5, L3)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from searchcrawl.codes import REMOVING, ROBOTS_UNAVAILABLE, Code
from searchcrawl.rules.boundary import is_trap_limit
from searchcrawl.wording import counted

#: So many removals are always within ``max_delete_percent``; so many known pages may become one text in a run.
FREE_DOCUMENTS: Final = 10


#: What is held against a document whose URL nothing names any more.
ORPHAN: Final = "orphan"
#: The rule of rows that are not visited until something names them again.
ORPHAN_RULE: Final = "lifecycle.orphans: no page names it"


class Condition(StrEnum):
    """What is compared to find out whether a page changed."""

    #: the Last-Modified header
    DATE = "date"
    #: the digest of the body
    CHECKSUM = "checksum"
    #: the ETag header, compared weakly (RFC 9110 §8.8.3.2)
    ETAG = "etag"


@dataclass(frozen=True, slots=True, kw_only=True)
class PageVersion:
    """What identifies the version of a page that a visit saw; None where the server did not send it."""

    last_modified: str | None = None
    etag: str | None = None
    checksum: bytes | None = None


def has_changed(condition: Collection[str], before: PageVersion, after: PageVersion) -> bool:
    """Whether anything that ``condition`` lists (values of Condition) differs.

    If one of the visits lacks it, or if the condition is empty, the checksums are compared. A missing checksum counts
    as a difference.
    """
    return any(_differs(Condition(name), before, after) for name in condition or (Condition.CHECKSUM,))


def _differs(condition: Condition, before: PageVersion, after: PageVersion) -> bool:
    if condition is Condition.DATE and before.last_modified and after.last_modified:
        return before.last_modified.strip() != after.last_modified.strip()
    if condition is Condition.ETAG and before.etag and after.etag:
        return _strip_weak_mark(before.etag) != _strip_weak_mark(after.etag)
    return before.checksum is None or before.checksum != after.checksum


def _strip_weak_mark(etag: str) -> str:
    return etag.strip().removeprefix("W/")


def is_evidence(code: int, rule: str | None, remove_on: Collection[int]) -> bool:
    """Whether a visit's code and rule say that the known document at this URL is to be removed.

    For 953 and 954 without a rule the caller looks at the end of the redirects (``delivery.evidence``). Copies
    (909, 956, 964) are no evidence: they are removed once the page that is indexed instead is in the index.
    """
    if code == Code.ROBOTS:
        return bool(rule) and rule != ROBOTS_UNAVAILABLE
    if rule is not None and is_trap_limit(rule.partition(": ")[0]):
        # The target of a redirect is beyond such a limit: it may be there, and nobody has looked.
        return False
    return code in REMOVING or code in remove_on


def describe_evidence(code: int, rule: str | None) -> str:
    """What is held against a document, as rows keep it and ``quarantine list`` shows it."""
    return f"{int(code)} {rule}" if rule else str(int(code))


def describe_failures(runs: int) -> str:
    """What is held against a document whose visits failed in ``runs`` runs and in all since, whatever their codes."""
    return f"failed in {counted(runs, 'run', 'runs')} in a row"


def is_within_limits(removals: int, documents: int, *, max_delete_percent: float, max_delete_documents: int) -> bool:
    """Whether ``removals`` of a source that had ``documents`` may be made at once, without approval."""
    share = documents * max_delete_percent / 100
    return removals <= max(FREE_DOCUMENTS, share) and removals <= max_delete_documents
