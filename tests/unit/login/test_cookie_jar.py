"""Cookies stay with the origins of the source, and within limits (C10, X-N7, X-N10)."""

from __future__ import annotations

import pytest

from searchcrawl.login.cookie_jar import MAX_COOKIES, MAX_HEADER_BYTES, CookieJar

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


def test_jar_when_cleared_then_is_empty_and_given_cookies_go_to_their_origin() -> None:
    given = jar(WWW + "/", "a=1")
    given.clear()
    given.set(WWW + "/deep/page", "session", "s")

    assert (given.header(WWW + "/"), given.header(PLAIN + "/"), given.header(SSO + "/")) == ("session=s", "", "")


def test_cookie_when_shown_then_its_value_is_not() -> None:
    kept = jar(WWW + "/", "a=s3cret")

    assert "s3cret" not in repr(list(kept._cookies.values()))
