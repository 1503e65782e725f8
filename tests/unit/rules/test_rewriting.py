from __future__ import annotations

import fnmatch
import logging
import random
import sys
from collections.abc import Callable

import pytest

from searchcrawl.exceptions import ConfigurationError, InvalidUrl
from searchcrawl.items import Link
from searchcrawl.plugins import Rewritten
from searchcrawl.rules.rewriting import (
    MAX_DISPLAY_BYTES,
    SESSION_NAMES,
    DisplayMap,
    Identity,
    PatternRewriter,
    PluginRewriter,
    Rewriting,
    parse_replacement,
)

SITE = "http://site.test/"


class Plugin:
    """Answers what it is told to; its errors are raised."""

    def __init__(self, answer: Callable[[str], object]) -> None:
        self.answer = answer
        self.calls: list[tuple[str, str | None]] = []

    def open(self, source: str) -> None:
        self.calls.append((f"open {source}", None))

    def rewrite(self, url: str, *, referrer: str | None) -> Rewritten | None:
        self.calls.append((url, referrer))
        return self.answer(url)  # type: ignore[return-value]  # some answers are wrong

    def close(self) -> None:
        self.calls.append(("close", None))


def plugged(answer: Callable[[str], object], *names: str) -> Rewriting:
    tested = Rewriting([PluginRewriter(lambda: Plugin(answer), "mine:Plugin", key="rewrite[0]")], Identity(names))
    tested.open("demo")
    return tested


def patterns(*pairs: tuple[str, str]) -> Rewriting:
    rules = [PatternRewriter(match, to, key=f"rewrite[{number}]") for number, (match, to) in enumerate(pairs)]
    return Rewriting(rules, Identity(["sid"]))


@pytest.mark.parametrize(
    ("match", "replace", "found", "expected"),
    [
        (r"^http://old\.test/(.*)$", r"http://site.test/\1", "http://old.test/a?b", f"{SITE}a?b"),
        (r"/(\w+)-(\w+)", r"/\2/\1", f"{SITE}a-b", f"{SITE}b/a"),
        ("x", "y", f"{SITE}x/x", f"{SITE}y/y"),
        (r"(print/)?page", r"\1sheet", f"{SITE}page", f"{SITE}sheet"),
        ("page", r"\0\\", f"{SITE}page", f"{SITE}page/"),
        ("(?i)ABC", "", f"{SITE}abcd", f"{SITE}d"),
        ("nothing", "x", f"{SITE}a", f"{SITE}a"),
    ],
)
def test_pattern_when_it_matches_then_each_match_is_replaced(
    match: str, replace: str, found: str, expected: str
) -> None:
    named = patterns((match, replace)).normalise(found)

    assert (named.url, named.found_as, named.code) == (expected, None if found == expected else found, 0)


def test_patterns_when_several_then_each_sees_what_the_one_before_made_and_then_what_is_stripped() -> None:
    tested = patterns(("/a$", "/b?sid=1"), ("/b", "/c"))

    named = tested.normalise(f"{SITE}a")

    assert (named.url, named.found_as) == (f"{SITE}c", f"{SITE}a")
    assert tested.normalise(f"{SITE}x?sid=2")[:3] == (f"{SITE}x", None, None)


@pytest.mark.parametrize(
    ("replace", "code", "error"), [("", 955, None), ("mailto:x", 1004, "rewritten to not an http or https URL")]
)
def test_pattern_when_no_url_is_left_then_discarded_by_it(replace: str, code: int, error: str | None) -> None:
    named = patterns(("^.*$", replace)).normalise(f"{SITE}a?sid=1")

    assert (named.url, named.code, named.decision.key, named.decision.rule) == (
        f"{SITE}a",
        code,
        "rewrite[0].match",
        "^.*$",
    )
    assert (named.error or "").startswith(error or "")


def test_replacement_when_an_escape_is_unknown_then_refused() -> None:
    with pytest.raises(ValueError, match="q"):
        parse_replacement(r"\q")


def test_plugin_when_asked_then_it_hears_of_the_run_the_link_and_its_page() -> None:
    made = Plugin(lambda url: Rewritten(url.replace("site", "inner"), url))
    tested = Rewriting([PluginRewriter(lambda: made, "mine:Plugin")])

    tested.open("demo")
    named = tested.normalise(f"{SITE}a", f"{SITE}page")
    tested.close()

    assert made.calls == [("open demo", None), (f"{SITE}a", f"{SITE}page"), ("close", None)]
    assert named[:4] == ("http://inner.test/a", f"{SITE}a", f"{SITE}a", 0)


@pytest.mark.parametrize(
    ("display", "kept"),
    [(None, None), ("", None), (f"{SITE}A", None), ("https://Shown.test:443/x", "https://shown.test/x"), ("no", "no")],
)
def test_plugin_when_it_sets_a_display_url_then_kept_unless_it_says_nothing(
    display: str | None, kept: str | None
) -> None:
    named = plugged(lambda url: Rewritten(f"{SITE}A", display)).normalise(f"{SITE}a")

    assert (named.url, named.display) == (f"{SITE}A", kept)


def test_plugin_when_it_answers_none_then_the_link_is_discarded_by_it() -> None:
    named = plugged(lambda url: None, "sid").normalise(f"{SITE}a?sid=1")

    assert (named.url, named.code) == (f"{SITE}a", 955)
    assert (named.decision.key, named.decision.rule) == ("rewrite[0].plugin", "discarded by plugin mine:Plugin")


