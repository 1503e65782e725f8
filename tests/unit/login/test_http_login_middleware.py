"""Where Basic and Digest credentials go, and that a wrong password is not sent for ever (C10, X-N7)."""

from __future__ import annotations

import pytest
from scrapy import Request

from searchcrawl.http.visit_end import VisitEnded
from searchcrawl.login.http_login_middleware import BasicLogin, DigestLogin
from searchcrawl.sources.fetch_tables import Login
from tests.fetch_requests import answer, claim, end_of, visit

ORIGINS = frozenset({"https://site.test", "http://site.test", "https://other.test"})
CHALLENGE = {"WWW_Authenticate": 'Digest realm="r", nonce="{nonce}", qop="auth", stale={stale}'}


def basic() -> BasicLogin:
    return BasicLogin(ORIGINS, Login(type="basic", username="me", password="open"))


def digest() -> DigestLogin:
    return DigestLogin(ORIGINS, Login(type="digest", username="me", password="open"))


def asked(url: str, row: str) -> Request:
    return visit(url, row=claim(row))


def challenged(request: Request, nonce: str = "n", stale: str = "false") -> dict[str, str]:
    return {"WWW_Authenticate": CHALLENGE["WWW_Authenticate"].format(nonce=nonce, stale=stale)}


def challenge(login: DigestLogin) -> Request:
    """The request that answers a first challenge."""
    first = asked("https://site.test/a", "https://site.test/a")
    again = login.process_response(first, answer(first, 401, **challenged(first)))
    assert isinstance(again, Request)
    return again


@pytest.mark.parametrize(
    ("request_", "sent"),
    [
        (asked("https://site.test/a", "https://site.test/a"), True),
        (asked("https://site.test/b", "https://site.test/a"), True),
        # Redirected from another origin, from https to http, to a stranger
        (asked("https://other.test/", "https://site.test/a"), False),
        (asked("http://site.test/a", "https://site.test/a"), False),
        (asked("https://stranger.test/", "https://site.test/a"), False),
        (asked("https://site.test:8443/", "https://site.test:8443/"), False),
        (Request("https://site.test/robots.txt", meta={"asked_for": "https://site.test/robots.txt"}), True),
        (Request("https://site.test/robots.txt", meta={"asked_for": "https://stranger.test/robots.txt"}), False),
        (Request("https://other.test/robots.txt", meta={"asked_for": "https://site.test/robots.txt"}), False),
    ],
)
def test_credentials_when_a_request_is_sent_then_go_only_where_it_was_meant_to(request_: Request, sent: bool) -> None:
    request_ = request_.copy()

    basic().process_request(request_)

    assert (b"Authorization" in request_.headers) is sent


@pytest.mark.parametrize(
    ("username", "password", "sent"),
    [("Aladdin", "open sesame", b"QWxhZGRpbjpvcGVuIHNlc2FtZQ=="), ("test", "123£", b"dGVzdDoxMjPCow==")],
)
def test_basic_when_sent_then_is_as_in_the_rfc(username: str, password: str, sent: bytes) -> None:
    request = asked("https://site.test/a", "https://site.test/a")

    BasicLogin(ORIGINS, Login(username=username, password=password)).process_request(request)

    assert request.headers[b"Authorization"] == b"Basic " + sent


def test_basic_when_nobody_gets_in_then_nothing_more_is_sent() -> None:
    login = basic()
    first, second = (asked(url, url) for url in ("https://site.test/a", "https://site.test/b"))
    login.process_request(first)

    refused = end_of(login.process_response, first, answer(first, 401, WWW_Authenticate='Basic realm="x"'))
    at_once = end_of(login.process_request, second)

    assert [refused.code, at_once.code] == [959, 959]
    assert "the server offers Basic" in str(refused.error)
    assert b"Authorization" not in second.headers


def test_basic_when_others_got_in_then_one_page_that_refuses_is_its_own_affair() -> None:
    login = basic()
    first, second = (asked(url, url) for url in ("https://site.test/a", "https://site.test/b"))
    login.process_request(first)
    login.process_response(first, answer(first, 200))

    with pytest.raises(VisitEnded):
        login.process_response(first, answer(first, 401))
    login.process_request(second)

    assert b"Authorization" in second.headers


def test_digest_when_challenged_then_asks_again_with_the_answer_and_counts_on() -> None:
    login = digest()
    first, second = (asked(url, url) for url in ("https://site.test/a?b=c", "https://site.test/b"))
    login.process_request(first)

    again = login.process_response(first, answer(first, 401, **challenged(first)))
    assert isinstance(again, Request)
    login.process_request(again)
    login.process_request(second)

    assert b"Authorization" not in first.headers
    headers = [request.headers[b"Authorization"].decode() for request in (again, second)]
    assert 'uri="/a?b=c"' in headers[0]
    assert ["nc=00000001" in headers[0], "nc=00000002" in headers[1]] == [True, True]
    assert again.meta["claim"] == first.meta["claim"]


def test_digest_when_the_nonce_is_stale_then_tries_once_more_and_else_gives_up() -> None:
    login = digest()
    again = challenge(login)
    login.process_request(again)

    once_more = login.process_response(again, answer(again, 401, **challenged(again, "m", "true")))
    assert isinstance(once_more, Request)
    login.process_request(once_more)
    outcome = end_of(login.process_response, once_more, answer(once_more, 401, **challenged(once_more, "o", "true")))

    assert b'nonce="m"' in once_more.headers[b"Authorization"]
    assert outcome.code == 959


def test_digest_when_the_answer_is_refused_then_the_password_is_wrong() -> None:
    login = digest()
    again = challenge(login)
    login.process_request(again)

    outcome = end_of(login.process_response, again, answer(again, 401, **challenged(again, "fresh")))

    assert outcome.code == 959
    assert not outcome.transient


def test_digest_when_a_late_answer_names_the_next_nonce_then_the_newer_one_stays() -> None:
    login = digest()
    again = challenge(login)
    late, stale, last = again.copy(), again.copy(), asked("https://site.test/b", "https://site.test/b")
    login.process_request(late)
    login.process_request(stale)
    login.process_response(stale, answer(stale, 401, **challenged(stale, "newer", "true")))

    login.process_response(late, answer(late, 200, Authentication_Info='nextnonce="older"'))
    login.process_request(last)
    login.process_response(last, answer(last, 200, Authentication_Info='nextnonce="newest"'))
    login.process_request(again)

    headers = [request.headers[b"Authorization"].decode() for request in (last, again)]
    assert ['nonce="newer"' in headers[0], 'nonce="newest"' in headers[1]] == [True, True]


def test_digest_when_an_older_nonce_is_refused_then_the_newer_one_is_tried() -> None:
    login = digest()
    again = challenge(login)
    late = again.copy()
    login.process_request(again)
    login.process_request(late)
    login.process_response(again, answer(again, 200, Authentication_Info='nextnonce="newer"'))

    once_more = login.process_response(late, answer(late, 401, **challenged(late, "fresh")))
    assert isinstance(once_more, Request)
    login.process_request(once_more)

    assert b'nonce="fresh"' in once_more.headers[b"Authorization"]
