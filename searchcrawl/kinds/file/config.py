"""The table ``[file]`` of a source file."""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal
from urllib.parse import urlsplit

from searchcrawl.sources.values import (
    Check,
    Count,
    ListOf,
    PublicText,
    Table,
    key,
    refuse,
    refuse_until_later,
    require,
)

#: Schemes of roots that a later release brings.
_LATER: Final = frozenset({"sftp", "smb", "dav", "davs", "s3"})
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{1,20}://")


def _check_root(text: str) -> str:
    if _SCHEME.match(text):
        if urlsplit(text).scheme.lower() in _LATER:
            refuse_until_later()
        refuse("must be the path of a folder")
    if not text.isprintable():
        refuse("must be printable")
    if ".." in text.split("/"):
        refuse('must have no ".." in it')
    return text


_check_marker: Final = require(
    lambda text: text.isprintable() and "/" not in text and text not in {".", ".."},
    "must be the name of a file in the root",
)


class FileTable(Table):
    """Which folders are read, and what of them (A1, A9)."""

    later = frozenset({"username", "password", "key_file", "endpoint", "inline_mb"})

    roots: ListOf[Annotated[PublicText, Check(_check_root, "path")]] = key(
        (), "The folders that are read with all below them; relative paths start at the project."
    )
    hidden: bool = key(False, "Read files and folders whose name begins with a dot, too.")
    versions: bool = key(
        False,
        "Read what is surely an older version, too: `NAME.~1~`, `NAME~` and `#NAME#` beside `NAME`, and the folders in which "
        "servers keep snapshots (`.snapshot`, `~snapshot`, `#snapshot`, `.zfs`, `@GMT-…`).",
    )
    follow_links: bool = key(False, "Follow symbolic links that lead to something in the same root.")
    cross_devices: bool = key(False, "Read other file systems that are mounted below a root, too.")
    verify_days: Count = key(
        0,
        "Each run reads one file of so many once more, though nothing says that it changed: with a run a day all of them in so "
        "many days. 0 is never.",
        unit="days",
    )
    marker: Annotated[PublicText, Check(_check_marker, "name")] | None = key(
        None, "A file that each root must have in it: one that lacks it is not there, and nothing is removed."
    )
    permissions: Literal["none", "posix"] = key(
        "posix",
        "Who may see a document in a search as a user: with `posix` those who may read the file by its owner, mode and ACL and may "
        "pass all folders above it, with `none` everyone.",
    )
