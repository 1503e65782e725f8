"""What ``selftest`` calls a difference: each value of a row, a document or a record, and what must never be."""

from __future__ import annotations

from typing import Any

import pytest

from searchcrawl.selftest.final_state import FinalState, differences, inconsistencies
from searchcrawl.store.states import DocumentState, FetchState

URL = "http://a.test/"
ROW = {"fetch_state": 2, "code": 200, "in_index": True, "document_state": DocumentState.PRESENT.value}


def state(**given: Any) -> FinalState:
    values: dict[str, Any] = {"rows": {URL: ROW}, "index": {URL: {"title": "a"}}, "cache": {URL: "00"}}
    return FinalState(**{**values, **given})


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, []),
        ({"rows": {}}, [f"row {URL}: missing"]),
        ({"rows": {URL: {**ROW, "code": 404}}}, [f"row {URL}: code 200 expected, 404 found"]),
        ({"index": {URL: {"title": "b"}}}, [f"document {URL}: title 'a' expected, 'b' found"]),
        ({"index": {URL: {"title": "a"}, "b": {}}}, ["document b: not expected"]),
        ({"cache": {URL: "01"}}, [f"record {URL}: digest '00' expected, '01' found"]),
    ],
)
def test_differences_when_a_value_differs_then_there_is_a_line_for_it(
    given: dict[str, Any], expected: list[str]
) -> None:
    assert differences(state(), state(**given)) == expected


def test_differences_when_records_may_be_given_up_then_the_cache_is_left_out() -> None:
    assert differences(state(), state(cache={}), with_cache=False) == []


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, []),
        ({"index": {}}, [f"in rows or index only: {URL}"]),
        ({"rows": {URL: {**ROW, "fetch_state": FetchState.FETCHING.value}}}, [f"not settled: {URL}"]),
        ({"rows": {URL: {**ROW, "document_state": DocumentState.SENDING.value}}}, [f"on its way: {URL}"]),
        # It waits for a person.
        ({"rows": {URL: {**ROW, "document_state": DocumentState.QUARANTINED.value}}}, []),
        ({"broken": ("document a: in the index twice",)}, ["document a: in the index twice"]),
    ],
)
def test_inconsistencies_when_a_run_left_something_then_it_is_named(given: dict[str, Any], expected: list[str]) -> None:
    assert inconsistencies(state(**given)) == expected
