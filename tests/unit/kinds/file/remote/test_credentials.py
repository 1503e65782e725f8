"""How a password is given, and that it is not given again once it was refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from searchcrawl.kinds.file.remote.credentials import Credentials
from searchcrawl.kinds.file.remote.model import RemoteFailure

DIGEST = 'Digest realm="r", nonce="{}", qop="auth"'


class Answer:
    def __init__(self, status: int, *offered: str, info: str = "") -> None:
        self.status = status
        self._offered = offered
        self._info = info

    def header(self, name: str) -> str:
        return self._info if name == "Authentication-Info" else ""

    def list_values(self, name: str) -> Sequence[str]:
        return self._offered

    def close(self) -> None:
        pass


class Server:
    """Answers one after the other, and keeps what was sent with each request."""

    def __init__(self, *answers: Answer) -> None:
        self._answers = list(answers)
        self.sent: list[str] = []

    def send(self, headers: Mapping[str, str]) -> Answer:
        self.sent.append(headers.get("Authorization", ""))
        return self._answers.pop(0)


def ask(credentials: Credentials, server: Server) -> Answer:
    return credentials.exchange(server.send, "GET", "/a")


def test_password_when_the_server_knows_digest_then_is_never_sent_itself() -> None:
    server = Server(Answer(401, 'Basic realm="r"', DIGEST.format("n")), Answer(207), Answer(207))
    credentials = Credentials("anna", "secret")
    ask(credentials, server)
    ask(credentials, server)

    assert server.sent[0] == ""
    assert [sent.partition(" ")[0] for sent in server.sent[1:]] == ["Digest", "Digest"]
    assert ["nc=00000001" in sent for sent in server.sent[1:]] == [True, False]


@pytest.mark.parametrize("first", [Answer(401, 'basic realm="r"'), Answer(207)])
def test_password_when_the_server_asks_for_basic_or_for_nothing_then_is_sent_as_basic(first: Answer) -> None:
    server = Server(first, Answer(207), Answer(207))
    credentials = Credentials("anna", "Ü:x")
    ask(credentials, server)
    ask(credentials, server)

    assert server.sent == ["", "Basic YW5uYTrDnDp4", "Basic YW5uYTrDnDp4"]


@pytest.mark.parametrize("offer", ['Basic realm="r"', DIGEST.format("n")])
def test_password_when_it_is_refused_then_is_not_sent_again(offer: str) -> None:
    server = Server(Answer(401, offer), Answer(401, offer))
    credentials = Credentials("anna", "secret")
    for _ in range(3):
        with pytest.raises(RemoteFailure) as failure:
            ask(credentials, server)
        assert (failure.value.code, failure.value.transient) == (401, False)
        assert "secret" not in str(failure.value)

    assert len(server.sent) == 2


def test_password_when_no_known_scheme_is_offered_then_is_never_sent() -> None:
    server = Server(Answer(401, "Negotiate"))
    with pytest.raises(RemoteFailure, match="it offers Negotiate"):
        ask(Credentials("anna", "secret"), server)

    assert server.sent == [""]


def test_nonce_when_it_is_stale_or_replaced_then_the_next_one_is_taken() -> None:
    server = Server(
        Answer(401, DIGEST.format("n1")),
        Answer(207, info='nextnonce="n2"'),
        Answer(401, DIGEST.format("n3")),
        Answer(207),
    )
    credentials = Credentials("anna", "secret")
    ask(credentials, server)
    ask(credentials, server)

    assert [nonce in sent for nonce, sent in zip(("n1", "n2", "n3"), server.sent[1:], strict=True)] == [True] * 3


def test_refusal_when_the_password_was_accepted_before_then_is_about_one_thing_alone() -> None:
    offer = 'Basic realm="r"'
    server = Server(Answer(401, offer), Answer(207), Answer(401, offer), Answer(207))
    credentials = Credentials("anna", "secret")
    ask(credentials, server)
    with pytest.raises(RemoteFailure) as failure:
        ask(credentials, server)

    assert failure.value.code == 403
    assert ask(credentials, server).status == 207
