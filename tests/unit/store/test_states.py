"""The tables of states name each state, and each change of it."""

from __future__ import annotations

import pytest

from searchcrawl.store import states
from searchcrawl.store.documents import document_events
from searchcrawl.store.states import BatchState, DocumentState, FetchState, Transition
from searchcrawl.store.urls import fetch_events


def test_sets_when_derived_then_they_are_those_of_the_indexes() -> None:
    assert {1, 2, 5, 6} == states.PENDING
    assert {1, 2, 3, 4, 7} == states.INDEXABLE
    assert {1, 2, 3, 4, 6} == states.AT_HAND


@pytest.mark.parametrize(
    ("kind", "transitions"),
    [
        (FetchState, fetch_events.TRANSITIONS),
        (DocumentState, document_events.TRANSITIONS),
        (BatchState, states.BATCH_TRANSITIONS),
    ],
)
def test_transitions_when_read_then_each_state_is_entered_and_all_are_of_one_kind(
    kind: type[FetchState | DocumentState | BatchState], transitions: tuple[Transition, ...]
) -> None:
    assert {transition.after for transition in transitions} == set(kind)
    assert all(isinstance(state, kind) for transition in transitions for state in transition.before)
    assert all(state.facts.title and state.facts.meaning.endswith(".") for state in kind)
