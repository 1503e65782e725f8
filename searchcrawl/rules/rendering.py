"""Decides whether a page needs a browser, by what the server sends of it (C10, C11). Pure.

The plain answer says it for certain, or leaves a doubt, or shows a page that is whole without its scripts. About the
last two the sets of URLs that are alike are asked as well: what rendering brought for them before decides about the next
ones. A sample of the pages that are not rendered is, so that a site that is rebuilt is noticed.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

import xxhash

from searchcrawl.rules.traps import build_values_pattern

#: A page with less text than this is next to empty. Of 379 pages of Debian's documentation one is that has scripts: a template.
NEXT_TO_NOTHING: Final = 250
#: A page with more text than this is whole, whatever scripts, empty elements and notices it has.
ENOUGH_BYTES: Final = 1500
#: What a page has to gain, at least, so that rendering it was worth it: half as much text again, and a paragraph; of a page
#: with a few words, such as "Loading", ten times as much is enough, and of one without text any.
_GAIN_RATIO: Final = 1.5
_GAIN_BYTES: Final = 200
_GAIN_OF_FEW: Final = 10
#: A set of URLs is rendered where at least one in so many of its pages gained.
_ONE_IN: Final = 4
#: So many pages of a set are counted; then half of them are forgotten, so that later ones weigh as much.
_MOST_COUNTED: Final = 64
#: Of the pages that are not rendered, one in so many is.
SAMPLE_ONE_IN: Final = 50


class Shell(NamedTuple):
    """What the plain answer of a page has: bytes of text that a reader sees, scripts, and signs of an application.

    ``root`` is the first empty element into which frameworks build a page, as "#root"; ``notice``: a noscript element
    names JavaScript.
    """

    text_bytes: int
    scripts: int = 0
    root: str | None = None
    notice: bool = False


class Need(IntEnum):
    """Whether a page needs a browser, by its plain answer alone. The numbers are part of keys in the store."""

    #: its text is there
    NONE = 0
    #: it may be whole, and may be a frame that scripts fill
    DOUBTFUL = 1
    #: it is a frame that scripts fill
    CERTAIN = 2


class Judgement(NamedTuple):
    """Whether a page needs a browser, and why."""

    need: Need
    reason: str


def judge(shell: Shell) -> Judgement:
    """Judges the plain answer of a page."""
    text, scripts = shell.text_bytes, shell.scripts
    if not scripts:
        return Judgement(Need.NONE, "it has no scripts")
    sign = f"an empty element {shell.root}" if shell.root is not None else "a noscript notice" if shell.notice else None
    if text < NEXT_TO_NOTHING:
        little = f"{text} bytes of text and {_count(scripts)}"
        return Judgement(Need.DOUBTFUL, little) if sign is None else Judgement(Need.CERTAIN, f"{sign}, {little}")
    if sign is not None and text < ENOUGH_BYTES:
        return Judgement(Need.DOUBTFUL, f"{sign}, {text} bytes of text and {_count(scripts)}")
    return Judgement(Need.NONE, "it has text without its scripts")


def _count(scripts: int) -> str:
    return "1 script" if scripts == 1 else f"{scripts} scripts"


def has_gained(before: int, after: int) -> bool:
    """Whether a page has so many more bytes of text after it was rendered that it is another page."""
    least = min(_GAIN_BYTES, max(1, _GAIN_OF_FEW * before))
    return after >= before + least and after >= _GAIN_RATIO * before


def build_key(url: str, need: Need) -> int:
    """The key of the set of a URL (an identity): URLs that differ only in numbers, ids and parameter values.

    A URL without any is a set of its own. A hash and no text: what is forgotten must not stay here.
    """
    pattern = build_values_pattern(url) or url
    return xxhash.xxh3_64_intdigest(f"{int(need)} {pattern}".encode("utf-8", "surrogatepass")) - (1 << 63)


def is_worth_it(rendered: int, gained: int) -> bool:
    """Whether the pages of a set are rendered, of which so many were and so many of these had more text then."""
    return gained * _ONE_IN >= rendered > 0


def count(rendered: int, gained: int, *, gain: bool) -> tuple[int, int]:
    """The two numbers of a set after one more of its pages was rendered."""
    if rendered >= _MOST_COUNTED:
        rendered, gained = rendered // 2, gained // 2
    return rendered + 1, gained + gain


def is_sampled(url: str, run_id: int) -> bool:
    """Whether a page is rendered in this run to see whether it gains; the same for each visit of the run."""
    return xxhash.xxh3_64_intdigest(f"{run_id} {url}".encode("utf-8", "surrogatepass")) % SAMPLE_ONE_IN == 0
