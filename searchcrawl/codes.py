"""What became of a URL: one table of codes, from which all sets, conditions and reference pages are derived (C7, J2).

A row has an HTTP status as it was received, or one of our own codes. What the engine does with a code is said here
once, in its ``CodeFacts``; ``facts_of`` has those of every number.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from functools import lru_cache, partial
from http import HTTPStatus
from typing import Final, Self

#: The rule of a row with 951 whose robots.txt answered 5xx or 429: a failure, and no refusal by a rule.
ROBOTS_UNAVAILABLE: Final = "robots.unavailable"
#: Statuses that lead to another URL (RFC 9110 §15.4): for this time, or for good.
TEMPORARY_REDIRECTS: Final = frozenset({302, 303, 307})
PERMANENT_REDIRECTS: Final = frozenset({301, 308})
REDIRECT_STATUSES: Final = TEMPORARY_REDIRECTS | PERMANENT_REDIRECTS


class CodeClass(StrEnum):
    """What a code says of a visit, in one word."""

    #: no visit has ended yet
    PENDING = "pending"
    #: the page is a document, or is still the document that it was
    SUCCESS = "success"
    #: another page is indexed in its place
    COPY = "copy"
    #: the page was read, and is not to be indexed
    EXCLUDED = "excluded"
    #: the page was read, and cannot be shown with a URL of its own
    DISPLAY = "display"
    #: the page leads to another URL, which has a row of its own
    REDIRECT = "redirect"
    #: a rule forbids the request, or that for the target of a redirect
    REFUSAL = "refusal"
    #: the visit failed; a document that is known stays
    FAILURE = "failure"
    #: what listed the document does not any more, and it is not there
    ABSENT = "absent"


class FailureKind(StrEnum):
    """What failed, for the counters of failed runs that each row has."""

    #: the host could not be reached
    UNREACHABLE = "unreachable"
    #: the host answered, and could not serve the page
    SERVER = "server"
    #: the host refuses the request
    CLIENT = "client"
    #: the body is nothing that can be indexed
    CONTENT = "content"
    #: the page is gone, by a status of ``lifecycle.remove_on``
    GONE = "gone"


#: The counters of a run to which a visit adds besides the class of its URL, if its code names none. The result of the
#: comparison with the known document (new, changed, unchanged, not modified) is counted as well.
_COUNTERS: Final = {
    CodeClass.COPY: ("duplicates",),
    CodeClass.EXCLUDED: ("non_indexable",),
    CodeClass.DISPLAY: ("non_indexable",),
}
#: The step of ``explain`` for the codes of a class that name none; for the other classes it is ``answer``.
_STEPS: Final = {CodeClass.EXCLUDED: "keep", CodeClass.DISPLAY: "display"}


@dataclass(frozen=True, slots=True)
class CodeFacts:
    """What is known of one code. ``title`` is how answers show it, ``meaning`` a sentence for the reference.

    ``counters`` are the counters of a run that a visit with the code adds to, besides the class of its URL.
    """

    kind: CodeClass
    code: int
    title: str
    meaning: str
    #: whether the visit is tried again within the run, as long as ``fetch.retries`` allows it
    retried: bool = False
    #: whether the code is evidence that a known document is to be removed from the index
    removes: bool = False
    #: whether the page was fetched well and has a document, be it indexed or known as a copy
    has_document: bool = False
    #: whether the connection to the host failed, which says nothing about the page
    of_host: bool = False
    #: whether ``status`` warns of URLs with the code
    warned: bool = False
    #: whether the URL is visited again in later runs without a new link to it
    revisited: bool = True
    #: what failed, where the code is a failure; its own where it is none of the host's and none of the body's
    failure: FailureKind | None = None
    #: the key of [fetch] whose limit ends a visit with the code
    limit: str | None = None
    #: the step of ``explain`` in which a rule that is in the row decided
    step: str = ""
    counters: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "counters", self.counters or _COUNTERS.get(self.kind, ()))
        if self.kind is CodeClass.FAILURE and self.failure is None:
            failure = FailureKind.UNREACHABLE if self.of_host else FailureKind.CONTENT
            object.__setattr__(self, "failure", failure)
        object.__setattr__(self, "step", self.step or _STEPS.get(self.kind, "answer"))


_pending, _copy, _excluded, _display, _redirect, _refusal, _failure, _absent = (
    partial(CodeFacts, kind) for kind in CodeClass if kind is not CodeClass.SUCCESS
)
_of_host = partial(_failure, retried=True, of_host=True)
_broken, _denied = (partial(_failure, failure=kind) for kind in (FailureKind.SERVER, FailureKind.CLIENT))


class Code(IntEnum):
    """The codes beside those of HTTP, each with its ``facts``."""

    facts: CodeFacts

    def __new__(cls, facts: CodeFacts) -> Self:
        """A member whose value is the number alone."""
        code = int.__new__(cls, facts.code)
        code._value_ = facts.code
        code.facts = facts
        return code

    NOT_FETCHED = _pending(0, "not yet fetched", "The URL is known and waits for its first visit.")
    TIMEOUT = _of_host(902, "the answer took too long", "No complete answer came within fetch.timeout_seconds.")
    CONVERSION_FAILED = _failure(
        903,
        "it could not be converted",
        "The document is broken or encrypted, or a pipeline failed on it.",
        counters=("conversion_failures",),
    )
    CONVERSION_LIMIT = _failure(
        904,
        "its conversion passed a limit of memory, time or size",
        "Converting the document took more memory or time, or gave more text, than one document may.",
        counters=("conversion_failures",),
    )
    IO_ERROR = _of_host(
        905,
        "the connection broke",
        "The connection ended before the answer was complete, or failed in a way that has no code of its own.",
    )
    CONNECTION_REFUSED = _of_host(
        906,
        "the host refused the connection",
        "Nothing listens at the host's address and port, or a firewall rejects the connection.",
    )
    ADDRESS_NOT_FOUND = _of_host(
        907,
        "its host has no address, or none that may be reached",
        "The host name cannot be resolved; or all its addresses are private or forbidden, which is not tried again.",
    )
    NO_CONVERTER = _failure(
        908,
        "nothing reads files of its type",
        "There is no converter for the media type of the body. Of a large one only the beginning is fetched. Where it has no "
        "document, it is asked for again in the next run, with its validators, and as long as it is the same a day after that, then "
        "after two, four and seven days; at once after an edit of the source file or of converters.",
    )
    DUPLICATE = _copy(
        909,
        "a copy of another page",
        "The page has the same text, title and other indexed fields as another page of the source, which is indexed in its place; "
        "or nearly the same text, where the source removes near copies.",
        has_document=True,
    )
    DUPLICATE_IN_RUN = _copy(
        910,
        "a copy of another page of the same run",
        "The page has the same content as another page of the run and was ignored. Reserved for a later release.",
    )
    EMPTY = _excluded(
        911,
        "an empty document",
        "The page has no text. An earlier version with text stays in the index.",
        step="content",
    )
    ROBOTS = _refusal(
        951,
        "robots.txt forbids it",
        "A rule of the host's robots.txt forbids the request, or that for a URL to which it redirects. With the "
        "rule robots.unavailable the host answered 5xx or 429 to it; that is a failure, tried again, and removes nothing.",
        removes=True,
    )
    NOT_INDEXED = _excluded(
        952,
        "fetched, and not to be indexed",
        "The page was fetched, and noindex, a rule of [keep] or a plugin keeps it out of the index; or a middleware of "
        "the source's own raised IgnoreRequest for it.",
        removes=True,
    )
    META_REFRESH = _redirect(
        953,
        "it sends its readers to another URL",
        "A meta refresh of the page leads to another URL, or a script to one outside the boundary. A known document is "
        "removed once the page at the end of its redirects was fetched well, is gone, or lies outside the boundary.",
        removes=True,
    )
    MOVED = _redirect(
        954,
        "it moved for good to another URL",
        "The host answers 301 or 308. A known document is removed once the page at the end of its redirects was "
        "fetched well, is gone, or lies outside the boundary.",
        removes=True,
    )
    OUTSIDE_BOUNDARY = _refusal(
        955,
        "outside the boundary",
        "A rule of [scope] or of a rewriter refuses the URL, or one that it redirects to; the row names the rule.",
        removes=True,
        revisited=False,
    )
    DISPLAY_URL_CLASH = _display(
        956,
        "another page is shown with the same URL",
        "Two pages have the same display URL; the better one is indexed, and this is the other.",
        has_document=True,
    )
    READ_ERROR = _broken(
        958,
        "its body came incomplete or cannot be decoded",
        "The body ended early, or there was no room for it on the disk, which is tried again, or its content coding is "
        "broken, which is not; or a rendered page lacks a part that it had, which is tried again.",
        retried=True,
    )
    LOGIN_FAILED = _denied(
        959,
        "the login failed",
        "The page needs the login of the source, and the login failed; wrong credentials are not tried again.",
        retried=True,
        warned=True,
    )
    TOO_LARGE = _failure(
        960,
        "it is larger than fetch.max_bytes",
        "The body has more bytes than fetch.max_bytes, as it was sent or once it is decoded.",
        limit="max_bytes",
    )
    TRAP_LIMIT = _refusal(
        961,
        "beyond a limit that ends traps",
        "The URL passes a limit of [scope] against endless URLs, or its pattern brings no new text any more. Pages "
        "whose documents are known are visited all the same.",
        revisited=False,
    )
    CERTIFICATE = _of_host(
        962,
        "the host's certificate is refused",
        "The certificate of the host is not trusted, not valid, or another host's.",
    )
    REDIRECT_LOOP = _broken(
        963,
        "its redirects lead in a circle, or are too many",
        "The redirects lead back to a URL that was passed, or are more than fetch.max_redirects.",
        limit="max_redirects",
    )
    NOT_CANONICAL = _copy(
        964,
        "it names another URL as the canonical one",
        "The page names another URL of the source as canonical; that page was fetched well, and is indexed in "
        "its place.",
        has_document=True,
    )
    SENTINEL = _failure(
        965,
        "it looks like the host's answer to any URL, or like its login form",
        "The page came with status 200, but is what the host answers to any path, its login form, or a text that many "
        "of its known pages have turned into.",
        warned=True,
    )
    SET_ASIDE = _failure(
        966,
        "set aside, because it stopped the crawler",
        "Three times reading it took more time or memory than it may, or the life of the process. It is not visited any "
        "more; a document that is known stays. After an edit of the source file it is tried once more.",
        warned=True,
    )
    NO_LONGER_LISTED = _absent(
        967,
        "no longer there",
        "The folder or table that held it was read whole and does not list it any more, and it was not found when it was "
        "looked for once more.",
        removes=True,
        step="listing",
    )
    NO_LOCATION = _broken(
        1003,
        "a redirect without a usable Location",
        "The host answered with a redirect whose Location is missing or is no URL.",
    )
    MALFORMED_URL = _refusal(
        1004,
        "malformed or too long",
        "The text is no URL that can be requested, or is longer than scope.max_url_length.",
        removes=True,
        revisited=False,
    )
    HEADER_ERROR = _broken(
        1006,
        "the header of the answer is broken",
        "The status line or a header of the answer is no HTTP, or passes a limit.",
        retried=True,
    )
    BINARY_AS_TEXT = _failure(1009, "binary data sent as text", "The Content-Type says text, and the body is none.")
    INVALID_DISPLAY_URL = _display(
        1010,
        "it cannot be shown with a valid URL",
        "The rules of [display], or a rewriter, make no valid URL of the page's.",
    )


_OURS: Final = {int(code): code.facts for code in Code}


def _select_kinds(*kinds: CodeClass) -> frozenset[int]:
    return _select_codes(lambda facts: facts.kind in kinds)


def _select_codes(holds: Callable[[CodeFacts], bool]) -> frozenset[int]:
    return frozenset(code for code, facts in _OURS.items() if holds(facts))


#: Another page is indexed in the place of this one.
COPIES: Final = _select_kinds(CodeClass.COPY)
#: A rule refuses the URL, or one that it redirects to.
REFUSALS: Final = _select_kinds(CodeClass.REFUSAL)
#: The page leads to another row.
REDIRECTS: Final = _select_kinds(CodeClass.REDIRECT)
#: Refused by a rule of the source or of a limit, without a request: not visited again by itself.
REFUSED: Final = _select_codes(lambda facts: not facts.revisited)
#: The row was never requested.
NEVER_REQUESTED: Final = REFUSED | {0}
#: The page was fetched well and has a document: indexed, or known as that of another page.
WITH_DOCUMENT: Final = _select_codes(lambda facts: facts.has_document) | {200}
#: The page is a document, or has not changed.
SUCCESS: Final = frozenset({200, 304})
#: The page was read, whether it is indexed or not.
READ: Final = _select_kinds(CodeClass.COPY, CodeClass.EXCLUDED, CodeClass.DISPLAY) | {200}
#: The visit brought an answer that was processed: a page, a redirect, or 304.
ANSWERED: Final = READ | REDIRECTS | SUCCESS
#: Evidence that a known document is to be removed; for 951 only with a rule of robots.txt.
REMOVING: Final = _select_codes(lambda facts: facts.removes)
#: The host could not be reached.
UNREACHABLE: Final = _select_codes(lambda facts: facts.of_host)
#: What kept robots.txt from being read is why its pages failed (X-B2).
ROOT_CAUSES: Final = UNREACHABLE | {Code.READ_ERROR, Code.HEADER_ERROR}
#: ``status`` warns of URLs with these.
WARNED: Final = _select_codes(lambda facts: facts.warned)

#: Statuses whose Retry-After is about the host, not about the page (RFC 9110 §15.6.4, RFC 6585 §4).
BUSY: Final = frozenset({429, 503})
#: Statuses of a host that is overloaded, or whose upstream servers are away.
OVERLOADED: Final = BUSY | {502, 504}
#: Further statuses, besides 5xx, that may be gone at the next try.
_PASSING: Final = frozenset({408, 425, 429})
_UNNAMED: Final = "a status that HTTP does not name"


@lru_cache(maxsize=1000)
def facts_of(code: int) -> CodeFacts:
    """The facts of any code: one of ours, or a status of HTTP."""
    if code in _OURS:
        return _OURS[code]
    try:
        title = HTTPStatus(code).phrase
    except ValueError:
        title = _UNNAMED
    if code == HTTPStatus.OK:
        return CodeFacts(CodeClass.SUCCESS, code, title, "The page was fetched; it is a document.", has_document=True)
    if code == HTTPStatus.NOT_MODIFIED:
        return CodeFacts(CodeClass.SUCCESS, code, title, "The page has not changed since the last visit.")
    if code in _PASSING or 500 <= code <= 599:
        return _broken(code, title, "The host cannot answer now, and may at the next try.", retried=True)
    if 400 <= code <= 499:
        return _denied(code, title, "The host refuses the page, or has none; lifecycle.remove_on says what removes.")
    return _broken(code, title, "The host answered with a status that brings no page.")


def is_code(code: int) -> bool:
    """Whether a row may have this code: one of ours, or a status that a server may send; those from 900 are ours alone."""
    return code in _OURS or 100 <= code < 900


def describe_code(code: int) -> str:
    """``404 Not Found``, or a code of ours with its title: ``909, a copy of another page``."""
    title = facts_of(code).title
    if not code:
        return title
    return f"{code}, {title}" if code in _OURS or title == _UNNAMED else f"{code} {title}"


def is_refusal(code: int, rule: str | None) -> bool:
    """Whether a rule settled the row, without a request for the page or for what it redirects to."""
    return code in REFUSED or (code == Code.ROBOTS and rule != ROBOTS_UNAVAILABLE)


def is_failure(code: int, rule: str | None) -> bool:
    """Whether a visit failed: its row is counted as failed, and waits longer with each failed run."""
    # A visit without a document is no copy, though a server may send such a number as its status.
    failing = (CodeClass.FAILURE, CodeClass.COPY, CodeClass.DISPLAY)
    return facts_of(code).kind in failing or (code == Code.ROBOTS and rule == ROBOTS_UNAVAILABLE)


def find_failure_kind(code: int, remove_on: Collection[int]) -> FailureKind:
    """What failed in a visit that ``is_failure`` calls failed; ``remove_on`` are the statuses of a page that is gone."""
    # A robots.txt that cannot be read has no kind of its own, and neither have our codes as statuses of a server.
    return FailureKind.GONE if code in remove_on else facts_of(code).failure or FailureKind.SERVER


def is_retried(status: int) -> bool:
    """Whether a status of HTTP may be another at the next try: 408, 425, 429 and 5xx."""
    return status not in _OURS and facts_of(status).retried
