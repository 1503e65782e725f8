"""Where a document is, as its columns say: the conditions by which all others read them, each told once.

``document_events`` writes these columns. ``table`` is ``documents``, or an alias of it; what a single state means is at
the state (``store.states``).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from sqlalchemy import ColumnElement, and_, or_

from searchcrawl.store.schema import documents
from searchcrawl.store.states import INDEXABLE, DocumentState

_D = DocumentState


def is_in(states: Collection[int], table: Any = documents) -> ColumnElement[bool]:
    """Its state is one of these."""
    # No IN: its list cannot be expanded for many rows at once.
    return or_(*(table.c.state == int(state) for state in sorted(states)))


def may_be_there(table: Any = documents) -> ColumnElement[bool]:
    """The index has it in some version, or may have got it from a delivery without a receipt."""
    return or_(table.c.indexed_version.is_not(None), table.c.state == int(_D.SENDING))


def may_have(indexed_version: int | None, state: int | None) -> bool:
    """The same of a row that was read."""
    return indexed_version is not None or state == _D.SENDING


def is_there(table: Any = documents) -> ColumnElement[bool]:
    """The index has acknowledged it as the cache has it, in a version that is known."""
    return and_(table.c.state == int(_D.PRESENT), table.c.indexed_version > 0)


def is_known(indexed_version: int | None, state: int | None) -> bool:
    """Whether it belongs in the index, is a copy of one that does, or is there; of a row that was read."""
    return indexed_version is not None or state in INDEXABLE


#: The same in SQL.
IS_KNOWN: Final = or_(documents.c.indexed_version.is_not(None), is_in(INDEXABLE))
IS_CACHED: Final = documents.c.state == int(_D.CACHED)
IS_SENDING: Final = documents.c.state == int(_D.SENDING)
IS_REMOVING: Final = documents.c.state == int(_D.REMOVING)
IS_RECORD_LOST: Final = documents.c.state == int(_D.RECORD_LOST)
IS_NOTHING: Final = documents.c.state == int(_D.NONE)
#: The index refused it in its present version; it would be there else.
IS_REFUSED: Final = and_(documents.c.index_error.is_not(None), documents.c.state == int(_D.WITHHELD))
