"""Which tables a transaction writes, as its statements say: what does not ask for it cannot be forgotten."""

from __future__ import annotations

import re
from typing import Any, Final

from sqlalchemy import Connection, Engine, event

_OPTION: Final = "searchcrawl_written"
_MOVES_ALONE: Final = "searchcrawl_moves_alone"
#: The option of a statement that moves documents on their way to the index, and changes nothing that they say.
MOVES_ALONE: Final = {_MOVES_ALONE: True}
#: One that begins otherwise, and has one of these words all the same, says the name of a table that there is none of.
_WRITES: Final = re.compile(r"\b(?:INSERT INTO|UPDATE|DELETE FROM) (\w+)")


def listen(engine: Engine) -> None:
    """Has the statements of an engine noted, for transactions that ask for it."""
    event.listen(engine, "after_cursor_execute", _note)


def note_tables(transaction: Connection) -> set[str]:
    """A set to which the tables are added that the transaction writes from now on."""
    found = set[str]()
    transaction.execution_options(**{_OPTION: found})
    return found


def _note(connection: Connection, cursor: Any, statement: str, _parameters: Any, context: Any, _many: bool) -> None:
    found: set[str] | None = connection.get_execution_options().get(_OPTION)
    if found is None or context.execution_options.get(_MOVES_ALONE):
        return
    # How many rows it has written is known at its end, and those that it returns are still to come.
    if cursor.rowcount == 0 and "RETURNING" not in statement:
        return
    written = _WRITES.search(statement)
    if written is not None:
        found.add(written[1])
