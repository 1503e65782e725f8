"""Whether a page needs a browser, and whether it is whole once one has rendered it (C10, C11, L3). Pure.

The plain answer says it for certain, or leaves a doubt, or shows a page that is whole without its scripts. About the
last two the sets of URLs that are alike are asked as well: what rendering brought for them before decides about the next
ones. A sample of the pages that are not rendered is, so that a site that is rebuilt is noticed.

A script, a frame or data that fails, or a page that is not done in time, may take the text away for a while. What is seen
is compared with a record that is kept with the document; a page that ends the same way in some runs is as it is now.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import IntEnum, StrEnum
from typing import Final, NamedTuple

import orjson
import xxhash

from searchcrawl import urls
from searchcrawl.codes import REDIRECT_STATUSES
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


#: A page that ends incomplete in so many runs, each time the same way, is as it is now.
RUNS: Final = 3
#: What rows keep of a page that was rendered to its end, and still has next to no text.
NO_TEXT: Final = "next to no text"
#: The kinds of parts that write the text of a page, those first without which nothing else runs.
_WRITING: Final = ("script", "data", "frame")
#: The code of what did not reach the page.
_NOT_GIVEN: Final = 0
#: What ends the kind of what a page was not waited for.
_KIND: Final = re.compile(" of |: ")
_NO_CONTENT: Final = frozenset({204, 205})
_HTML: Final = frozenset({"text/html", "application/xhtml+xml"})
#: The most of what was refused that is kept, and the longest reason.
_MOST_REFUSED: Final = 5
_MOST_CHARACTERS: Final = 100
_DIGEST_CHARACTERS: Final = 8


class Part(NamedTuple):
    """Something that a page asked for, and how that ended.

    ``kind`` is ``script`` (modules and workers too), ``style``, ``frame`` or ``data`` (fetch, XHR). ``code`` is the status
    of the answer, or as for a page what kept it from coming; 0: the page did not wait for it, or CORS kept it from the page.
    ``type`` is the media type of the answer, in lower case, empty where it named none. ``is_empty``: it came without a body.
    What a rule refused is no part: ``Found.refused`` counts it.
    """

    url: str
    kind: str
    code: int
    type: str = ""
    is_empty: bool = False


class PartEnd(StrEnum):
    """How a part ended; the values are names in the record."""

    SCRIPT = "script"
    JSON = "json"
    HTML = "html"
    #: an answer without a body
    EMPTY = "empty"
    #: a redirect: where it leads is another part
    REDIRECT = "redirect"
    OTHER = "other"
    FAILED = "failed"


class Missing(NamedTuple):
    """What a page lacked, in words; ``key`` is the same in each run.

    ``is_new``: it was there when the known text was made. ``url`` and ``code`` are those of a part.
    """

    key: str
    words: str
    is_new: bool
    url: str | None = None
    code: int = 0


class Found(NamedTuple):
    """A page as a browser left it: bytes of its visible text, and of that of its plain answer."""

    text: int
    plain: int
    parts: Sequence[Part] = ()
    gave_up: str | None = None
    refused: Mapping[str, int] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderRecord:
    """What is kept with a document of how its page was rendered.

    ``text`` and ``plain`` are as in ``Found``, None where nothing is known. ``parts`` are the digests of the parts by how they ended,
    ``missing`` the keys of what was lacking, ``accepted`` those of it that belong to the page as it is now. ``refused`` is what the
    last visit was refused. ``end`` is a digest of what was lacking in the last visit, ``runs`` in how many runs in a row, ``run``
    the completed run before the last of them.
    """

    text: int | None = None
    plain: int | None = None
    parts: Mapping[PartEnd, frozenset[str]] = field(default_factory=dict)
    missing: frozenset[str] = frozenset()
    accepted: frozenset[str] = frozenset()
    refused: tuple[tuple[str, int], ...] = ()
    end: str | None = None
    runs: int = 0
    run: int = 0

    def find_end(self, part: Part) -> PartEnd | None:
        """How a part ended when the known text was made; None where it was not asked for."""
        digest = _digest(part.url)
        return next((end for end, digests in self.parts.items() if digest in digests), None)


class Look(NamedTuple):
    """What a page is in comparison with its record.

    ``missing`` is what it lacks, but for what belongs to it as it is now; ``runs`` in how many runs in a row it ended so. ``is_less``:
    something of it was there when the known text was made, and that had more text. ``kept`` is the record if the known text
    stays, ``taken`` the one if this text takes its place.
    """

    missing: tuple[Missing, ...]
    runs: int
    is_less: bool
    kept: RenderRecord
    taken: RenderRecord

    @property
    def lacks(self) -> str | None:
        """What the page lacks first, in words; None where it is whole, or as it is now."""
        return self.missing[0].words if self.missing and not self.is_as_it_is else None

    @property
    def is_as_it_is(self) -> bool:
        """Whether it ended so in so many runs that this is the page."""
        return self.runs >= RUNS


def look(known: RenderRecord | None, found: Found, *, run: int) -> Look:
    """Compares a page with its record; ``run`` is the completed run before this one."""
    before = known or RenderRecord()
    ends = [*_find_failing(before, found.parts)]
    if found.gave_up is not None:
        # What follows names one of several requests, or quotes an error.
        key = _digest(_KIND.split(found.gave_up, maxsplit=1)[0])
        ends.append(Missing(key, found.gave_up, key not in before.accepted))
    opened = [end for end in ends if end.is_new or end.key not in before.accepted]
    if not opened and (frame := _find_frame(before, found)) is not None:
        ends.append(frame)
        opened.append(frame)
    end = _digest(" ".join(sorted({each.key for each in opened}))) if opened else None
    runs = _count_runs(before, end, run)
    is_less = any(each.is_new for each in opened) and (before.text is None or found.text < before.text)
    refused = _choose_refused(found.refused)
    accepted = {each.key for each in ends if runs >= RUNS or (each.key in before.accepted and not each.is_new)}
    taken = RenderRecord(
        text=found.text,
        plain=found.plain,
        parts=_sort_parts(found.parts),
        missing=frozenset(each.key for each in ends),
        accepted=frozenset(accepted),
        refused=refused,
    )
    if end is not None and runs < RUNS:
        taken = replace(taken, end=end, runs=runs, run=run)
    kept = replace(before, refused=refused, end=end, runs=runs, run=run if end else 0)
    return Look(tuple(sorted(opened, key=lambda each: not each.is_new)), runs, is_less, kept, taken)


def find_failing(parts: Iterable[Part]) -> list[Missing]:
    """The parts without which a page may have no text, and which failed, whatever was before."""
    return _find_failing(RenderRecord(), parts)


def _find_failing(before: RenderRecord, parts: Iterable[Part]) -> list[Missing]:
    found: dict[str, Missing] = {}
    for kind in _WRITING:
        for part in parts:
            if part.kind != kind:
                continue
            now, known = classify(part), before.find_end(part)
            if now is not PartEnd.FAILED and not _has_changed(known, now):
                continue
            was_there = known not in {None, PartEnd.FAILED}
            if part.code == _NOT_GIVEN and not was_there:
                # Pages ask again, and give up what they have asked for before.
                continue
            key = _digest(urls.without_query(part.url))
            if not was_there and key not in before.missing:
                # What never came may have another URL each time.
                key = _digest(f"{part.kind} {urls.origin_of(urls.resolve(part.url))} {part.code} {part.type}")
            is_new = was_there or key not in before.missing
            missing = Missing(key, _describe(part, now, known), is_new, part.url, part.code)
            if key not in found or (is_new and not found[key].is_new):
                found[key] = missing
    return list(found.values())


def classify(part: Part) -> PartEnd:
    """How a part ended. A script that is 204, or in HTML, is none; one without a body may be meant so."""
    if part.code >= 400 or part.code == _NOT_GIVEN:
        return PartEnd.FAILED
    kind = part.type
    if part.code in REDIRECT_STATUSES:
        return PartEnd.REDIRECT
    if part.is_empty or part.code in _NO_CONTENT:
        end = PartEnd.EMPTY
    elif kind in _HTML:
        end = PartEnd.HTML
    elif kind.endswith("json"):
        end = PartEnd.JSON
    elif "javascript" in kind or "ecmascript" in kind:
        end = PartEnd.SCRIPT
    else:
        end = PartEnd.OTHER
    is_none = part.kind == "script" and (end is PartEnd.HTML or part.code in _NO_CONTENT)
    return PartEnd.FAILED if is_none else end


def _has_changed(before: PartEnd | None, now: PartEnd) -> bool:
    """Whether the answer is of another kind than it was; a type that says little is like all others."""
    if before is None or before in {now, PartEnd.FAILED, PartEnd.REDIRECT}:
        return False
    return now in {PartEnd.EMPTY, PartEnd.HTML, PartEnd.REDIRECT} or PartEnd.OTHER not in {before, now}


def _describe(part: Part, now: PartEnd, before: PartEnd | None) -> str:
    shown = urls.without_query(part.url)
    if part.code >= 400:
        return f"{shown} failed with {part.code}"
    if part.code == _NOT_GIVEN:
        return f"{shown} did not reach the page: its script gave it up, or CORS refused it"
    if now is PartEnd.EMPTY or part.code in _NO_CONTENT:
        return f"{shown} has no body ({part.code})"
    if now is PartEnd.REDIRECT:
        return f"{shown} redirects now ({part.code}), and was {before}"
    if now is PartEnd.FAILED:
        return f"{shown} is {part.type}, and no script"
    return f"{shown} is {part.type or 'of no type'} now, and was {before}"


def _find_frame(before: RenderRecord, found: Found) -> Missing | None:
    """That a page shows no more than its plain answer, or next to nothing, where its known text had much more."""
    key, now = _digest("frame"), found.text
    if before.text is None or before.plain is None or now >= before.text or key in before.accepted:
        return None
    is_frame = not has_gained(found.plain, now) or (is_next_to_empty(now) and has_gained(now, before.text))
    if not is_frame or not has_gained(before.plain, before.text):
        return None
    return Missing(key, f"it shows {now} bytes of text, and no more than its frame, where it had {before.text}", True)


def _count_runs(before: RenderRecord, end: str | None, run: int) -> int:
    if end is None:
        return 0
    if end != before.end:
        return 1
    # All runs since the last completed one count as one.
    return before.runs + (run != before.run)


def _sort_parts(parts: Iterable[Part]) -> dict[PartEnd, frozenset[str]]:
    sorted_parts: dict[PartEnd, set[str]] = {}
    for part in parts:
        if part.kind in _WRITING:
            sorted_parts.setdefault(classify(part), set()).add(_digest(part.url))
    return {end: frozenset(digests) for end, digests in sorted_parts.items()}


def _choose_refused(refused: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    most = sorted(refused.items(), key=lambda pair: (-pair[1], pair[0]))[:_MOST_REFUSED]
    return tuple((reason[:_MOST_CHARACTERS], count) for reason, count in most)


def is_next_to_empty(text: int) -> bool:
    """Whether a page has next to no text."""
    return text < NEXT_TO_NOTHING


def _digest(text: str) -> str:
    return xxhash.xxh32_hexdigest(text.partition("#")[0].encode("utf-8", "surrogatepass"))


def dump(record: RenderRecord) -> str:
    """A record as rows keep it, of some 4 KB at most."""
    values = {each.name: getattr(record, each.name) for each in fields(record)}
    kept = {name: value for name, value in values.items() if value or value == 0}
    return orjson.dumps(kept, default=_join, option=orjson.OPT_NON_STR_KEYS).decode()


def parse(text: str | None) -> RenderRecord | None:
    """What a row keeps; None where it keeps nothing."""
    if text is None:
        return None
    values = orjson.loads(text)
    parts = {PartEnd(end): _split(digests) for end, digests in values.get("parts", {}).items()}
    return RenderRecord(
        **values
        | {
            "parts": parts,
            "missing": _split(values.get("missing", "")),
            "accepted": _split(values.get("accepted", "")),
            "refused": tuple((reason, count) for reason, count in values.get("refused", ())),
        }
    )


def _join(digests: Collection[str]) -> str:
    return "".join(sorted(digests))


def _split(joined: str) -> frozenset[str]:
    return frozenset(joined[at : at + _DIGEST_CHARACTERS] for at in range(0, len(joined), _DIGEST_CHARACTERS))
