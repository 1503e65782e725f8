"""What the process of a run and its members tell each other; all of it is pickled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from searchcrawl.items import Claim, Document, Outcome, PackedPage, copy_with, pack_page, unpack_page
from searchcrawl.sources.config import Source
from searchcrawl.sources.project import Project
from searchcrawl.store.runs.lease import Lease
from searchcrawl.store.runs.run_table import RunRow


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What a member begins with: the run, as ``run.begin`` made it, and the settings that are not Scrapy's own.

    ``settings`` have their priorities. ``number`` is that of the member, from 1. ``hidden``: what no text may show.
    """

    number: int
    project: Project
    source: Source
    source_id: int
    lease: Lease
    row: RunRow
    fingerprint: str
    forced: tuple[str, ...]
    settings: Mapping[str, tuple[Any, int]]
    log_level: int
    hidden: tuple[str, ...] = field(repr=False)


# To a member.


class Visit(NamedTuple):
    """A row that is to be visited now, where its host has a delay before a moment (monotonic seconds)."""

    host: str
    claim: Claim
    before: float


class GoOn(NamedTuple):
    """A redirected visit, which waited for its new host, may go on, before a moment as in Visit."""

    url_id: int
    before: float


class Forget(NamedTuple):
    """A redirected visit, which waited for its new host, was ended without it."""

    url_id: int


class GiveUp(NamedTuple):
    """Nothing more is sent to these hosts, each with a code (``http.given_up_hosts``)."""

    codes: Mapping[str, int]


class Reply(NamedTuple):
    """The answer to a Call: its value, or why there is none; with a ``code`` the host is blocked."""

    number: int
    value: Any = None
    error: str | None = None
    code: int | None = None


class Ping(NamedTuple):
    """Asks whether it turns; the answer is a Pong."""


class Finish(NamedTuple):
    """Nothing more is to be visited."""


# From a member.


class Ready(NamedTuple):
    """It can visit."""


class Pong(NamedTuple):
    """It turns."""


class Ended(NamedTuple):
    """A visit is over; the ``page`` of its document comes beside it."""

    item: Document | Outcome
    page: PackedPage | None = None

    @classmethod
    def of(cls, item: Document | Outcome) -> Ended:
        """The end of a visit, packed."""
        if isinstance(item, Outcome) or item.page is None:
            return cls(item)
        return cls(copy_with(item, page=None), pack_page(item.page))

    def unpack(self) -> Document | Outcome:
        """The end of the visit."""
        return self.item if self.page is None else copy_with(self.item, page=unpack_page(self.page))


class Moved(NamedTuple):
    """A visit was redirected, and waits for its turn at ``host``."""

    url_id: int
    host: str


class Call(NamedTuple):
    """Asks for something (``services``); the answer has the same number, None where none is needed."""

    number: int | None
    name: str
    arguments: Mapping[str, Any]


class Failed(NamedTuple):
    """The run cannot go on (``Shutdown.fail``)."""

    error: Exception


class Stopped(NamedTuple):
    """The run is to end (``Shutdown.stop``)."""

    reason: str


class Logged(NamedTuple):
    """A record of its log: ``facts`` are attributes of a LogRecord."""

    facts: Mapping[str, Any]


class Closed(NamedTuple):
    """It ends, for the reason of Scrapy.

    ``stats`` are counts for its statistics, ``counts`` those of the run, ``unreadable`` values of attributes.
    """

    reason: str
    stats: Mapping[str, int]
    counts: Mapping[str, int]
    unreadable: Mapping[str, int]
