"""What the bytes of a page say without a tree, which takes longer: its shell (C10), its refresh, its password fields."""

from __future__ import annotations

import re
from typing import Final

from searchcrawl.bodies import Body
from searchcrawl.html.metas import MAX_REFRESH_SECONDS, parse_refresh
from searchcrawl.rules.rendering import NEXT_TO_NOTHING, Need, Shell, judge

_BLANKS: Final = re.compile(rb"\s*+")
_NAME: Final = re.compile(rb"/?[a-z][a-z0-9:_-]{0,60}")
_SCRIPT: Final = re.compile(rb"<script", re.IGNORECASE)
#: Elements whose content is no text that a reader sees.
_UNSEEN: Final = frozenset({
    b"script", b"style", b"noscript", b"template", b"title", b"textarea", b"svg", b"math", b"select", b"iframe",
})  # fmt: skip
#: Scripts of these types are data.
_DATA: Final = (b"json", b"text/template", b"text/html", b"importmap", b"speculationrules")
#: The names, as id, under which frameworks look for the element that they fill.
_ROOT: Final = re.compile(
    rb"\sid\s{0,9}=\s{0,9}[\"']?(root|app|__next|__nuxt|___gatsby|app-root|main-app|react-root)[\"'\s>/]"
)
#: Elements of their own that frameworks fill.
_ROOT_NAME: Final = re.compile(rb"(?:app|[a-z]{1,20})-(?:root|app)")
#: The longest tag, and the longest notice, in which something is looked for.
_READ_BYTES: Final = 2_000
#: So much of a page is looked at for what says that it needs its scripts.
_SHELL_BYTES: Final = 256 * 1024


def needs_scripts(body: Body, text: str) -> bool:
    """Whether a page, of which ``text`` was read, surely needs the scripts that fill it."""
    if len(text) >= NEXT_TO_NOTHING:
        return False
    shell = body[:_SHELL_BYTES]
    return has_scripts(shell) and judge(read_shell(shell)).need is Need.CERTAIN


def has_scripts(body: bytes) -> bool:
    """Whether a page may have scripts: without any nothing more is to be read."""
    return _SCRIPT.search(body) is not None


def read_shell(body: bytes, *, enough: int | None = None) -> Shell:
    """The shell of a page in UTF-8; reading ends after ``enough`` bytes of text, where the numbers end as well."""
    # The lower case of bytes is as long as they are.
    low, size = body.lower(), len(body)
    text = scripts = at = 0
    root: str | None = None
    notice = False
    while at < size and (enough is None or text < enough):
        start = low.find(b"<", at)
        text += sum(map(len, low[at : size if start < 0 else start].split()))
        if start < 0:
            break
        name, end = _read_tag(low, start)
        if end < 0:
            break
        tag = low[start : min(end, start + _READ_BYTES)]
        scripts += name == b"script" and not any(kind in tag for kind in _DATA)
        at = end
        if name in _UNSEEN and not tag.endswith(b"/>"):
            close = low.find(b"</" + name, end)
            content_end = size if close < 0 else close
            notice = notice or (name == b"noscript" and b"javascript" in low[end : min(content_end, end + _READ_BYTES)])
            at = content_end
        elif root is None and (found := _find_root(name, tag)) is not None and _is_empty(low, end):
            root = found
    return Shell(text, scripts, root, notice)


def _read_tag(low: bytes, start: int) -> tuple[bytes, int]:
    """The name of the tag, b"" for a comment and the like, and where it ends; -1 where it never does."""
    if low.startswith(b"<!--", start):
        # The dashes of a comment's beginning may be those of its end.
        end = low.find(b"-->", start + 2)
        return b"", end if end < 0 else end + 3
    found = _NAME.match(low, start + 1)
    if found is None and low[start + 1 : start + 2] not in {b"!", b"?", b"/"}:
        # A sign in a text.
        return b"", start + 1
    end = low.find(b">", start)
    return found[0] if found is not None else b"", end if end < 0 else end + 1


def _find_root(name: bytes, tag: bytes) -> str | None:
    """How an element is called into which a page is built; None for another one."""
    if not name or name.startswith(b"/"):
        return None
    found = _ROOT.search(tag)
    if found is not None:
        return f"#{found[1].decode()}"
    return f"<{name.decode()}>" if _ROOT_NAME.fullmatch(name) else None


def _is_empty(low: bytes, at: int) -> bool:
    """Whether the element that begins here ends before anything but blanks and one comment."""
    at = _BLANKS.match(low, at).end()  # type: ignore[union-attr]  # it matches everywhere
    if low.startswith(b"<!--", at):
        end = low.find(b"-->", at + 2)
        if end < 0:
            return False
        at = _BLANKS.match(low, end + 3).end()  # type: ignore[union-attr]  # as above
    return low.startswith(b"</", at)


_INPUT: Final = re.compile(rb"<input\b[^>]{0,1000}", re.IGNORECASE)
_OF_PASSWORD: Final = re.compile(rb"\btype\s*=\s*[\"']?password\b", re.IGNORECASE)
_INPUT_NAME: Final = re.compile(rb"\sname\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))", re.IGNORECASE)
#: A longer page has content, whatever its refresh is.
_MOST_OF_REFRESHING: Final = 16_384
_META: Final = re.compile(rb"<meta\b[^>]{0,1000}", re.IGNORECASE)
_OF_REFRESH: Final = re.compile(rb"\bhttp-equiv\s{0,9}=\s{0,9}[\"']?\s{0,9}refresh\b", re.IGNORECASE)
_CONTENT: Final = re.compile(rb"\scontent\s{0,9}=\s{0,9}(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))", re.IGNORECASE)


def has_password_field(body: bytes, name: str | None = None) -> bool:
    """Whether an HTML page has a password field (of this ``name``, if one is given), as login forms have."""
    if name is not None and name.encode() not in body:
        return False
    fields = (tag[0] for tag in _INPUT.finditer(body) if _OF_PASSWORD.search(tag[0]))
    return any(name is None or _find_value(_INPUT_NAME, field) == name.encode() for field in fields)


def find_raw_refresh(body: bytes) -> str | None:
    """The target of the first refresh of a small page that counts as a redirect, as written; None where there is none."""
    if len(body) > _MOST_OF_REFRESHING or not _OF_REFRESH.search(body):
        return None
    for tag in _META.finditer(body):
        if _OF_REFRESH.search(tag[0]):
            read = parse_refresh(_find_value(_CONTENT, tag[0]).decode("latin-1").replace("&amp;", "&"))
            if read is not None and read.url and read.seconds <= MAX_REFRESH_SECONDS:
                return read.url
    return None


def _find_value(attribute: re.Pattern[bytes], tag: bytes) -> bytes:
    """The value of an attribute in a tag; empty where there is none."""
    found = attribute.search(tag)
    return (found[1] or found[2] or found[3] or b"") if found else b""
