"""Events as data: from which states to which, under which condition, why, and which columns are set.

An event meets the rows that its caller names. The values of the SQL update are made from its moves: the first that fits
decides, and where none does the state stays. The reference pages of states are made from the same moves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from sqlalchemy import Column, ColumnElement, and_, case, or_

from searchcrawl.store.states import State, Transition


class Move(NamedTuple):
    """Rows in one of the states ``before``, of which ``when`` holds, come into ``after``.

    ``before`` is empty for new rows. ``reason`` completes "because" in the reference.
    """

    before: tuple[State, ...]
    after: State
    reason: str
    when: ColumnElement[bool] | None = None

    def build_condition(self, column: Column[int]) -> ColumnElement[bool] | None:
        """When it fits, in SQL, where ``column`` has the state; None: always."""
        if {*self.before} == {*type(self.after)}:
            return self.when
        # No IN: its list cannot be expanded for many rows at once.
        here = or_(*(column == int(state) for state in self.before))
        return here if self.when is None else and_(here, self.when)


@dataclass(frozen=True, kw_only=True, eq=False)
class StateEvent:
    """Something that happens to rows with a state in ``column``; ``by`` are the packages that say so."""

    column: Column[int]
    by: str
    moves: tuple[Move, ...]
    #: where this holds the state stays, whatever the moves say
    stays: ColumnElement[bool] | None = None
    #: the other columns that are set
    sets: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def values(self) -> dict[str, Any]:
        """The values of an update."""
        whens: list[tuple[ColumnElement[bool], Any]] = []
        rest: Any = self.column
        if self.stays is not None:
            whens.append((self.stays, self.column))
        for move in filter(lambda each: each.before, self.moves):
            condition = move.build_condition(self.column)
            if condition is None:
                rest = int(move.after)
                break
            whens.append((condition, int(move.after)))
        return {self.column.name: case(*whens, else_=rest) if whens else rest, **self.sets}

    @property
    def transitions(self) -> Iterable[Transition]:
        """Its moves, for the reference."""
        return (Transition(move.before, move.after, move.reason, self.by) for move in self.moves)
