"""Which archives the URL of a file names: what forbids one of them forbids the file (C8). Pure.

A file in an archive has a URL of its own: that of the archive, the mark, and its path.
"""

from __future__ import annotations

from typing import Final

#: Stands between the URL of an archive and the path of a file in it.
MARK: Final = "!/"
#: So many archives are unpacked one in the other.
MAX_DEPTH: Final = 3
#: Of one packed file, and of tar archives that are packed.
ENDINGS: Final = (".gz", ".bz2", ".xz")
TAR_ENDINGS: Final = (".tgz", ".tbz", ".tbz2", ".txz", *(f".tar{ending}" for ending in ENDINGS))
_CALLED: Final = (".zip", ".tar", *TAR_ENDINGS, *ENDINGS)
_LONGEST: Final = max(map(len, _CALLED))


def is_called_archive(url: str) -> bool:
    """Whether the path of a URL, or of a file in an archive, ends like the name of an archive."""
    return url.rpartition(MARK)[2].partition("?")[0].lower().endswith(_CALLED)


def split_path(url: str) -> tuple[str, str]:
    """The outermost archive that a URL names, also at the end of a query, and the rest from the mark on; the rest may be empty."""
    at = url.find(MARK)
    while at > 0 and not url[max(0, at - _LONGEST) : at].lower().endswith(_CALLED):
        at = url.find(MARK, at + len(MARK))
    return (url[:at], url[at:]) if at > 0 else (url, "")


def list_archives(url: str, *, in_archive: bool = False) -> list[str]:
    """The archives around ``url``, the outermost first: what stands before a mark and is called like an archive.

    With ``in_archive`` the URL is that of a file which was read from an archive, whatever the outermost is called. There
    are no more than can be unpacked.
    """
    if MARK not in url:
        return []
    found: list[str] = []
    begin = url.find("/", 8)
    at = url.find(MARK, begin)
    while at > 0 and len(found) < MAX_DEPTH:
        if in_archive or is_called_archive(url[begin:at]):
            found.append(url[:at])
        in_archive = False
        begin, at = at + len(MARK), url.find(MARK, at + len(MARK))
    return found
