"""Which errors of a database may pass by themselves."""

from __future__ import annotations

from typing import Final

from sqlalchemy.exc import DBAPIError, OperationalError, SQLAlchemyError

from searchcrawl.exceptions import StoreAway, StoreError, StoreLocked

#: SQLITE_BUSY, SQLITE_LOCKED and SQLITE_PROTOCOL (a race for the log's locks); extended codes are in the higher bytes.
_SQLITE_LOCKED: Final = frozenset({5, 6, 15})
#: lock_not_available, deadlock_detected, serialization_failure
_LOCKED: Final = frozenset({"55P03", "40P01", "40001"})
#: too_many_connections, operator intervention (the server is told to stop, or starts), idle transactions ended
_REFUSED: Final = frozenset({"53300", "57P01", "57P02", "57P03", "57P05", "25P03"})
#: Connection exceptions.
_CONNECTION_CLASS: Final = "08"


def kind_of(error: SQLAlchemyError) -> type[StoreError]:
    """StoreLocked or StoreAway where the same transaction may work later, else StoreError.

    A full disk, damage, missing tables or rights do not pass by themselves.
    """
    if not isinstance(error, DBAPIError):
        return StoreError
    cause = error.orig
    code = getattr(cause, "sqlite_errorcode", None)
    if code is not None:
        return StoreLocked if code & 0xFF in _SQLITE_LOCKED else StoreError
    state = getattr(cause, "sqlstate", None)
    if state in _LOCKED:
        return StoreLocked
    if state in _REFUSED or (state or "").startswith(_CONNECTION_CLASS) or error.connection_invalidated:
        return StoreAway
    # A connection that could not be made, or was cut: there is no answer with a state. SQLite always has a code.
    is_unanswered = hasattr(cause, "sqlstate") and state is None and isinstance(error, OperationalError)
    return StoreAway if is_unanswered else StoreError
