"""Cookies stay with the origins of the source, and within limits (C10, X-N7, X-N10)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from searchcrawl import clock
from searchcrawl.kinds.web.login.cookie_jar import MAX_COOKIES, MAX_COOKIES_IN_ALL, MAX_HEADER_BYTES, CookieJar
from searchcrawl.render.login_steps import BrowserCookie

WWW, SSO, PLAIN, PORT = (
    "https://www.acme.test",
    "https://sso.acme.test",
    "http://www.acme.test",
    "https://www.acme.test:8443",
)
ORIGINS = (WWW, SSO, PLAIN, PORT, "http://127.0.0.1:8000", "http://127.0.0.1:9000")


def jar(url: str, *headers: str) -> CookieJar:
    """A jar that took these headers of the answer of ``url``."""
    made = CookieJar(ORIGINS)
    made.store(url, headers)
    return made


@pytest.mark.parametrize(
    ("set_by", "header", "asked", "sent"),
    [
        (WWW + "/", "a=1", WWW + "/x/y?z", "a=1"),
        (WWW + "/x/y", "a=1", WWW + "/x/z", "a=1"),
        (WWW + "/x/y", "a=1", WWW + "/xz", ""),
        (WWW + "/x/y", "a=1; path=/", WWW + "/z", "a=1"),
        (WWW + "/", "a=b=c; HttpOnly; SameSite=Lax", WWW + "/", "a=b=c"),
        (WWW + "/", ' a = "q" ', WWW + "/", 'a="q"'),
        # Another host, port or scheme
        (WWW + "/", "a=1", SSO + "/", ""),
        (WWW + "/", "a=1", PLAIN + "/", ""),
        (PLAIN + "/", "a=1", WWW + "/", "a=1"),
        (WWW + "/", "a=1", PORT + "/", ""),
        ("http://127.0.0.1:8000/", "a=1", "http://127.0.0.1:9000/", ""),
        # A domain
        (SSO + "/", "a=1; domain=.ACME.test", WWW + "/", "a=1"),
        (SSO + "/", "a=1; Domain=acme.test", PLAIN + "/", ""),
        (SSO + "/", "a=1; Domain=acme.test", "https://other.acme.test/", ""),
        (SSO + "/", "a=1; Domain=test", SSO + "/", ""),
        (SSO + "/", "a=1; Domain=www.acme.test", WWW + "/", ""),
        (SSO + "/", "a=1; Domain=me.test", SSO + "/", ""),
        ("http://127.0.0.1:8000/", "a=1; Domain=0.0.1", "http://127.0.0.1:8000/", ""),
        # Prefixes and Secure
        (PLAIN + "/", "a=1; Secure", PLAIN + "/", ""),
        (WWW + "/", "__Host-a=1; Secure; Path=/", WWW + "/", "__Host-a=1"),
        (WWW + "/", "__Host-a=1; Secure; Path=/; Domain=acme.test", WWW + "/", ""),
        (PLAIN + "/", "__Secure-a=1", PLAIN + "/", ""),
        # Age
        (WWW + "/", "a=1; max-age=60", WWW + "/", "a=1"),
        (WWW + "/", "a=1; max-age=99999999999999999999", WWW + "/", "a=1"),
        (WWW + "/", "a=1; Max-Age=0", WWW + "/", ""),
        (WWW + "/", "a=1; Expires=Thu, 01 Jan 1970 00:00:00 GMT", WWW + "/", ""),
        (WWW + "/", "a=1; Expires=Thu, 01 Jan 2970 00:00:00 GMT", WWW + "/", "a=1"),
        (WWW + "/", "a=1; Expires=whenever", WWW + "/", "a=1"),
        # No cookies
        (WWW + "/", "a", WWW + "/", ""),
        (WWW + "/", "=1", WWW + "/", ""),
        (WWW + "/", "a=\x01", WWW + "/", ""),
        (WWW + "/", "a=" + "x" * 5000, WWW + "/", ""),
        ("https://elsewhere.test/", "a=1; Domain=elsewhere.test", WWW + "/", ""),
    ],
)
def test_cookie_when_taken_then_goes_only_where_it_belongs(set_by: str, header: str, asked: str, sent: str) -> None:
    assert jar(set_by, header).header(asked) == sent


def test_cookie_when_set_again_or_deleted_then_the_last_word_counts() -> None:
    changed = jar(WWW + "/", "a=1", "b=1", "a=2")
    deleted = jar(WWW + "/", "a=1", "b=1", "a=; Max-Age=-1")

    assert (changed.header(WWW + "/"), deleted.header(WWW + "/")) == ("a=2; b=1", "b=1")


def test_cookies_when_several_fit_then_the_longest_path_is_first() -> None:
    assert jar(WWW + "/a/b", "x=1; Path=/", "y=1; Path=/a", "z=1").header(WWW + "/a/c") == "y=1; z=1; x=1"


def test_jar_when_flooded_then_keeps_within_its_limits() -> None:
    flooded = CookieJar(ORIGINS)
    for number in range(300):
        flooded.store(WWW + "/", [f"c{number}={'x' * 200}", f"d{number}=1"])
    at_once = jar(WWW + "/", *(f"c{number}=1" for number in range(1000)))

    assert len(flooded.header(WWW + "/")) <= MAX_HEADER_BYTES
    assert flooded.header(WWW + "/").count("=") <= MAX_COOKIES
    assert at_once.header(WWW + "/").count("=") == 50


def logged_in(*headers: str, url: str = WWW + "/login") -> CookieJar:
    """A jar after a login that set these cookies."""
    made = CookieJar(ORIGINS)
    made.store(url, headers, of_login=True)
    return made


def names(sent: str) -> list[str]:
    return [pair.partition("=")[0] for pair in sent.split("; ")]


@pytest.mark.parametrize(
    ("flood", "count"),
    [
        ("viewed{n}=1; Path=/", 500),
        ("viewed{n}=" + "x" * 4000 + "; Path=/", 200),
        # Longer paths are sent first.
        ("viewed{n}=" + "x" * 200 + "; Path=/topics", 300),
        ("viewed{n}=1; Path=/topics; Max-Age=60", 500),
    ],
)
def test_session_when_pages_flood_the_jar_then_is_still_sent(flood: str, count: int) -> None:
    made = logged_in("session=s; Path=/")
    for number in range(count):
        made.store(WWW + "/topics/1", [flood.format(n=number)])

    sent = made.header(WWW + "/topics/2")

    assert "session=s" in sent.split("; ")
    assert len(names(sent)) <= MAX_COOKIES
    assert len(sent) <= MAX_HEADER_BYTES


def test_session_when_a_page_set_it_before_the_flood_then_is_still_sent_and_so_is_the_last() -> None:
    made = logged_in()
    made.store(WWW + "/first", ["session=s; Path=/"])
    for number in range(300):
        made.store(WWW + "/", [f"viewed{number}=1; Path=/"])

    sent = names(made.header(WWW + "/"))

    assert (sent[0], sent[-1], len(sent)) == ("session", "viewed299", MAX_COOKIES)


def test_session_when_it_is_turned_during_the_flood_then_the_turned_one_is_sent() -> None:
    made = logged_in("session=s; Path=/")
    for number in range(300):
        made.store(WWW + "/", [f"viewed{number}=1; Path=/", f"session=s{number}; Path=/"])

    assert "session=s299" in made.header(WWW + "/").split("; ")


def test_session_when_the_login_itself_floods_then_the_first_cookies_stay() -> None:
    made = logged_in("session=s; Path=/")
    for number in range(300):
        made.store(WWW + "/login", [f"step{number}=1; Path=/"], of_login=True)
    made.store(WWW + "/", ["viewed=1; Path=/"])

    sent = names(made.header(WWW + "/"))

    assert (sent[0], len(sent)) == ("session", MAX_COOKIES)


@pytest.mark.parametrize("place", [0, 60, 120])
def test_session_when_one_answer_sets_very_many_cookies_then_is_still_sent(place: int) -> None:
    flood = [f"viewed{number}=1; Path=/" for number in range(120)]
    by_login = logged_in(*flood[:place], "session=s; Path=/", *flood[place:])
    by_page = logged_in("session=s; Path=/")
    by_page.store(WWW + "/", [*flood[:place], "session=turned; Path=/", *flood[place:]])

    assert "session=s" in by_login.header(WWW + "/").split("; ")
    assert "session=turned" in by_page.header(WWW + "/").split("; ")


def test_session_when_it_is_hidden_from_scripts_then_others_go_first() -> None:
    for of_login in (True, False):
        made = logged_in(*(f"step{number}=1; Path=/" for number in range(MAX_COOKIES - 1)))
        if not of_login:
            made = logged_in()
            for number in range(MAX_COOKIES - 1):
                made.store(WWW + "/", [f"step{number}=1; Path=/"])
        made.store(WWW + "/", ["session=s; Path=/; HttpOnly"], of_login=of_login)
        for number in range(30):
            made.store(WWW + "/", [f"late{number}=1; Path=/"], of_login=of_login)

        assert "session=s" in made.header(WWW + "/").split("; ")


@pytest.mark.parametrize("flooding", [SSO, PLAIN, PORT, "https://forum.acme.test"])
@pytest.mark.parametrize("attributes", ["; Path=/", "; Path=/; Domain=acme.test"])
def test_session_when_another_origin_floods_the_jar_then_is_still_sent(flooding: str, attributes: str) -> None:
    for made in (logged_in("session=s; Path=/"), logged_in()):
        made.store(WWW + "/", ["session=s; Path=/"])
        for number in range(300):
            made.store(flooding + "/", [f"c{number}=1{attributes}", f"d{number}={'x' * 900}{attributes}"])

        assert "session=s" in made.header(WWW + "/").split("; ")


@pytest.mark.parametrize("other", [SSO, PLAIN, PORT])
@pytest.mark.parametrize(
    "header",
    [
        "session=theirs; Path=/",
        "session=theirs; Path=/; Domain=acme.test",
        "session=theirs; Path=/; Domain=www.acme.test",
        "session=theirs; Path=/members; Domain=acme.test",
        "session=; Path=/; Max-Age=0",
        "session=; Path=/; Max-Age=0; Domain=acme.test",
    ],
)
@pytest.mark.parametrize("own", ["session=s; Path=/", "session=s; Path=/; Domain=acme.test"])
def test_session_when_another_origin_sets_its_name_then_stays_what_it_was(own: str, header: str, other: str) -> None:
    made = logged_in(own)

    made.store(other + "/", [header])

    assert made.header(WWW + "/members/1") == "session=s"


def test_origins_when_they_share_a_cookie_then_each_gets_the_last_that_it_set_itself() -> None:
    made = logged_in("session=s; Path=/; Domain=acme.test", url=SSO + "/login")

    made.store(WWW + "/", ["session=turned; Path=/; Domain=acme.test", "mark=1; Domain=acme.test"])

    assert made.header(WWW + "/") == "session=turned; mark=1"
    assert made.header(SSO + "/") == "session=s; mark=1"


def test_ports_when_they_set_the_same_name_then_each_keeps_its_own() -> None:
    made = CookieJar(ORIGINS)
    for port in (8000, 9000):
        made.store(f"http://127.0.0.1:{port}/", [f"session=of-{port}"])

    assert [made.header(f"http://127.0.0.1:{port}/") for port in (8000, 9000)] == ["session=of-8000", "session=of-9000"]


def test_jar_when_many_origins_flood_it_then_it_stays_small_and_logins_stay() -> None:
    origins = [f"https://h{number}.acme.test" for number in range(200)]
    made = CookieJar([WWW, *origins])
    made.store(WWW + "/login", ["session=s; Path=/"], of_login=True)
    for origin in origins:
        for _ in range(3):
            made.store(origin + "/", [f"c{number}={'x' * 100}; Path=/" for number in range(50)])
            made.store(origin + "/", [f"d{number}={'x' * 100}; Path=/" for number in range(50)])

    assert sum(made.header(origin + "/").count("=") for origin in origins) <= MAX_COOKIES_IN_ALL
    assert made.header(WWW + "/") == "session=s"


def test_jar_when_cookies_have_expired_then_their_places_are_free(monkeypatch: pytest.MonkeyPatch) -> None:
    now = clock.now()
    made = logged_in("session=s; Path=/")
    for number in range(150):
        made.store(WWW + "/", [f"old{number}=1; Path=/; Max-Age=60"])
    monkeypatch.setattr(clock, "now", lambda: now + timedelta(hours=1))
    for number in range(MAX_COOKIES - 1):
        made.store(WWW + "/", [f"new{number}=1; Path=/"])

    assert names(made.header(WWW + "/")) == ["session", *(f"new{number}" for number in range(MAX_COOKIES - 1))]


def test_jar_when_cleared_then_is_empty_and_given_cookies_go_to_their_origin() -> None:
    given = jar(WWW + "/", "a=1")
    given.clear()
    given.set(WWW + "/deep/page", "session", "s")

    assert (given.header(WWW + "/"), given.header(PLAIN + "/"), given.header(SSO + "/")) == ("session=s", "", "")


def test_cookie_when_shown_then_its_value_is_not() -> None:
    kept = jar(WWW + "/", "a=s3cret")

    assert "s3cret" not in repr(vars(kept))


def of_browser(name: str, value: str, domain: str = "a.test", **more: Any) -> BrowserCookie:
    return BrowserCookie(name, value, domain, "/", None, more.get("https", False), more.get("http_only", False))


def test_l13_browser_when_it_opens_a_page_then_it_has_the_cookies_of_the_login_but_for_other_ports() -> None:
    jar = CookieJar(["http://a.test", "http://a.test:8080", "https://b.test"])
    jar.store("http://a.test/", ["sid=1; HttpOnly; SameSite=Strict", "all=2; Domain=a.test"], of_login=True)
    jar.store("https://b.test/", ["other=3"], of_login=True)

    given = {cookie.name: cookie for cookie in jar.list_for_page("http://a.test/page")}
    elsewhere = {cookie.name for cookie in jar.list_for_page("http://a.test:8080/page")}

    assert (given["sid"].same_site, given["sid"].http_only, given["sid"].domain) == ("Strict", True, "a.test")
    assert (given["all"].domain, given["other"].https) == (".a.test", True)
    assert elsewhere == {"other"}
    assert jar.list_pairs("http://a.test:8080/x", of_port=False) == {"sid=1", "all=2"}
    assert jar.list_pairs("http://a.test/x", of_port=False) == frozenset()
    assert jar.list_pairs("http://a.test/x", of_port=True) == {"sid=1", "all=2"}
    assert jar.list_pairs("http://a.test:8080/x", of_port=True) == frozenset()


def test_l13_browser_when_a_page_is_closed_then_what_it_changed_of_its_own_origin_is_kept_and_nothing_else() -> None:
    jar = CookieJar(["http://a.test", "http://b.test"])
    jar.store("http://a.test/", ["sid=1"], of_login=True)
    after = [
        of_browser("sid", "2"),
        of_browser("new", "3"),
        of_browser("theirs", "4", "b.test"),
        of_browser("x", "5", "c.test"),
    ]

    jar.take_of_page("http://c.test/page", after)
    # What a page took away the login has still.
    jar.take_of_page("http://a.test/page", [])
    untouched = jar.header("http://a.test/")
    jar.take_of_page("http://a.test/page", after)

    assert untouched == "sid=1"
    assert jar.header("http://a.test/") == "sid=2; new=3"
    assert jar.header("http://b.test/") == ""
