"""What is known of a document beside its body, as headers of its answer: named values, and who may see it.

What reads a document writes these headers, so that the record of the cache has them, and a replay needs no source. Only
sources that are no web site may say so: of the answer of a web server these headers are dropped (``drop_own``).

A principal is a name of who may see a document: ``user:anna``, ``group:staff``, ``uid:1000``, ``gid:60``, ``sid:S-1-5-…``,
``everyone``, ``authenticated``, or ``nobody``, which no user has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import quote_from_bytes, unquote_to_bytes

import orjson

EVERYONE: Final = "everyone"
AUTHENTICATED: Final = "authenticated"
NOBODY: Final = "nobody"
#: How all other principals begin.
PRINCIPAL_KINDS: Final = ("user:", "group:", "uid:", "gid:", "sid:")

#: ``ORIGIN:NAME=VALUE``, the name and the value percent-encoded
VALUE: Final = b"Searchcrawl-Value"
#: a principal that may see the document, percent-encoded
ALLOW: Final = b"Searchcrawl-Allow"
#: a principal that may not, though others of its principals may
DENY: Final = b"Searchcrawl-Deny"
#: a list of levels above, each of which must let a user pass, as JSON, percent-encoded
LEVEL: Final = b"Searchcrawl-Level"
#: the URL that a search shows for the document, percent-encoded
DISPLAY: Final = b"Searchcrawl-Display"
_BEGIN: Final = b"searchcrawl-"
_ALLOW, _DENY, _LEVEL, _VALUE, _DISPLAY = (name.lower() for name in (ALLOW, DENY, LEVEL, VALUE, DISPLAY))
_SAFE: Final = "!#$&'()*+,-./:;<>?@[]^_`{|}~"
_LEVEL_KEYS: Final = {"allow", "deny"}
#: A longer name is none: no index could keep it whole.
_MOST_CHARS: Final = 1_000
#: What no index keeps of a text, and a name that lost it would be another one.
_UNWANTED: Final = frozenset(
    {*map(chr, range(32)), "\ue000", "\ue001", "\ufffe", "\uffff", *map(chr, range(0xD800, 0xE000))}
)

AnswerHeaders = Sequence[tuple[bytes, bytes]]


class Level(NamedTuple):
    """Who passes a level above a document, as a share or a folder: one of ``allow``, and none of ``deny``."""

    allow: tuple[str, ...]
    deny: tuple[str, ...] = ()

    @property
    def is_open(self) -> bool:
        """Whether everyone passes."""
        return EVERYONE in self.allow and not self.deny


class Permissions(NamedTuple):
    """Who may see a document: who has one of ``allow`` and none of ``deny``, and passes each of ``levels``."""

    allow: tuple[str, ...]
    deny: tuple[str, ...] = ()
    levels: tuple[Level, ...] = ()


#: Of a document whose permissions cannot be read.
UNREADABLE: Final = Permissions((NOBODY,))


def encode_value(origin: str, name: str, value: str) -> tuple[bytes, bytes]:
    """The header of a value that ``[attributes]`` may map as ``"ORIGIN:NAME"``; ``origin`` is ``column`` or ``file``."""
    return VALUE, b"%b:%b=%b" % (origin.encode("ascii"), _encode(name), _encode(value))


def list_values(headers: AnswerHeaders) -> Iterator[tuple[str, str]]:
    """The values of an answer in their order, each after its ``ORIGIN:NAME`` in lower case."""
    for header, text in headers:
        if header.lower() == _VALUE:
            origin, colon, rest = text.partition(b":")
            name, equals, value = rest.partition(b"=")
            if colon and equals:
                yield f"{_decode(origin)}:{_decode(name)}".lower(), _decode(value)


def encode_display(url: str) -> tuple[bytes, bytes]:
    """The header of the URL that a search shows in place of the identity of a document."""
    return DISPLAY, _encode(url)


def find_display(headers: AnswerHeaders) -> str | None:
    """The URL that a search shows for the document of an answer; None where it says none."""
    if not _may_have_own(headers):
        return None
    return next((_decode(text) for header, text in headers if header.lower() == _DISPLAY), None)


def encode_permissions(permissions: Permissions) -> tuple[tuple[bytes, bytes], ...]:
    """The headers of permissions; without any ``allow`` nobody may see the document."""
    found = [
        *((ALLOW, _encode(principal)) for principal in permissions.allow or (NOBODY,)),
        *((DENY, _encode(principal)) for principal in permissions.deny),
    ]
    if permissions.levels:
        levels = [level._asdict() for level in permissions.levels]
        found.append((LEVEL, _encode(orjson.dumps(levels).decode())))
    return tuple(found)


def find_permissions(headers: AnswerHeaders) -> Permissions | None:
    """The permissions of an answer; None where it says none, which lets everyone see the document.

    What cannot be read lets nobody see it.
    """
    if not _may_have_own(headers):
        return None
    allow, deny, levels = list[str](), list[str](), list[Level]()
    is_said = False
    for header, text in headers:
        name = header.lower()
        if name in {_ALLOW, _DENY, _LEVEL}:
            is_said = True
            try:
                if name == _LEVEL:
                    levels += _read_levels(text)
                else:
                    (allow if name == _ALLOW else deny).append(_read_principal(text))
            except ValueError:
                return UNREADABLE
    if not is_said:
        return None
    return Permissions(
        tuple(dict.fromkeys(allow)) or (NOBODY,), tuple(dict.fromkeys(deny)), tuple(dict.fromkeys(levels))
    )


def list_permissions(headers: AnswerHeaders) -> AnswerHeaders:
    """The headers that say who may see a document, as they are: what is part of it, as a file in an archive, has them too."""
    if not _may_have_own(headers):
        return ()
    return tuple((name, value) for name, value in headers if name.lower() in {_ALLOW, _DENY, _LEVEL})


def drop_own(headers: tuple[tuple[bytes, bytes], ...]) -> tuple[tuple[bytes, bytes], ...]:
    """The headers without those of this module, for an answer of somebody who must not set them; the same ones without any."""
    if not _may_have_own(headers):
        return headers
    return tuple((name, value) for name, value in headers if name[: len(_BEGIN)].lower() != _BEGIN)


def _may_have_own(headers: AnswerHeaders) -> bool:
    """Whether some header may be one of this module: pages of web sites have none, and are many."""
    return b"\n" + _BEGIN in b"\n".join([b"", *[name for name, _ in headers]]).lower()


def _encode(text: str) -> bytes:
    """A text as a header takes it. A principal with a lone surrogate cannot be read again, so that nobody sees its document."""
    return quote_from_bytes(text.encode("utf-8", "surrogatepass"), safe=_SAFE).encode("ascii")


def _decode(text: bytes) -> str:
    return unquote_to_bytes(text).decode("utf-8", "replace")


def is_principal(name: str) -> bool:
    """Whether it can be the name of a principal: as long as an index keeps it, and without control characters."""
    return 0 < len(name) <= _MOST_CHARS and _UNWANTED.isdisjoint(name)


def can_deny(name: str) -> bool:
    """Whether some user may have a principal, so that it denies something when it is denied."""
    return name.startswith(PRINCIPAL_KINDS) or name in {EVERYONE, AUTHENTICATED, NOBODY}


def _read_principal(text: bytes) -> str:
    found = unquote_to_bytes(text).decode("utf-8")
    if not is_principal(found):
        raise ValueError("no name of a principal")
    return found


def _read_levels(text: bytes) -> Iterable[Level]:
    found: Any = orjson.loads(unquote_to_bytes(text))
    if not isinstance(found, list):
        # As all that cannot be read here.
        raise ValueError("no list of levels")  # noqa: TRY004
    return [_read_level(each) for each in found]


def _read_level(found: Any) -> Level:
    if not isinstance(found, dict) or not found.keys() <= _LEVEL_KEYS:
        raise ValueError("no level")
    lists = [found.get(key, []) for key in ("allow", "deny")]
    if not all(
        isinstance(each, list) and all(isinstance(name, str) and is_principal(name) for name in each) for each in lists
    ):
        raise ValueError("no names of principals")
    return Level(*(tuple(dict.fromkeys(each)) for each in lists))
