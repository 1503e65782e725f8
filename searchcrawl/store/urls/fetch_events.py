"""What happens to visits, as data: from which states of a row to which, why, and which columns are set (``store.events``).

Nothing else writes ``urls.fetch_state``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from sqlalchemy import BigInteger, BindParameter, ColumnElement, SmallInteger, and_, bindparam, case, or_

from searchcrawl.codes import REFUSED as REFUSED_CODES
from searchcrawl.codes import Code
from searchcrawl.store.events import Move, StateEvent
from searchcrawl.store.schema import urls
from searchcrawl.store.states import FetchState

_F = FetchState
_ANY: Final = tuple(FetchState)
_UNDER_WAY: Final = (_F.FETCHING, _F.ALONE)


#: Something that happens to the visits of rows.
Event: Final = partial(StateEvent, column=urls.c.fetch_state)


FOUND: Final = Event(
    by="admission",
    moves=(
        Move((), _F.TODO, "a page, a sitemap or the start list names a new URL that may be requested"),
        Move((), _F.SETTLED, "a new URL is refused by a rule: the row says which"),
    ),
)


def choose_found(*, is_refused: bool) -> int:
    """The state of a new row."""
    return int(FOUND.moves[is_refused].after)


CLAIMED: Final = Event(
    by="frontier",
    moves=(Move((_F.TODO, _F.SETTLED), _F.FETCHING, "the row is due and its host has room: it is claimed"),),
)
CLAIMED_ALONE: Final = Event(
    by="frontier",
    moves=(Move((_F.SUSPECT,), _F.ALONE, "nothing else is left to visit, and nothing is under way"),),
)
RELEASED: Final = Event(
    by="frontier",
    moves=(
        Move((_F.FETCHING,), _F.TODO, "the run ends before the request is sent: the claim is released"),
        Move((_F.ALONE,), _F.SUSPECT, "the run ends before the request is sent: the claim is released"),
    ),
)
PUT_OFF: Final = Event(
    by="frontier",
    moves=(Move((_F.FETCHING,), _F.TODO, "it is visited after all others: its host seems to be a trap"),),
    sets={"lap": bindparam("new_lap")},
)

_OPENING: Final[BindParameter[int]] = bindparam("new_due", type_=BigInteger)
_WAS_REFUSED: Final = and_(or_(*(urls.c.code == code for code in sorted(REFUSED_CODES))), urls.c.redirects.is_(None))
NOT_NOW: Final = Event(
    by="commit",
    moves=(
        Move(
            (*_UNDER_WAY, _F.SUSPECT),
            _F.SETTLED,
            "the URL is not to be requested yet: the row is due once it is, and keeps what its last visit brought",
        ),
    ),
    sets={
        "due_ms": _OPENING,
        "opens_ms": _OPENING,
        # No rule refuses it any more.
        "code": case((_WAS_REFUSED, int(Code.NOT_FETCHED)), else_=urls.c.code),
        "rule": case((_WAS_REFUSED, None), else_=urls.c.rule),
        # A try that failed in this run was none of it then.
        "run_id": case((urls.c.attempts > 0, None), else_=urls.c.run_id),
        "attempts": 0,
        "lap": 0,
    },
)

# How visits end

_new_state: Final[BindParameter[int]] = bindparam("new_state", type_=SmallInteger())


def _is_chosen(state: FetchState) -> ColumnElement[bool]:
    """The caller has chosen this state (``new_state``)."""
    return and_(_new_state == int(state))


#: A member that seemed lost may end a visit after all: its row is a suspect by then.
VISITED: Final = Event(
    by="commit",
    moves=(
        Move(
            (*_UNDER_WAY, _F.SUSPECT),
            _F.SETTLED,
            "the visit ended, and what it brought is durable",
            _is_chosen(_F.SETTLED),
        ),
        Move(
            (*_UNDER_WAY, _F.SUSPECT),
            _F.TODO,
            "the visit failed and is tried again after a pause, or begins anew: too many waited for the host to which it was "
            "redirected",
            _is_chosen(_F.TODO),
        ),
    ),
)
REFUSED: Final = Event(
    by="frontier",
    moves=(Move((_F.FETCHING,), _F.SETTLED, "a rule or a limit on traps refuses the claimed row"),),
)
REFUSED_LATER: Final = Event(
    by="commit",
    moves=(Move((_F.TODO, _F.SETTLED, _F.SUSPECT), _F.SETTLED, "edited rules refuse a known URL"),),
)

# Processes that end in the midst of visits

INTERRUPTED: Final = Event(
    by="run",
    moves=(
        Move((_F.ALONE,), _F.SUSPECT, "a process died, or stopped turning"),
        Move((_F.FETCHING,), _F.TODO, "a process died: the next run of the source releases its claims"),
    ),
)
SUSPECTED: Final = Event(
    by="run and members",
    moves=(
        Move(
            _UNDER_WAY,
            _F.SUSPECT,
            "a process died that had stopped turning; or one that visits for the run stopped turning, or ended again and again, "
            "while it visited the row",
        ),
    ),
)
SET_ASIDE: Final = Event(
    by="run",
    moves=(
        Move(
            (_F.SUSPECT, _F.TODO),
            _F.SETTLED,
            "a process stopped turning, or ended while it parsed the page, for the third time: the URL is set aside",
        ),
    ),
    sets={"code": int(Code.SET_ASIDE), "rule": None, "due_ms": None},
)
TRIED_AGAIN: Final = Event(
    by="run",
    moves=(Move((_F.SETTLED,), _F.SUSPECT, "the URL was set aside, and the source file is edited"),),
    sets={"due_ms": 0},
)

# What others say

REOPENED: Final = Event(
    by="admission, commit, comparison, delivery and operations",
    moves=(
        Move(
            (_F.SETTLED,),
            _F.TODO,
            "a refused URL is allowed now: found nearer, or rules were edited; or the document is to be sent and its record is "
            "gone; or store and index differ about it; or its host was found to answer any path with such a page",
        ),
    ),
    sets={"due_ms": 0, "attempts": 0},
)
#: What a row lacks that was never visited.
_UNVISITED: Final[Mapping[str, Any]] = {
    **dict.fromkeys(
        ("error", "failures", "last_fetched_ms", "opens_ms", "redirects", "interval_ms", "unread", "lacks")
    ),
    "attempts": 0,
    "failed_runs": 0,
    "lap": 0,
}
#: The URL itself stays, with where it was found, as the row of any URL that is refused when it is found.
FORGOTTEN: Final = Event(
    by="operations",
    moves=(Move(_ANY, _F.SETTLED, "somebody asks for the URL to be forgotten: `forget`"),),
    sets={
        **_UNVISITED,
        **dict.fromkeys(("due_ms", "found_as", "display_url", "lastmod_ms")),
        "code": int(Code.OUTSIDE_BOUNDARY),
        "rule": bindparam("new_rule"),
    },
)
UNVISITED: Final = Event(
    by="operations",
    moves=(Move(_ANY, _F.TODO, "its page came from a URL that somebody asks to be forgotten"),),
    sets={**_UNVISITED, "rule": None, "due_ms": 0, "code": int(Code.NOT_FETCHED)},
)

#: All of them, as the reference lists them.
EVENTS: Final[Mapping[str, StateEvent]] = {
    name: each for name, each in globals().items() if isinstance(each, StateEvent)
}
TRANSITIONS: Final = tuple(transition for event in EVENTS.values() for transition in event.transitions)
