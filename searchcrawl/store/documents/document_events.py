"""What happens to documents, as data: from which states to which, why, and which columns are set.

Nothing else writes ``documents.state`` (``store.events``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    BindParameter,
    ColumnElement,
    Integer,
    LargeBinary,
    SmallInteger,
    Text,
    and_,
    bindparam,
    case,
    exists,
    func,
    or_,
    select,
)

from searchcrawl.codes import COPIES, WITH_DOCUMENT, Code
from searchcrawl.rules.lifecycle import ORPHAN
from searchcrawl.store.documents.presence import IS_NOTHING, IS_REMOVING, IS_SENDING
from searchcrawl.store.events import Move, StateEvent
from searchcrawl.store.run_schema import receivers
from searchcrawl.store.schema import documents, urls
from searchcrawl.store.states import DocumentState, FetchState, Leaving

_D = DocumentState
_ANY: Final = tuple(DocumentState)


#: Something that happens to documents.
Event: Final = partial(StateEvent, column=documents.c.state)


# What the conditions of events are made of

#: Another document is indexed instead.
STOOD_FOR: Final = documents.c.duplicate_of.is_not(None)
#: The document of another page is indexed instead. No IN: its list cannot be expanded for many rows at once.
_COPY_CODES: Final = COPIES & WITH_DOCUMENT
IS_COPY: Final = or_(*(documents.c.code == code for code in sorted(_COPY_CODES)))
CODE_ALONE: Final = case((STOOD_FOR, 200), else_=documents.c.code)
HAS_RECORD: Final = documents.c.segment.is_not(None)
_NO_RECORD: Final = documents.c.segment.is_(None)

#: The version of a document that is taken out of its delivery. The index may have got it, and its answer may be lost
#: with the process. Then the document may be in the index in an unknown version (0).
MAYBE_INDEXED: Final = case(
    (and_(IS_SENDING, documents.c.indexed_version.is_(None)), 0),
    else_=documents.c.indexed_version,
)
#: What a removal that waits was held back in, where an indexed value besides the text has changed since. No document is held
#: back in this state itself.
HELD_CHANGED: Final = int(_D.QUARANTINED)
HELD_AS_IT_IS: Final = and_(documents.c.state == int(_D.QUARANTINED), documents.c.held_state == int(_D.PRESENT))
#: The index had it as it is when its removal was held back. A page that may not be indexed has no text that could be sent:
#: what the index has stays.
_NEED_NOT_BE_SENT: Final = or_(
    and_(documents.c.held_state == int(_D.PRESENT), documents.c.duplicate_of.is_(None)),
    documents.c.held_state == int(_D.NONE),
)
#: Documents whose removal an operator rejected for what good content says nothing about: another page is indexed in
#: their place (909, 956, 964), or nothing names them any more.
_REJECTED_FOR_OTHERS: Final = and_(
    documents.c.rejected_run.is_not(None),
    or_(*(documents.c.evidence == each for each in (ORPHAN, *(str(code) for code in sorted(_COPY_CODES))))),
)
_IS_ORPHAN: Final = documents.c.evidence == ORPHAN
#: The page is as good as it was, and that is what counts.
IS_GOOD: Final = and_(documents.c.code == 200, documents.c.evidence.is_distinct_from(ORPHAN))
#: A removed document whose page was visited since, with the text that it had: what waits to be named is not visited.
_WAS_FOUND_WELL: Final = and_(
    IS_NOTHING,
    documents.c.code == 200,
    exists().where(
        urls.c.id == documents.c.url_id,
        urls.c.code == 200,
        urls.c.rule.is_(None),
        urls.c.fetch_state == int(FetchState.SETTLED),
    ),
)


def _null_where(condition: ColumnElement[bool], *names: str) -> dict[str, Any]:
    """Sets these columns to null where the condition holds."""
    return {name: case((condition, None), else_=documents.c[name]) for name in names}


def _let_stay(reason: str, when: ColumnElement[bool] | None = None) -> tuple[Move, ...]:
    """The moves of a removal that is dropped: it is sent unless the index had it as it is."""

    def also(condition: ColumnElement[bool]) -> ColumnElement[bool]:
        return condition if when is None else and_(when, condition)

    waits = (_D.QUARANTINED,)
    return (
        Move(waits, _D.PRESENT, reason, also(_NEED_NOT_BE_SENT)),
        Move(waits, _D.CACHED, f"{reason}; the index does not have this version", also(HAS_RECORD)),
        Move(waits, _D.RECORD_LOST, f"{reason}; its record is gone", when),
    )


# What visits say

CHANGED: Final = Event(
    by="commit",
    moves=(
        Move((), _D.CACHED, "a page was fetched for the first time and is to be indexed"),
        Move((), _D.NONE, "a page was fetched for the first time and is not to be indexed"),
        Move(_ANY, _D.CACHED, "the page has changed"),
        Move(_ANY, _D.NONE, "the page has changed and is not to be indexed any more"),
    ),
)


def build_changed(new: Any, names: Iterable[str]) -> dict[str, Any]:
    """The values of CHANGED for a known document, where ``new`` is the row that was to be inserted.

    ``names`` are its columns that are taken over.
    """
    values: dict[str, Any] = {name: new[name] for name in names}
    moves = (Move(each.before, each.after, each.reason, new.state == int(each.after)) for each in CHANGED.moves)
    values |= Event(by=CHANGED.by, moves=tuple(moves)).values
    # A document in the index that may not be indexed any more is marked, and removed at the end of the run.
    values["leaving"] = case((and_(new.state == int(_D.NONE), MAYBE_INDEXED.is_not(None)), 1), else_=0)
    values["indexed_version"] = MAYBE_INDEXED
    values["batch_id"] = None
    # Whether another text stands for its own is decided at the end of the run.
    values["near_digest"] = values["near_signature"] = None
    # It is that of the content, also where that was read by an earlier release: known copies keep their order.
    same_content = documents.c.copy_digest == new.copy_digest
    values["url_fit"] = case((same_content, documents.c.url_fit), else_=new.url_fit)
    # Whether it is still a copy is decided after this: ``duplicate_key_table.set_results``, or ``forget_rejections``.
    still_rejected = and_(new.state == int(_D.CACHED), _REJECTED_FOR_OTHERS)
    for name in ("evidence", "rejected_run"):
        values[name] = case((still_rejected, documents.c[name]), else_=new[name])
    return values


_SEND_AGAIN: Final = bindparam("send_again") == 1
_READ: Final = bindparam("read") == 1
_SAME_FIELDS: Final[BindParameter[int]] = bindparam("same_fields")
_HAS_COPY: Final[BindParameter[int]] = bindparam("has_copy")
_NEW_COPY: Final = bindparam("new_copy_digest", type_=LargeBinary)
_NEW_ETAG: Final = bindparam("new_etag", type_=Text)
#: The parameters are those of ``document_table.Confirmed``.
CONFIRMED: Final = Event(
    by="commit",
    moves=(
        Move(
            (_D.QUARANTINED,),
            _D.CACHED,
            "the page is back, with another value than the index: the removal is dropped",
            and_(_SEND_AGAIN, documents.c.held_state == int(_D.PRESENT), IS_GOOD),
        ),
        *_let_stay("the page is back as it was: the removal is dropped", IS_GOOD),
        Move(
            (_D.NONE, _D.REMOVING),
            _D.CACHED,
            "the page is back as it was, and its record is there",
            and_(IS_GOOD, HAS_RECORD),
        ),
        Move((_D.PRESENT,), _D.CACHED, "another indexed value than the text has changed", _SEND_AGAIN),
    ),
    sets={
        # What was read may have none any more; what did not change may not repeat it.
        "etag": case((_READ, _NEW_ETAG), else_=func.coalesce(_NEW_ETAG, documents.c.etag)),
        "last_modified": func.coalesce(bindparam("new_last_modified"), documents.c.last_modified),
        "body_digest": func.coalesce(bindparam("new_body_digest"), documents.c.body_digest),
        "copy_digest": case((_SAME_FIELDS == 0, documents.c.copy_digest), (_HAS_COPY == 0, None), else_=_NEW_COPY),
        "near_digest": case((and_(_SAME_FIELDS == 1, _HAS_COPY == 0), None), else_=documents.c.near_digest),
        "url_fit": case(
            (or_(_SAME_FIELDS == 0, _HAS_COPY == 0), documents.c.url_fit),
            (documents.c.copy_digest == _NEW_COPY, documents.c.url_fit),
            else_=bindparam("new_url_fit", type_=SmallInteger),
        ),
        "unavailable_ms": case(
            (_READ, bindparam("new_unavailable_ms", type_=BigInteger)), else_=documents.c.unavailable_ms
        ),
        "rendered": bindparam("new_rendered"),
        "parts": bindparam("new_parts"),
        "read_version": bindparam("new_read_version"),
        "leaving": case((IS_GOOD, 0), else_=documents.c.leaving),
        **_null_where(IS_GOOD, "evidence", "quarantine_run", "rejected_run", "removed_run"),
    },
)
#: Evidence against what is in the index, or on its way there: it leaves at the end of the run.
ACCUSED: Final = Event(
    by="commit",
    # It is not treated as a copy any more: it is removed for its own reason.
    moves=(Move((_D.WITHHELD,), _D.CACHED, "a copy in the index has evidence of its own against it", STOOD_FOR),),
    sets={"duplicate_of": None, "code": CODE_ALONE, "rejected_run": None},
)
DROPPED: Final = Event(
    by="commit",
    moves=(Move(tuple(s for s in _ANY if s != _D.SENDING), _D.NONE, "evidence against what the index does not hold"),),
    # What an operator and the index said of it is over.
    sets={"duplicate_of": None, "code": CODE_ALONE, "rejected_run": None, "index_error": None},
)
#: Those whose removal waits are sent once they are to stay after all.
VALUE_CHANGED: Final = Event(
    by="commit",
    moves=(
        Move(
            (_D.PRESENT, _D.SENDING),
            _D.RECORD_LOST,
            "an indexed value besides the text has changed, and the record is gone",
            _NO_RECORD,
        ),
        Move((_D.PRESENT, _D.SENDING), _D.CACHED, "an indexed value besides the text has changed"),
    ),
    sets={
        "held_state": case((HELD_AS_IT_IS, HELD_CHANGED), else_=documents.c.held_state),
        "indexed_version": MAYBE_INDEXED,
        "batch_id": None,
    },
)
NAMED_AGAIN: Final = Event(
    by="commit",
    moves=(
        *_let_stay("something names the page again: the removal is dropped"),
        # Sealed while the index was away.
        Move(
            (_D.REMOVING,),
            _D.CACHED,
            "something names the page again before the index removed it",
            and_(_IS_ORPHAN, HAS_RECORD),
        ),
        Move(
            (_D.REMOVING,),
            _D.RECORD_LOST,
            "something names the page again before the index removed it, and its record is gone",
            _IS_ORPHAN,
        ),
        Move(
            (_D.NONE,),
            _D.RECORD_LOST,
            "something names the page again, which was found well meanwhile, and its record is gone",
            and_(_WAS_FOUND_WELL, _NO_RECORD),
        ),
        Move((_D.NONE,), _D.CACHED, "something names the page again, which was found well meanwhile", _WAS_FOUND_WELL),
    ),
    sets={
        **_null_where(or_(_WAS_FOUND_WELL, and_(IS_REMOVING, _IS_ORPHAN)), "removed_run"),
        **_null_where(and_(IS_REMOVING, _IS_ORPHAN), "batch_id"),
        "leaving": int(Leaving.NO),
        **dict.fromkeys(("evidence", "quarantine_run", "rejected_run")),
    },
)

# What other documents say

_new_state: Final[BindParameter[int]] = bindparam("new_state", type_=SmallInteger())
_NEW_EVIDENCE: Final = bindparam("new_evidence", type_=Text())
_new_code: Final[BindParameter[int]] = bindparam("new_code", type_=Integer())
#: An operator kept the document although another one is indexed in its place for the same reason.
_IS_REJECTED: Final = and_(documents.c.rejected_run.is_not(None), documents.c.evidence == _NEW_EVIDENCE)
#: A document with a text of its own stays as it is. That of a copy is its survivor's: the index keeps the earlier one.
_KEEPS_STATE: Final = or_(_new_state.is_(None), and_(_IS_REJECTED, _new_code != int(Code.DUPLICATE)))


def _is_chosen(state: DocumentState) -> ColumnElement[bool]:
    """The caller has chosen this state (``new_state``)."""
    return and_(_new_state == int(state))


#: Whether it is a copy, and of what, was decided; a state is chosen where that changes it.
RESOLVED: Final = Event(
    by="commit",
    stays=_KEEPS_STATE,
    moves=(
        Move(_ANY, _D.WITHHELD, "another page is indexed in its place", _is_chosen(_D.WITHHELD)),
        Move(_ANY, _D.CACHED, "no other page is indexed in its place any more", _is_chosen(_D.CACHED)),
        Move(
            _ANY,
            _D.RECORD_LOST,
            "no other page is indexed in its place any more, and its record is gone",
            _is_chosen(_D.RECORD_LOST),
        ),
    ),
    sets={
        "code": _new_code,
        "duplicate_of": bindparam("new_duplicate_of"),
        "indexed_version": MAYBE_INDEXED,
        # Copies in the index are found by a query of their own (``removal_table.find_candidates``).
        "leaving": case((_KEEPS_STATE, documents.c.leaving), else_=0),
        "evidence": case((_KEEPS_STATE, documents.c.evidence), else_=_NEW_EVIDENCE),
        "rejected_run": case((or_(_KEEPS_STATE, _IS_REJECTED), documents.c.rejected_run), else_=None),
        **{
            name: case((_KEEPS_STATE, documents.c[name]), else_=None)
            for name in ("batch_id", "quarantine_run", "removed_run")
        },
    },
)
#: Many pages of its host had turned into one text; a state is chosen by what the index has or may have.
PUT_BACK: Final = Event(
    by="commit",
    moves=(
        Move(_ANY, _D.PRESENT, "it is put back as it was, and the index has that", _is_chosen(_D.PRESENT)),
        Move(
            _ANY,
            _D.CACHED,
            "it is put back as it was, and the index has or may have another text",
            _is_chosen(_D.CACHED),
        ),
        Move(_ANY, _D.RECORD_LOST, "it is put back as it was, and its record is gone", _is_chosen(_D.RECORD_LOST)),
    ),
    sets={
        "batch_id": bindparam("new_batch", type_=Integer()),
        "indexed_version": MAYBE_INDEXED,
        "code": 200,
        "leaving": 0,
        **dict.fromkeys(("near_signature", "duplicate_of", "index_error", "quarantine_run")),
    },
)

# What deliveries say

#: The number of the entry in the change log (log_table).
_LOG_SEQ: Final[BindParameter[int]] = bindparam("log_seq", type_=BigInteger)
_SLOWEST: Final = (
    select(func.min(receivers.c.seq)).where(receivers.c.source_id == documents.c.source_id).scalar_subquery()
)
SEALED: Final = Event(
    by="commit and delivery",
    moves=(Move((_D.CACHED,), _D.SENDING, "it is put into a delivery"),),
    sets={
        "seq": _LOG_SEQ,
        "shown": 1,
        # A receiver that was not told that it had gone may have it since it came first.
        "first_seq": case(
            (documents.c.shown == 1, documents.c.first_seq),
            (documents.c.seq > _SLOWEST, documents.c.first_seq),
            else_=_LOG_SEQ,
        ),
    },
)
_NUMBER: Final[BindParameter[int]] = bindparam("number", type_=Integer)
_VERSION: Final[BindParameter[int]] = bindparam("version", type_=BigInteger)
_IN_IT: Final = documents.c.batch_id == _NUMBER
#: It was put back while it was sent (965): the index has the other text, and the old one is to follow.
_OVERTAKEN: Final = documents.c.batch_id.is_distinct_from(_NUMBER)
_LOST_TEXT: Final = and_(documents.c.state == int(_D.PRESENT), _OVERTAKEN, _NO_RECORD)
ACKNOWLEDGED: Final = Event(
    by="delivery",
    moves=(
        Move((_D.SENDING,), _D.PRESENT, "the index acknowledges the document", _IN_IT),
        Move(
            (_D.PRESENT,),
            _D.CACHED,
            "it was put back while its new text was sent: the old text follows",
            and_(_OVERTAKEN, HAS_RECORD),
        ),
    ),
    sets={
        "indexed_version": _VERSION,
        "indexed_since": func.coalesce(documents.c.indexed_since, _NUMBER),
        # Without its record the next visit must count as a change.
        **_null_where(_LOST_TEXT, "fields_digest", "body_digest", "etag", "last_modified"),
        "leaving": case(
            (documents.c.rejected_run.is_not(None), documents.c.leaving),
            (IS_NOTHING, 1),
            else_=documents.c.leaving,
        ),
        # It was sent again as it is while its removal waits.
        "held_state": case(
            (and_(documents.c.state == int(_D.QUARANTINED), _IN_IT), int(_D.PRESENT)), else_=documents.c.held_state
        ),
        "index_error": None,
    },
)
INDEX_REFUSED: Final = Event(
    by="delivery",
    moves=(Move((_D.SENDING,), _D.WITHHELD, "the index refuses the document"),),
    sets={"batch_id": None, "index_error": bindparam("reason")},
)
RECORD_GONE: Final = Event(
    by="commit and delivery",
    moves=(
        Move(
            tuple(s for s in _ANY if s != _D.QUARANTINED),
            _D.RECORD_LOST,
            "it is to be sent, and its record is gone or cannot be read",
        ),
    ),
    sets={"batch_id": None, "segment": None},
)
RESENT: Final = Event(
    by="delivery", moves=(Move((_D.PRESENT,), _D.SENDING, "everything is sent again: it is put into a delivery"),)
)
REFUSED_RESENT: Final = Event(
    by="comparison",
    moves=(Move((_D.WITHHELD,), _D.CACHED, "everything is sent again, what the index refused included"),),
)
MENDED: Final = Event(
    by="operations",
    moves=(
        Move((_D.PRESENT,), _D.SENDING, "the index differs, and is mended: `verify --repair`"),
        Move(
            (_D.WITHHELD,),
            _D.SENDING,
            "the index lacks what it refused, and is mended: `verify --repair`",
            documents.c.index_error.is_not(None),
        ),
    ),
)

# Removals

REMOVAL_SEALED: Final = Event(
    by="delivery and operations",
    moves=(
        Move(
            _ANY,
            _D.REMOVING,
            "its removal is put into a delivery: within the limits, approved, let go after all, asked for by `forget`, "
            "or the source is deleted",
        ),
    ),
    sets={"quarantine_run": None, "rejected_run": None, "indexed_version": MAYBE_INDEXED, "seq": _LOG_SEQ, "shown": 0},
)
HELD_BACK: Final = Event(
    by="delivery",
    moves=(Move(_ANY, _D.QUARANTINED, "the run ends, and its removals pass a limit"),),
    sets={
        "held_state": documents.c.state,
        # What waits for an index that is away is sent all the same: it is to stay until somebody approves.
        "batch_id": case((IS_SENDING, documents.c.batch_id)),
        "indexed_version": MAYBE_INDEXED,
    },
)
REMOVAL_REJECTED: Final = Event(
    by="operations",
    moves=(
        # The index has the text of a copy: it is that of its survivor. Here it keeps the earlier one.
        Move(
            (_D.QUARANTINED,),
            _D.WITHHELD,
            "an operator rejects the removal, and it has the text of another page",
            documents.c.code == int(Code.DUPLICATE),
        ),
        *_let_stay("an operator rejects the removal"),
    ),
    sets={
        # The index has an earlier text than the one that may not be indexed: a text to be indexed is a new one.
        **_null_where(documents.c.held_state == int(_D.NONE), "fields_digest"),
        "leaving": 0,
        "rejected_run": documents.c.quarantine_run,
        "quarantine_run": None,
    },
)
LET_GO: Final = Event(
    by="operations",
    moves=(
        Move(
            _ANY, _D.WITHHELD, "a rejected removal is let go: the index does not have it, and it is a copy", STOOD_FOR
        ),
        Move(_ANY, _D.NONE, "a rejected removal is let go: the index does not have it"),
    ),
    sets={"removed_run": documents.c.rejected_run, "rejected_run": None},
)
TAKEN_BACK: Final = Event(
    by="operations",
    moves=(
        Move(_ANY, _D.CACHED, "an operator takes the removal back: it is sent again", HAS_RECORD),
        Move(_ANY, _D.RECORD_LOST, "an operator takes the removal back, and its record is gone"),
    ),
    sets={
        # Whether the index still has it is not known.
        "indexed_version": case((IS_REMOVING, 0)),
        "batch_id": None,
        "leaving": 0,
        "rejected_run": documents.c.removed_run,
        "removed_run": None,
        # A page that is to be fetched is to be read: nothing of it is "unchanged".
        **_null_where(_NO_RECORD, "body_digest", "etag", "last_modified"),
    },
)
#: A copy stays a copy of its survivor. A page that came back meanwhile stays in its new delivery.
REMOVED: Final = Event(
    by="delivery",
    moves=(
        Move((_D.REMOVING,), _D.WITHHELD, "the index acknowledges the removal of a copy", STOOD_FOR),
        Move((_D.REMOVING,), _D.NONE, "the index acknowledges the removal"),
    ),
    sets={
        "indexed_version": None,
        "indexed_since": None,
        "leaving": 0,
        **_null_where(IS_REMOVING, "batch_id", "index_error"),
    },
)
#: Receivers may have it, and neither the index nor a delivery: it was lost in the index, or refused by it.
LEFT_BEHIND: Final = Event(by="delivery", moves=(), sets={"seq": _LOG_SEQ, "shown": 0})
#: What is known of it goes; a removal that is sealed stays so.
FORGOTTEN: Final = Event(
    by="operations",
    moves=(
        Move(
            tuple(s for s in _ANY if s != _D.REMOVING),
            _D.NONE,
            "somebody asks for its URL to be forgotten: `forget`, or it is of such a page",
        ),
    ),
    sets={"code": int(Code.OUTSIDE_BOUNDARY), "content_length": 0, "leaving": 0},
)

# What the index has, where that is not what the table believes

_NOT_THERE: Final[Mapping[str, Any]] = {"indexed_version": None, "indexed_since": None}
#: Only the index can say what it has of such a document; the page is fetched whole, and sent again.
_TO_FETCH: Final[Mapping[str, Any]] = {
    "code": case((IS_COPY, documents.c.code), else_=200),
    "leaving": 0,
    **dict.fromkeys(("segment", "batch_id", "quarantine_run", "index_error")),
}
FOUND_OTHERWISE: Final = Event(
    by="comparison",
    moves=(
        Move((), _D.RECORD_LOST, "the index has a document that the store does not know"),
        Move(_ANY, _D.RECORD_LOST, "the index has another version than the store knows"),
    ),
    sets=_TO_FETCH,
)
MISSING: Final = Event(
    by="comparison",
    moves=(
        Move(
            (_D.PRESENT, _D.QUARANTINED, _D.RECORD_LOST), _D.RECORD_LOST, "the index lacks what the store says it has"
        ),
    ),
    sets={**_NOT_THERE, **_TO_FETCH},
)
#: It is none that belongs in the index, or it is on its way there.
ABSENT: Final = Event(
    by="comparison",
    moves=(Move((_D.REMOVING,), _D.NONE, "the index does not have the document"),),
    sets={**_NOT_THERE, "leaving": 0, **_null_where(IS_REMOVING, "batch_id")},
)
_IS_OPENED_COPY: Final = and_(IS_COPY, STOOD_FOR)
REMOVAL_OPENED: Final = Event(
    by="comparison and delivery",
    moves=(
        Move(
            (_D.REMOVING,),
            _D.WITHHELD,
            "the store is older than the index, or the index lacks the text of the other page: the removal of a copy is "
            "decided again",
            _IS_OPENED_COPY,
        ),
        Move((_D.REMOVING,), _D.PRESENT, "the store is older than the index: the removal is decided again"),
    ),
    sets={
        "batch_id": None,
        "removed_run": None,
        # Receivers have the other page instead of a copy.
        "seq": case((_IS_OPENED_COPY, documents.c.seq), else_=_LOG_SEQ),
        "shown": case((_IS_OPENED_COPY, 0), else_=1),
    },
)

#: All of them, as the reference lists them.
EVENTS: Final[Mapping[str, StateEvent]] = {
    name: each for name, each in globals().items() if isinstance(each, StateEvent)
}
TRANSITIONS: Final = tuple(transition for event in EVENTS.values() for transition in event.transitions)
