"""The table of codes says of each what it means and what follows from it (C7, J2)."""

from __future__ import annotations

import pickle

import pytest

from searchcrawl import codes
from searchcrawl.codes import Code, CodeClass, describe_code, facts_of
from searchcrawl.counters import COUNTS
from searchcrawl.sources.fetch_tables import Fetch


@pytest.mark.parametrize("code", list(Code))
def test_describe_when_a_code_is_ours_then_it_is_said_in_words(code: Code) -> None:
    described = describe_code(code)

    assert described.startswith(f"{int(code)}, ") or code is Code.NOT_FETCHED
    assert len(described) > 8
    assert code.facts.meaning.endswith(".")


@pytest.mark.parametrize(
    ("status", "described"), [(404, "404 Not Found"), (200, "200 OK"), (799, "799, a status that HTTP does not name")]
)
def test_describe_when_a_code_is_a_status_then_with_its_name(status: int, described: str) -> None:
    assert describe_code(status) == described


def test_code_when_pickled_then_it_is_the_same_member() -> None:
    assert pickle.loads(pickle.dumps(Code.EMPTY)) is Code.EMPTY  # our own bytes


def test_sets_when_derived_then_they_are_what_the_requirements_say() -> None:
    assert {955, 961, 1004} == codes.REFUSED
    assert {909, 910, 964} == codes.COPIES
    assert {953, 954} == codes.REDIRECTS
    assert {200, 909, 956, 964} == codes.WITH_DOCUMENT
    assert {200, 909, 910, 911, 952, 956, 964, 1010} == codes.READ
    assert {951, 952, 953, 954, 955, 967, 1004} == codes.REMOVING
    assert {902, 905, 906, 907, 962} == codes.UNREACHABLE
    assert {959, 965, 966} == codes.WARNED


@pytest.mark.parametrize(
    ("code", "rule", "refusal", "failure"),
    [
        (951, "Disallow: /", True, False),
        (951, codes.ROBOTS_UNAVAILABLE, False, True),
        (955, "scope.include_hosts", True, False),
        (200, None, False, False),
        (304, None, False, False),
        (404, None, False, True),
        (902, None, False, True),
        (952, "noindex", False, False),
        # A visit without a document is no copy: a server has sent the number as its status.
        (909, None, False, True),
    ],
)
def test_failure_when_a_rule_refused_then_it_is_none(code: int, rule: str | None, refusal: bool, failure: bool) -> None:
    assert (codes.is_refusal(code, rule), codes.is_failure(code, rule)) == (refusal, failure)


@pytest.mark.parametrize("status", [408, 425, 429, 500, 503, 599])
def test_status_when_it_may_pass_then_the_visit_is_tried_again(status: int) -> None:
    assert codes.is_retried(status)


@pytest.mark.parametrize("status", [200, 304, 404, 410, 451, 600, 902, 959])
def test_status_when_it_will_not_pass_then_the_visit_is_not_tried_again(status: int) -> None:
    assert not codes.is_retried(status)


def test_facts_when_a_limit_ends_the_visit_then_it_is_a_key_of_fetch() -> None:
    assert {facts_of(code).limit for code in Code} - {None} == {"max_bytes", "max_redirects"} <= set(Fetch.model_fields)


def test_facts_when_a_rule_decided_then_the_step_of_explain_is_that_of_the_class_unless_the_code_has_its_own() -> None:
    steps = {code: facts_of(code).step for code in (952, 911, 956, 1010, 951, 960, 404)}

    assert steps == {
        952: "keep", 911: "content", 956: "display", 1010: "display", 951: "answer", 960: "answer", 404: "answer",
    }  # fmt: skip


def test_facts_when_conversion_fails_then_it_is_counted_apart() -> None:
    assert facts_of(903).counters == ("conversion_failures",)
    assert facts_of(404).counters == ()
    assert facts_of(404).kind is CodeClass.FAILURE


def test_counters_when_a_code_adds_to_them_then_they_are_those_of_a_run() -> None:
    assert {name for code in (*Code, 200, 304, 404, 500) for name in facts_of(code).counters} <= set(COUNTS)
