"""Authorization headers: the examples of RFC 7616 and 7617, and challenges as servers write them (C10)."""

from __future__ import annotations

import hashlib
import re

import pytest

from searchcrawl.login.http_login_middleware import (
    Challenge,
    build_digest_header,
    find_challenge,
    find_next_nonce,
    list_schemes,
)

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
    ],
)
def test_challenge_when_read_then_the_best_that_can_be_met_is_taken(
    headers: list[str], algorithm: str | None, nonce: str
) -> None:
    challenge = find_challenge(headers)

    assert challenge is not None
    assert (challenge.algorithm, challenge.nonce) == (algorithm, nonce)


@pytest.mark.parametrize(
    "header",
    [
        "",
        'Basic realm="x"',
        'Digest realm="r"',
        'Digest nonce="n"',
        'Digest realm="r", nonce="n", algorithm=SHA-512-256',
        'Digest realm="r", nonce="n", qop="auth-int"',
        'Digest realm="r", nonce="n\x01"',
        "Digest " + "x" * 100_000,
        '""",,,===',
    ],
)
def test_challenge_when_it_cannot_be_met_then_there_is_none(header: str) -> None:
    assert find_challenge([header]) is None


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
