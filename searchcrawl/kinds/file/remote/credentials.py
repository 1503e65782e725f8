"""Name and password for a server of files, as HTTP Basic or Digest, whichever it asks for. Of several threads."""

from __future__ import annotations

import base64
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, Protocol, TypeVar

from searchcrawl.codes import BUSY
from searchcrawl.http.digest import Challenge, build_digest_header, find_challenge, find_next_nonce, list_schemes
from searchcrawl.kinds.file.remote.model import RemoteFailure

_UNAUTHORIZED: Final = 401
_DENIED: Final = 403
#: Without credentials, with them, and with a nonce that became stale meanwhile.
_MOST_TRIES: Final = 3
_BASIC: Final = "basic"


class _Answer(Protocol):
    status: int

    def header(self, name: str) -> str: ...
    def list_values(self, name: str) -> Sequence[str]: ...
    def close(self) -> None: ...


T = TypeVar("T", bound=_Answer)
#: How credentials are given: none yet, Basic, or an answer to this challenge.
_Way = Challenge | str | None


class Credentials:
    """Gives name and password of one server.

    The first request has none, so that a server which knows Digest never gets the password itself; one that asks for none
    gets Basic, as it may show more with it. A password that was refused is not sent again: that might lock the user out.
    """

    def __init__(self, username: str, password: str) -> None:
        self._user = username, password
        self._way: _Way = None
        self._count = 0
        self._is_accepted = False
        self._refusal = ""
        self._lock = threading.Lock()

    def exchange(self, send: Callable[[Mapping[str, str]], T], method: str, target: str) -> T:
        """The answer to a request that ``send`` sends with further headers; raises RemoteFailure where the login fails."""
        for _ in range(_MOST_TRIES):
            way, headers = self._build_headers(method, target)
            answer = send(headers)
            if answer.status != _UNAUTHORIZED:
                if way is not None or answer.status in BUSY:
                    self._note_success(way, answer)
                    return answer
                self._choose(_BASIC)
                may_try = True
            else:
                may_try = self._learn(way, answer.list_values("WWW-Authenticate"))
            answer.close()
            if not may_try:
                break
        raise self._refuse(answer)

    def _build_headers(self, method: str, target: str) -> tuple[_Way, Mapping[str, str]]:
        with self._lock:
            if self._refusal:
                raise RemoteFailure(self._refusal, code=_UNAUTHORIZED)
            way = self._way
            self._count += 1
            count = self._count
        if way is None:
            return way, {}
        if isinstance(way, Challenge):
            value = build_digest_header(
                way, method=method, target=target, user=self._user, cnonce=secrets.token_hex(8), count=count
            )
        else:
            value = f"Basic {base64.b64encode(':'.join(self._user).encode()).decode('ascii')}"
        return way, {"Authorization": value}

    def _choose(self, way: _Way) -> None:
        with self._lock:
            self._way, self._count = way, 0

    def _learn(self, way: _Way, offered: Sequence[str]) -> bool:
        """Learns from a 401 how credentials are to be given; whether that is another way than this one."""
        challenge = find_challenge(offered)
        with self._lock:
            if self._way is not way:
                # Another thread has learned it meanwhile.
                return True
            if challenge is not None:
                # A server may refuse an old nonce without a word about it.
                is_old = isinstance(way, Challenge) and (challenge.stale or self._is_accepted)
                if isinstance(way, Challenge) and not (is_old and challenge.nonce != way.nonce):
                    return False
                self._way, self._count = challenge, 0
                return True
            if way is None and _BASIC in {scheme.lower() for scheme in list_schemes(offered)}:
                self._way = _BASIC
                return True
            return False

    def _note_success(self, way: _Way, answer: _Answer) -> None:
        later = find_next_nonce(answer.header("Authentication-Info"))
        with self._lock:
            self._is_accepted = self._is_accepted or way is not None
            if later and isinstance(way, Challenge) and way is self._way:
                self._way, self._count = replace(way, nonce=later), 0

    def _refuse(self, answer: _Answer) -> RemoteFailure:
        offered = ", ".join(list_schemes(answer.list_values("WWW-Authenticate"))) or "nothing"
        with self._lock:
            if self._is_accepted:
                # What is refused is this thing alone.
                return RemoteFailure("the server does not show it to this user", code=_DENIED)
            self._refusal = f"the server refuses file.username with this password; it offers {offered}"
            return RemoteFailure(self._refusal, code=_UNAUTHORIZED)
