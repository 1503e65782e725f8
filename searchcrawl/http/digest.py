"""The headers of HTTP Digest (RFC 7616), and which schemes a server offers (C10, X-N7).

Their text has a character for each byte, as Latin-1 has: a realm goes back as it came, in whatever encoding. What ``requests``
has for Digest is for its own requests, and knows neither the hash of a name nor a next nonce.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

#: The best come first.
_HASHES: Final = {"SHA-256": hashlib.sha256, "MD5": hashlib.md5}
_MAX_HEADER: Final = 8192
# A name is read from its beginning to its end: of thousands of letters each would be tried as a beginning, or an end.
_NAME: Final = r"(?<![A-Za-z0-9!#$%&'*+.^_`|~-])([A-Za-z0-9!#$%&'*+.^_`|~-]++)"
_PARAMETER: Final = re.compile(rf"{_NAME}\s*+=\s*+(?:\"((?>[^\"\\]|\\.)*+)\"|([^\s,\"]++))")
_SCHEME: Final = re.compile(rf"\s*+(?>,\s*+)?+{_NAME}(?=\s|,|$)(?!\s*+=)")
_SEPARATOR: Final = re.compile(r"[\s,]*+")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Challenge:
    """The question of a server in ``WWW-Authenticate: Digest``; ``stale``: only the nonce was too old."""

    realm: str
    nonce: str
    opaque: str | None = None
    algorithm: str | None = None
    qop: bool = True
    stale: bool = False
    userhash: bool = False


def find_challenge(headers: Iterable[str]) -> Challenge | None:
    """The best Digest challenge of WWW-Authenticate ``headers`` that can be answered; None where there is none.

    These are MD5 and SHA-256, also their -sess forms, with qop ``auth`` or none.
    """
    found = [
        one for header in headers for scheme, values in _split(header[:_MAX_HEADER]) for one in _read(scheme, values)
    ]
    names = list(_HASHES)
    return min(found, key=lambda one: names.index(_hash_name(one.algorithm)), default=None)


def list_schemes(headers: Iterable[str]) -> list[str]:
    """The names of the schemes that a server offers, for messages."""
    return [scheme[:40] for header in headers for scheme, _ in _split(header[:_MAX_HEADER])]


def build_digest_header(
    challenge: Challenge, *, method: str, target: str, user: tuple[str, str], cnonce: str, count: int
) -> str:
    """The value of the header that answers ``challenge`` for a request of ``target`` (path and query).

    ``user`` is name and password, ``count`` how often the nonce was used, this time included.
    """
    hashed = _HASHES[_hash_name(challenge.algorithm)]

    def h(text: str) -> str:
        return hashed(text.encode("latin-1")).hexdigest()

    # In UTF-8, as browsers send them whatever the charset of the realm is.
    name, password = (text.encode().decode("latin-1") for text in user)
    secret = h(f"{name}:{challenge.realm}:{password}")
    if (challenge.algorithm or "").upper().endswith("-SESS"):
        secret = h(f"{secret}:{challenge.nonce}:{cnonce}")
    asked = h(f"{method}:{target}")
    times = f"{count:08x}"
    middle = f"{challenge.nonce}:{times}:{cnonce}:auth" if challenge.qop else challenge.nonce
    shown = h(f"{name}:{challenge.realm}") if challenge.userhash else name
    quoted = {"username": shown, "realm": challenge.realm, "nonce": challenge.nonce, "uri": target}
    quoted["response"] = h(f"{secret}:{middle}:{asked}")
    plain = {}
    if challenge.algorithm is not None:
        plain["algorithm"] = challenge.algorithm
    if challenge.opaque is not None:
        quoted["opaque"] = challenge.opaque
    if challenge.qop:
        plain |= {"qop": "auth", "nc": times}
        quoted["cnonce"] = cnonce
    if challenge.userhash:
        plain["userhash"] = "true"
    parts = [f'{key}="{_escaped(text)}"' for key, text in quoted.items()] + [
        f"{key}={text}" for key, text in plain.items()
    ]
    return "Digest " + ", ".join(parts)


def find_next_nonce(header: str) -> str | None:
    """The nonce that an ``Authentication-Info`` header asks to use from now on."""
    nonce = _parameters(header[:_MAX_HEADER]).get("nextnonce")
    return None if nonce is None or _CONTROL.search(nonce) else nonce


def _split(header: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    """The schemes of one header with their parameters; ``Negotiate`` and the like have none."""
    position = 0
    while match := _SCHEME.match(header, position):
        begin = position = match.end()
        while parameter := _SEPARATOR.match(header, position):
            found = _PARAMETER.match(header, parameter.end())
            if found is None:
                break
            position = found.end()
        yield match[1], _parameters(header[begin:position])


def _parameters(text: str) -> dict[str, str]:
    return {
        match[1].lower(): re.sub(r"\\(.)", r"\1", match[2]) if match[2] is not None else match[3]
        for match in _PARAMETER.finditer(text)
    }


def _read(scheme: str, values: Mapping[str, str]) -> Iterator[Challenge]:
    algorithm, nonce, realm = values.get("algorithm"), values.get("nonce"), values.get("realm")
    if scheme.lower() != "digest" or nonce is None or realm is None or _hash_name(algorithm) not in _HASHES:
        return
    offered = {one.strip().lower() for one in values.get("qop", "").split(",")} - {""}
    if offered and "auth" not in offered:
        return
    if any(_CONTROL.search(text) for text in values.values()):
        return
    yield Challenge(
        realm=realm,
        nonce=nonce,
        opaque=values.get("opaque"),
        algorithm=algorithm,
        qop=bool(offered),
        stale=values.get("stale", "").lower() == "true",
        userhash=values.get("userhash", "").lower() == "true",
    )


def _hash_name(algorithm: str | None) -> str:
    return (algorithm or "MD5").upper().removesuffix("-SESS")


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
