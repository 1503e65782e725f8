"""Headers of requests have the bytes that they should have, whatever their encoding (C10)."""

from __future__ import annotations

import hashlib
import re

import pytest

from tests.hostile_server import HostileServer, head
from tests.integration.support_fetch import crawl

LOGIN = {"type": "digest", "username": "Jörg", "password": "Käse"}


@pytest.mark.parametrize("realm", ["Geschützt".encode("latin-1"), "Geschützt €".encode()], ids=["latin", "utf"])
def test_digest_when_realm_is_no_ascii_then_answer_is_as_a_browser_gives_it(realm: bytes) -> None:
    challenge = f'WWW-Authenticate: Digest realm="{realm.decode("latin-1")}", nonce="n"'
    with HostileServer() as server:
        server.answers["/inner"] = head("401 Unauthorized", challenge, "Content-Length: 0")

        crawl([f"{server.url}/inner"], login=LOGIN)

        sent = [request.encode("latin-1") for request in server.requests if "Authorization" in request]
    found = re.search(rb'response="([0-9a-f]+)"', sent[0])
    assert found is not None
    secret = hashlib.md5("Jörg:".encode() + realm + ":Käse".encode()).hexdigest()
    asked = hashlib.md5(b"GET:/inner").hexdigest()
    assert found[1].decode() == hashlib.md5(f"{secret}:n:{asked}".encode()).hexdigest()
    assert b'realm="' + realm + b'"' in sent[0]
    assert 'username="Jörg"'.encode() in sent[0]
