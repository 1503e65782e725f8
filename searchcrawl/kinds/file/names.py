"""The identity of a file or folder: a URL of the bytes of its names, of which nothing is normalised. Pure.

Twins that differ in case or in the form of a letter (NFC, NFD) are two files, and a name need not be UTF-8. Whatever is not
unreserved is escaped, so that nothing in a name has a meaning of its own: no drive letter, no dots, no mark of an archive.

On servers names are whatever the protocol takes: the keys of S3 may have empty names and dots between their slashes. Of such a
name the identity has one more byte at its end that no name has, a NUL, and so no reader of URLs takes it for a place.
"""

from __future__ import annotations

import os
from string import ascii_letters, digits
from typing import Final
from urllib.parse import quote_from_bytes, unquote_to_bytes

from searchcrawl.exceptions import InvalidUrl
from searchcrawl.kind import FILE
from searchcrawl.urls import unescape_name

#: How the identity of each file of this machine begins.
BEGIN: Final = "file://"
_SAFE: Final = "/-._~"
#: Names that are places in every protocol but that of keys.
_PLACES: Final = frozenset({b"", b".", b".."})
_OF_KEYS: Final = "s3"
#: All that stands in an identity as it is.
_PLAIN: Final = f"{ascii_letters}{digits}{_SAFE}".encode()
#: How those of files on servers begin.
_REMOTE: Final = tuple(f"{scheme}://" for scheme, port in FILE.ports.items() if port)


def escape(name: bytes) -> str:
    """A path of this machine, or a name on it, as it stands in an identity."""
    # Most names have nothing to be escaped, which is seen in a quarter of the time.
    return quote_from_bytes(name, safe=_SAFE) if name.translate(None, _PLAIN) else name.decode("ascii")


def to_identity(path: bytes, *, is_folder: bool = False) -> str:
    """The identity of an absolute path; that of a folder ends in a slash."""
    return f"{BEGIN}{escape(path.rstrip(b'/') + b'/' if is_folder else path)}"


def to_path(url: str) -> bytes:
    """The path of a file URL, without a slash at the end; raises InvalidUrl for any other URL.

    All spellings of a name lead to its one path.
    """
    place = url.removeprefix(BEGIN).removeprefix("localhost")
    path = unquote_to_bytes(place.partition("?")[0].partition("#")[0])
    if not url.startswith(BEGIN) or not path.startswith(b"/") or b"\0" in path:
        raise InvalidUrl(f"not the URL of a file: {url[:200]!r}")
    return path.rstrip(b"/") or b"/"


def is_remote(url: str) -> bool:
    """Whether an identity is on a server."""
    return url.startswith(_REMOTE)


def split_remote(url: str) -> tuple[str, str, tuple[bytes, ...]]:
    """The scheme of an identity on a server, its host (with the port, unless that is the scheme's own), and the names from there on."""
    scheme, _, rest = url.partition("://")
    host, _, path = rest.partition("/")
    path = path.partition("?")[0].partition("#")[0].removesuffix("/")
    return scheme, host, tuple(unescape_name(name) for name in path.split("/")) if path else ()


def can_be_name(name: bytes, scheme: str) -> bool:
    """Whether a protocol may take a name for one: what a server says, or somebody types, must not lead out of its folder."""
    return b"/" not in name and b"\0" not in name and (scheme == _OF_KEYS or name not in _PLACES)


def join(folder: bytes, path: str) -> bytes:
    """A path that somebody wrote, relative to an absolute one, without needless slashes and dots."""
    return b"/" + os.path.normpath(os.path.join(folder, os.fsencode(path))).lstrip(b"/")


def show(path: bytes) -> str:
    """A path or name for people: what is not UTF-8 in it is shown as such."""
    return path.decode("utf-8", "replace")


def split(path: bytes, root: bytes) -> list[bytes] | None:
    """The names on the way from ``root`` to ``path``, both absolute; None where it is not below it."""
    begin = root.rstrip(b"/") + b"/"
    if path == root:
        return []
    if not path.startswith(begin):
        return None
    names = path[len(begin) :].split(b"/")
    return None if any(name in {b"", b".", b".."} for name in names) else names
