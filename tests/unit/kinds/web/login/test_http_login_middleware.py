"""Where Basic and Digest credentials go, and that a wrong password is not sent for ever (C10, X-N7)."""

from __future__ import annotations

import hashlib
import re

import pytest
from scrapy import Request

from searchcrawl.http.digest import Challenge, build_digest_header, find_challenge, find_next_nonce, list_schemes
from searchcrawl.http.visit_end import VisitEnded
from searchcrawl.kinds.web.login.http_login_middleware import BasicLogin, DigestLogin
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


NONCE = "7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v"
OPAQUE = "FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"
CNONCE = "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ"


def of_rfc(algorithm: str) -> str:
    return (
        f'Digest realm="http-auth@example.org", qop="auth, auth-int", algorithm={algorithm}, '
        f'nonce="{NONCE}", opaque="{OPAQUE}"'
    )


def response_of(header: str) -> str:
    found = re.search(r'response="([0-9a-f]+)"', header)
    assert found is not None
    return found[1]


@pytest.mark.parametrize(
    ("algorithm", "response"),
    [
        ("MD5", "8ca523f5e9506fed4657c9700eebdbec"),
        ("SHA-256", "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"),
    ],
)
def test_digest_when_made_then_is_as_in_the_rfc(algorithm: str, response: str) -> None:
    challenge = find_challenge([of_rfc(algorithm)])
    assert challenge is not None

    header = build_digest_header(
        challenge,
        method="GET",
        target="/dir/index.html",
        user=("Mufasa", "Circle of Life"),
        cnonce=CNONCE,
        count=1,
    )

    assert response_of(header) == response
    assert header.startswith('Digest username="Mufasa", realm="http-auth@example.org", nonce="')
    assert 'uri="/dir/index.html"' in header
    assert f"algorithm={algorithm}, qop=auth, nc=00000001" in header
    assert f'opaque="{OPAQUE}"' in header


def test_digest_when_server_names_no_qop_then_is_as_in_the_older_rfc() -> None:
    challenge = Challenge(realm="testrealm@host.com", nonce="dcd98b7102dd2f0e8b11d0f600bfb0c093", qop=False)

    header = build_digest_header(
        challenge, method="GET", target="/dir/index.html", user=("Mufasa", "Circle Of Life"), cnonce="x", count=1
    )

    assert response_of(header) == "670fd8c2df070c60b045671b8b24ff02"
    assert "nc=" not in header


@pytest.mark.parametrize("realm", ["Gesch\xfctzt".encode("latin-1"), "Geschützt €".encode()], ids=["latin", "utf"])
def test_digest_when_realm_is_no_ascii_then_its_bytes_are_hashed_and_sent_as_they_came(realm: bytes) -> None:
    challenge = find_challenge([b'Digest realm="%s", nonce="n"'.replace(b"%s", realm).decode("latin-1")])
    assert challenge is not None

    header = build_digest_header(
        challenge, method="GET", target="/", user=("Jörg", "Käse"), cnonce="x", count=1
    ).encode("latin-1")

    secret = hashlib.md5("Jörg:".encode() + realm + ":Käse".encode()).hexdigest()
    asked = hashlib.md5(b"GET:/").hexdigest()
    assert response_of(header.decode("latin-1")) == hashlib.md5(f"{secret}:n:{asked}".encode()).hexdigest()
    assert b'realm="' + realm + b'"' in header
    assert 'username="Jörg"'.encode() in header


def test_digest_when_user_name_has_quotes_or_is_to_be_hidden_then_is_so() -> None:
    plain, hidden = (Challenge(realm="r", nonce="n", userhash=hide) for hide in (False, True))
    how = {"method": "GET", "target": "/", "user": ('a"b\\c', "p"), "cnonce": "x", "count": 9}

    assert 'username="a\\"b\\\\c"' in build_digest_header(plain, **how)  # type: ignore[arg-type]
    assert re.search(r'username="[0-9a-f]{32}".*userhash=true', build_digest_header(hidden, **how))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("headers", "algorithm", "nonce"),
    [
        ([of_rfc("MD5"), of_rfc("SHA-256")], "SHA-256", NONCE),
        (['Basic realm="x", Digest realm="y, z", nonce="a,b", algorithm=MD5'], "MD5", "a,b"),
        (['Negotiate, Digest nonce="n" , realm="r"'], None, "n"),
        (["digest realm=r,nonce=n,qop=auth,stale=TRUE"], None, "n"),
        (['Digest realm="a \\"quoted\\" one", nonce="n"'], None, "n"),
        (['Digest realm="r", nonce="n", algorithm=MD5-sess, qop="auth"'], "MD5-sess", "n"),
        # None of these can be met.
        *(
            ([header], None, None)
            for header in (
                "",
                'Basic realm="x"',
                'Digest realm="r"',
                'Digest nonce="n"',
                'Digest realm="r", nonce="n", algorithm=SHA-512-256',
                'Digest realm="r", nonce="n", qop="auth-int"',
                'Digest realm="r", nonce="n\x01"',
                "Digest " + "x" * 100_000,
                '""",,,===',
            )
        ),
    ],
)
def test_challenge_when_read_then_the_best_that_can_be_met_is_taken(
    headers: list[str], algorithm: str | None, nonce: str | None
) -> None:
    challenge = find_challenge(headers)

    assert (challenge and challenge.algorithm, challenge and challenge.nonce) == (algorithm, nonce)


def test_schemes_when_named_then_are_those_of_all_headers() -> None:
    assert list_schemes(['Basic realm="x", Digest realm="y", nonce="n"', "Negotiate"]) == [
        "Basic",
        "Digest",
        "Negotiate",
    ]


def test_stale_and_next_nonce_when_sent_then_are_read() -> None:
    challenge = find_challenge(['Digest realm="r", nonce="n", stale=true'])

    assert challenge is not None
    assert challenge.stale
    assert find_next_nonce('qop=auth, rspauth="ab", nextnonce="later"') == "later"
    assert find_next_nonce("qop=auth") is None
    assert find_next_nonce('nextnonce="a\x01"') is None
