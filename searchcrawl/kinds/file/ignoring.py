"""``.searchignore``: what of a folder, and of all below it, its owner does not want to be found.

One rule a line, as in ``.gitignore``: ``NAME`` for files and folders of that name at any depth, ``NAME/`` for folders alone,
``/NAME`` or ``A/B`` for what is there from this folder on; ``*`` and ``?`` are any characters of a name, ``[0-9]`` is one of
these, ``**`` any folders. With ``!`` before it a rule takes back what one before it says. The last rule that matches decides, and
a file in a folder below goes before those above.
"""

from __future__ import annotations

from collections.abc import Sequence
from errno import EFBIG, EINVAL
from typing import Any, Final, NamedTuple

import re2

from searchcrawl.kinds.file.names import show
from searchcrawl.rules.decision import Decision

FILE_NAME: Final = b".searchignore"
#: What may be asked of each file below is bounded by it.
MOST_BYTES: Final = 16_384
#: A character of UTF-8, or a byte that is part of none.
_ANY: Final = rb"(?:[\xc0-\xff][\x80-\xbf]*|[^/])"
_LONGEST_CLASS: Final = 100
_MOST_WILDCARDS: Final = 32
#: So many rules are asked together first: a name that one of them matches is asked for of few others.
_GROUP: Final = 64


class _Rule(NamedTuple):
    matches: Any
    of_names: bool
    folders_only: bool
    takes_back: bool
    decision: Decision


class _Group(NamedTuple):
    """Rules that follow each other, and whether any of them matches a name, or a way."""

    rules: list[_Rule]
    any_name: Any
    any_way: Any


class IgnoreFile:
    """The rules of one file; ``path`` is that of its folder. Raises OSError for one that is too large."""

    def __init__(self, content: bytes, path: bytes) -> None:
        if len(content) > MOST_BYTES:
            raise OSError(EFBIG, f"has more than {MOST_BYTES} bytes")
        self.size = len(content)
        rules = list[tuple[_Rule, bytes]]()
        for number, line in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
            rule = line.strip(b" \t\r\x00")
            if rule.strip(b"!/") and not rule.startswith(b"#"):
                rules.append(_read_rule(rule, show(path.rstrip(b"/") + b"/" + FILE_NAME), number))
        self._groups = [_group(rules[begin : begin + _GROUP]) for begin in range(0, len(rules), _GROUP)]
        self._asks_way = any(group.any_way for group in self._groups)

    def decide(self, names: Sequence[bytes], *, is_folder: bool) -> Decision | None:
        """What the file says of something, by the names from its folder on: a refusal, a permission, or nothing."""
        name, way = names[-1], b"/".join(names) if self._asks_way else b""
        for group in reversed(self._groups):
            if not (group.any_name and group.any_name(name)) and not (group.any_way and group.any_way(way)):
                continue
            for rule in reversed(group.rules):
                if (is_folder or not rule.folders_only) and rule.matches(name if rule.of_names else way):
                    return Decision(True) if rule.takes_back else rule.decision
        return None


def _read_rule(text: bytes, file: str, number: int) -> tuple[_Rule, bytes]:
    """A rule, and its expression."""
    rule = text.removeprefix(b"!")
    if sum(map(rule.count, (b"*", b"?"))) > _MOST_WILDCARDS:
        raise OSError(EINVAL, f"line {number} has more than {_MOST_WILDCARDS} wildcards")
    of_names = b"/" not in rule.rstrip(b"/")
    expression = _translate(rule.strip(b"/"))
    decision = Decision(False, show(text), file, f"line {number}")
    return _Rule(_compile(expression), of_names, rule.endswith(b"/"), text != rule, decision), expression


def _group(rules: Sequence[tuple[_Rule, bytes]]) -> _Group:
    names, ways = ([each for rule, each in rules if rule.of_names == of_names] for of_names in (True, False))
    any_name, any_way = (_compile(b"|".join(found)) if found else None for found in (names, ways))
    return _Group([rule for rule, _ in rules], any_name, any_way)


def read_ignore_file(content: bytes, path: bytes) -> IgnoreFile:
    """The file of a folder with this path; raises OSError for one that is too large, or has a rule that cannot be meant."""
    try:
        return IgnoreFile(content, path)
    except OSError as error:
        raise blame(error) from error


def blame(error: OSError) -> OSError:
    """An error as one of such a file."""
    return OSError(error.errno or EINVAL, f"{show(FILE_NAME)}: {error.strerror or error}")


def _compile(expression: bytes) -> Any:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.never_capture = True
    options.log_errors = False
    options.dot_nl = True
    try:
        return re2.compile(expression, options).fullmatch
    except re2.error as error:
        raise OSError(EINVAL, "has rules that are too long") from error


def _translate(rule: bytes) -> bytes:
    """An expression of RE2 for the names of a rule; each byte is taken once."""
    found, place = [], 0
    while place < len(rule):
        rest = rule[place : place + 3]
        if rest == b"**/" and (place == 0 or rule[place - 1 : place] == b"/"):
            piece, length = b"(?:.*/)?", 3
        elif rest.startswith(b"**"):
            piece, length = b".*", 2
        elif rest.startswith(b"*"):
            piece, length = b"[^/]*", 1
        elif rest.startswith(b"?"):
            piece, length = _ANY, 1
        elif rest.startswith(b"["):
            piece, length = _translate_class(rule, place)
        elif rest.startswith(b"\\") and len(rest) > 1:
            piece, length = re2.escape(rest[1:2]), 2
        else:
            piece, length = re2.escape(rest[:1]), 1
        found.append(piece)
        place += length
    return b"".join(found)


def _translate_class(rule: bytes, place: int) -> tuple[bytes, int]:
    """The characters in brackets, and how many bytes of the rule they are; what is none is a bracket as it stands."""
    end = rule.find(b"]", place + 2, place + _LONGEST_CLASS)
    inside = rule[place + 1 : end]
    is_negated = inside[:1] in {b"!", b"^"}
    found, at = [], int(is_negated)
    while end > 0 and at < len(inside):
        last = inside[at + 2 : at + 3]
        is_range = inside[at + 1 : at + 2] == b"-" and last != b""
        found.append(re2.escape(inside[at : at + 1]) + (b"-" + re2.escape(last) if is_range else b""))
        at += 3 if is_range else 1
    if not found or not inside.isascii() or b"/" in inside or any(_is_backwards(each) for each in found):
        return re2.escape(b"["), 1
    return b"[%b%b]" % (b"^/" if is_negated else b"", b"".join(found)), end + 1 - place


def _is_backwards(piece: bytes) -> bool:
    first, dash, last = piece.replace(b"\\", b"").partition(b"-")
    return bool(dash and last) and first > last
