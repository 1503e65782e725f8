from __future__ import annotations

import fnmatch
import random

import pytest

from searchcrawl.rules.identity import DEFAULT_NAMES, Identity

SITE = "http://site.test"


@pytest.mark.parametrize(
    ("found", "identity"),
    [
        ("/x;jsessionid=0AB!1", "/x"),
        ("/x;JSESSIONID=1?b=2", "/x?b=2"),
        ("/a;jsessionid=2/b;v=1;cfid=3", "/a/b;v=1"),
        ("/;jsessionid", "/"),
        ("/x;%6asessionid=2", "/x"),
        ("/x?b=2&PHPSESSID=1&a=3", "/x?b=2&a=3"),
        ("/x?phpsessid=1&c=3", "/x?c=3"),
        ("/x?CFID=1&CFTOKEN=2", "/x"),
        ("/x?ASPSESSIONIDQQ=1&y", "/x?y"),
        ("/x?utm_source=1&utm_medium=2&q", "/x?q"),
        ("/x?a=1;gclid=3", "/x?a=1"),
        ("/x?%6Asessionid=3", "/x"),
        ("/x?&a=1&gclid=1", "/x?&a=1"),
        ("/x?fbclid=1&&b", "/x?&b"),
        # These stay as they are, to the last character.
        ("/x?", "/x?"),
        ("/x?q=jsessionid", "/x?q=jsessionid"),
        ("/x?q=%20&xjsessionid=1&jsessionidx=2;cfid2", "/x?q=%20&xjsessionid=1&jsessionidx=2;cfid2"),
        ("/jsessionid=1/x;v=%2F", "/jsessionid=1/x;v=%2F"),
        ("/x?utm", "/x?utm"),
        # The name of a file in an archive.
        ("/get?f=pack.zip!/a&utm_source=1.txt", "/get?f=pack.zip!/a&utm_source=1.txt"),
        ("/get?sid=1&gclid=2&f=Pack.ZIP!/in.zip!/a;cfid=1", "/get?sid=1&f=Pack.ZIP!/in.zip!/a;cfid=1"),
        ("/p.tar.gz!/a;jsessionid=1.txt", "/p.tar.gz!/a;jsessionid=1.txt"),
        ("/get?utm_source=x.zip!/a;cfid=1", "/get"),
        ("/?utm_aa.gz!/x;cfid=.gz!/b", "/?utm_aa.gz!/x"),
        ("/go?to=/app!/home&utm_source=1", "/go?to=/app!/home"),
    ],
)
def test_identity_when_parameters_are_stripped_then_the_rest_stays_in_its_order(found: str, identity: str) -> None:
    tested = Identity(DEFAULT_NAMES)

    stripped = tested.strip(SITE + found)

    assert stripped == SITE + identity
    assert tested.strip(stripped) == stripped


def test_rule_when_a_parameter_is_stripped_then_its_name_as_written() -> None:
    tested = Identity(["sid", "track*"])

    rules = [tested.find_name(f"{SITE}/{rest}") for rest in ("?a=1&TRACKER=2", ";sid=1?tracks", "?side=1")]

    assert rules == ["track*", "sid", ""]


def test_identity_when_no_name_is_given_then_nothing_is_stripped() -> None:
    url = f"{SITE}/x;jsessionid=1?utm_source=2"

    assert Identity().strip(url) == url


def test_name_when_it_has_several_stars_then_is_stripped_as_by_a_shell() -> None:
    chance = random.Random(3)
    for _ in range(3_000):
        name = "".join(chance.choices("ab*", k=chance.randint(1, 6)))
        found = "".join(chance.choices("ab", k=chance.randint(1, 6)))
        stripped = Identity([name]).strip(f"http://a.test/?{found}=1&c=2")

        assert (f"{found}=1" not in stripped) == fnmatch.fnmatchcase(found, name), (name, found)


@pytest.mark.parametrize(
    ("found", "identity"),
    [
        ("/x?utm_source=1#/a?utm_source=2", "/x#/a?utm_source=2"),
        ("/x?a=1&gclid=1#/b;cfid=1", "/x?a=1#/b;cfid=1"),
        ("/#!jsessionid", "/#!jsessionid"),
    ],
)
def test_identity_when_a_url_has_a_route_then_parameters_are_stripped_before_it(found: str, identity: str) -> None:
    assert Identity(DEFAULT_NAMES, routes=True).strip(SITE + found) == SITE + identity
