"""What the Python API answers with: frozen values, whose names are those of the answers of the commands (``--json``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Literal, TypeVar

from pydantic import ConfigDict, TypeAdapter
from pydantic.dataclasses import dataclass

from searchcrawl.exceptions import Exit

T = TypeVar("T")

# What an answer has beside these names belongs to the command alone.
_CONFIG: Final = ConfigDict(extra="ignore")


@dataclass(frozen=True, slots=True, kw_only=True, config=_CONFIG)
class Source:
    """A source of a project."""

    name: str
    title: str
    groups: tuple[str, ...]
    start_urls: tuple[str, ...]
    #: its file, relative to the project
    file: str


@dataclass(frozen=True, slots=True, kw_only=True, config=_CONFIG)
class Run:
    """A run of a source; ``ended`` and ``end_reason`` are None while it goes on, and after it was cut off."""

    id: int
    kind: Literal["initial", "maintenance"]
    started: datetime
    ended: datetime | None
    end_reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True, config=_CONFIG)
class Notice:
    """What is unusual about a source: a code for programs, and a sentence."""

    code: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True, config=_CONFIG)
class Status:
    """The state of a source; ``counts`` are those of its last run, by the names of the reference."""

    source: str
    state: str
    run: Run | None
    counts: Mapping[str, int]
    documents: int
    waiting: int
    quarantined: int
    force_recrawl: str | None
    #: when its schedule has it run next
    next_run: datetime | None
    #: the file of its log
    log: str | None
    #: why it could not be started
    error: str | None
    warnings: tuple[Notice, ...]


@dataclass(frozen=True, slots=True, kw_only=True, config=_CONFIG)
class Crawl:
    """How a crawl ended: its exit code, the state of the source then, and what it said on standard error."""

    exit_code: Exit
    status: Status
    messages: tuple[str, ...]

    @property
    def done(self) -> bool:
        """Whether the run came to its end, and nothing waits for a person or an index."""
        return self.exit_code == Exit.DONE


@dataclass(frozen=True, slots=True, kw_only=True, config=_CONFIG)
class Hit:
    """A document that a search found; ``url`` is its display URL."""

    url: str
    title: str
    snippet: str
    source: str
    score: float | None
    last_modified: datetime | None
    description: str | None
    duplicates: tuple[str, ...]
    attributes: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True, config=_CONFIG)
class Answer:
    """The answer to a search: ``total`` documents were found, ``hits`` are the ones that were asked for.

    ``facet_names`` has the texts of ``[attributes.values]`` for values of facets that have one. ``notes`` say why a query
    can find nothing, ``suggestion`` is one that finds something.
    """

    total: int
    hits: tuple[Hit, ...]
    facets: Mapping[str, Mapping[str, int]]
    facet_names: Mapping[str, Mapping[str, str]]
    suggestion: str | None
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, config=_CONFIG)
class Reason:
    """What decided about a URL: the rule, and the file and key that have it, where it is a rule."""

    step: str
    rule: str | None
    file: str | None
    key: str | None


@dataclass(frozen=True, slots=True, kw_only=True, config=_CONFIG)
class Step:
    """What a step of the way of a URL came to."""

    step: str
    outcome: str
    detail: str
    rule: str | None


@dataclass(frozen=True, slots=True, kw_only=True, config=_CONFIG)
class Explanation:
    """Why a URL is or is not in the index, at the source that decides about it."""

    url: str
    source: str
    in_index: bool
    verdict: str
    decided_by: Reason
    also: tuple[Reason, ...]
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True, kw_only=True, config=_CONFIG)
class Plan:
    """What an edited source file changes; ``plan`` is its name, for ``searchcrawl apply``.

    ``undecided`` documents, whose last visit failed, are decided at their next good one.
    """

    plan: str
    source: str
    enter: int
    leave: int
    reprocess: int
    refetch: int
    send: int
    undecided: int
    past_limits: bool
    edited: tuple[str, ...]
    reasons: tuple[Mapping[str, Any], ...]
    samples: Mapping[str, Sequence[Mapping[str, Any]]]


@dataclass(frozen=True, slots=True, kw_only=True, config=_CONFIG)
class Difference:
    """A difference between index and URL table: ``missing``, ``extra``, ``stale`` or ``foreign``."""

    kind: str
    url: str | None
    id: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True, config=_CONFIG)
class Verification:
    """The comparison of an index with the URL table; ``crawling`` are sources whose documents are on their way just now."""

    differences: tuple[Difference, ...]
    crawling: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether they are the same."""
        return not self.differences


@dataclass(frozen=True, slots=True, kw_only=True, config=_CONFIG)
class Url:
    """A row of the URL table of a source, as ``searchcrawl urls`` shows it."""

    url: str
    access_url: str
    state: str
    in_index: bool
    code: int
    rule: str | None
    depth: int
    referrer: str | None
    host: str
    first_seen: datetime | None
    last_fetched: datetime | None
    last_changed: datetime | None
    next_due: datetime | None
    duplicate_of: str | None
    document_id: str | None
    error: str | None


@dataclass(frozen=True, slots=True, kw_only=True, config=_CONFIG)
class PastRun:
    """A run in the list of all; one that was killed has no end before the next run goes on with it."""

    id: int
    source: str
    kind: Literal["initial", "maintenance"]
    started: datetime
    ended: datetime | None
    end_reason: str | None
    exit_code: int | None
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True, config=_CONFIG)
class StoredDocument:
    """A document as the index has it, from the cache; ``fields`` has all of its fields (reference of index fields)."""

    id: str
    url: str
    title: str
    content: str
    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True, config=_CONFIG)
class HeldRemoval:
    """A removal that the limits on deleting hold back, or that was rejected."""

    run: int
    url: str
    reason: str
    since: datetime


@dataclass(frozen=True, slots=True, kw_only=True, config=_CONFIG)
class Done:
    """What was done with the documents of a source; ``to_fetch`` URLs are left to its next run.

    ``undecided`` documents wait for a visit that does not fail (``apply``).
    """

    source: str
    documents: int = 0
    removed: int = 0
    failed: int = 0
    to_fetch: int = 0
    undecided: int = 0
    waiting: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, config=_CONFIG)
class Submitted:
    """What became of a URL that was submitted: ``ok``, ``duplicate``, ``out_of_scope`` or ``invalid``, and the rule."""

    url: str
    result: str
    rule: str | None


@dataclass(frozen=True, slots=True, kw_only=True, config=_CONFIG)
class TriedPage:
    """A page as it would be stored; ``links`` have ``url``, ``allowed`` and ``rule``."""

    url: str
    code: int
    rule: str | None
    error: str | None
    fields: Mapping[str, Any]
    text: str
    links: tuple[Mapping[str, Any], ...]


def build(kind: type[T], answer: Mapping[str, Any]) -> T:
    """The answer of a command as a value."""
    return TypeAdapter(kind).validate_python(answer)