def _raise(url: str) -> object:
    raise LookupError(f"no\nsuch {url}")


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (_raise, f"mine:Plugin: LookupError('no\\nsuch {SITE}a')"),
        (lambda url: url, "mine:Plugin: AttributeError"),
        (lambda url: sys.exit(3), "mine:Plugin: SystemExit(3)"),
        (lambda url: Rewritten(3), "mine:Plugin: TypeError"),  # type: ignore[arg-type]
    ],
)
def test_plugin_when_it_fails_then_that_link_alone_is_discarded_counted_and_logged(
    answer: Callable[[str], object], error: str, caplog: pytest.LogCaptureFixture
) -> None:
    tested = plugged(lambda url: answer(url) if url.endswith("/a") else Rewritten(url))

    with caplog.at_level(logging.WARNING):
        failed, good = tested.normalise(f"{SITE}a"), tested.normalise(f"{SITE}b")

    assert (failed.code, failed.decision.rule) == (955, "error in plugin mine:Plugin")
    assert (failed.error or "").startswith(error)
    assert (good.url, good.code) == (f"{SITE}b", 0)
    assert tested.plugin_errors == {"mine:Plugin": 1}
    assert [record.getMessage()[:44] for record in caplog.records] == [f"plugin mine:Plugin failed, {SITE}a"[:44]]


def test_plugin_when_it_fails_again_and_again_then_the_log_stays_short(caplog: pytest.LogCaptureFixture) -> None:
    tested = plugged(_raise)

    with caplog.at_level(logging.WARNING):
        for number in range(100):
            tested.normalise(f"{SITE}{number}")
        tested.close()

    assert len(caplog.records) == 21
    assert "failed at 100 links" in caplog.records[-1].getMessage()


def test_open_when_a_plugin_cannot_begin_then_those_before_it_are_closed_and_the_source_refused() -> None:
    first = Plugin(Rewritten)
    broken = PluginRewriter(_raise_on_make, "mine:Broken", file="sources/x.toml", key="rewrite[1]")
    tested = Rewriting([PluginRewriter(lambda: first, "mine:Plugin"), broken])

    with pytest.raises(ConfigurationError) as caught:
        tested.open("demo")

    assert (caught.value.file, caught.value.key) == ("sources/x.toml", "rewrite[1].plugin")
    assert first.calls == [("open demo", None), ("close", None)]


def _raise_on_make() -> Plugin:
    raise OSError("no licence")


def test_links_when_several_become_one_then_it_is_followed_if_any_of_them_is() -> None:
    links = [Link(f"{SITE}a?sid=1", True), Link(f"{SITE}b"), Link(f"{SITE}a?sid=2", False), Link(f"{SITE}a", True)]

    kept, discarded = patterns(("/c", "/d")).normalise_links(links)

    assert kept == [Link(f"{SITE}a", False), Link(f"{SITE}b")]
    assert discarded == []


PAIRS = (
    ("http://intra", "https://www.example.com"),
    ("http://intra/docs/", "https://docs.example.com/"),
    ("http://INTRA:80/docs/old", "https://archive.example.com/o"),
)


@pytest.mark.parametrize("pairs", [PAIRS, PAIRS[::-1]])
@pytest.mark.parametrize(
    ("access", "display"),
    [
        ("http://intra/", "https://www.example.com/"),
        ("http://intra/a?b=c", "https://www.example.com/a?b=c"),
        ("http://intra/docs/x/y.html", "https://docs.example.com/x/y.html"),
        ("http://intra/docs/older.html", "https://archive.example.com/oer.html"),
        ("http://intranet/", "http://intranet/"),
        ("http://intra:8080/docs/", "http://intra:8080/docs/"),
        ("https://intra/", "https://intra/"),
    ],
)
def test_display_url_when_prefixes_match_then_the_longest_decides_in_any_order(
    pairs: tuple[tuple[str, str], ...], access: str, display: str
) -> None:
    assert DisplayMap(pairs).resolve(access) == display


def test_display_url_when_an_index_could_not_hold_it_then_invalid_and_the_access_url_is_shown() -> None:
    display = DisplayMap([("http://intra/", "https://www.example.com/" + "x" * MAX_DISPLAY_BYTES)])

    with pytest.raises(InvalidUrl, match="32766"):
        display.resolve("http://intra/a")
    assert display.show("http://intra/a") == "http://intra/a"
    assert display.resolve("http://other/") == "http://other/"


HOST = "http://site.test"


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
    tested = Identity(SESSION_NAMES)

    stripped = tested.strip(HOST + found)

    assert stripped == HOST + identity
    assert tested.strip(stripped) == stripped


def test_rule_when_a_parameter_is_stripped_then_its_name_as_written() -> None:
    tested = Identity(["sid", "track*"])

    rules = [tested.find_name(f"{HOST}/{rest}") for rest in ("?a=1&TRACKER=2", ";sid=1?tracks", "?side=1")]

    assert rules == ["track*", "sid", ""]


def test_identity_when_no_name_is_given_then_nothing_is_stripped() -> None:
    url = f"{HOST}/x;jsessionid=1?utm_source=2"

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
    assert Identity(SESSION_NAMES, routes=True).strip(HOST + found) == HOST + identity
