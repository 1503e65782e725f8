"""The table ``[feeds]``: files that are written of the documents of a source, beside the index (K4)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple

from pydantic import AfterValidator, Field

from searchcrawl.sources.values import FilePath, Table, refuse

Format = Literal["jsonl", "json", "csv", "xml", "parquet"]
FORMATS: Final[tuple[Format, ...]] = ("jsonl", "json", "csv", "xml", "parquet")
#: Its library is an extra.
PARQUET: Final = "parquet"
_PLACE: Final = re.compile(r"%(?:\((\w*)\)s|(%)|)")
_PLACES: Final = ("name", "time", "delta")
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,20}://")
_TIME: Final = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}-[0-9]{2}-[0-9]{2}Z"
_NUMBER: Final = "{:06d}"
_DELTA: Final = "delta"


class Feed(Table):
    """A file of a source's documents."""

    format: Format | None = Field(None, description="What is written; without it the ending of the file says it.")
    delta: bool = Field(
        False,
        description="Write what has changed since the last delta, removals included, instead of all documents; each delta "
        "is a file of its own, whose name has `%(delta)s`.",
    )


class FeedFile(NamedTuple):
    """A feed by its path as it was written, which may have placeholders; ``format`` is never None.

    ``receiver`` is its name among the receivers of its source: that of its table ``[receivers.NAME]``, or one that no table has.
    """

    name: str
    format: Format
    delta: bool
    receiver: str

    def render(self, source: str, moment: datetime, number: int) -> str:
        """The path of a file, as in the source file."""
        values = {"name": source, "time": f"{moment:%Y-%m-%dT%H-%M-%SZ}", _DELTA: _NUMBER.format(number)}
        return _PLACE.sub(lambda found: values[found[1]] if found[1] else "%", self.name)

    def find_number(self, source: str, file_name: str) -> int | None:
        """The number of the delta whose name a file in the folder of this feed has, 0 for a file of all documents.

        None: it is no file of this feed.
        """
        values = {"name": re.escape(source), "time": _TIME, _DELTA: "(?P<number>[0-9]{1,15})"}
        name, form, end = Path(self.name).name, "", 0
        for place in _PLACE.finditer(name):
            again = place[1] == _DELTA and "(?P" in form
            form += re.escape(name[end : place.start()])
            form += "[0-9]+" if again else values[place[1]] if place[1] else "%"
            end = place.end()
        found = re.fullmatch(form + re.escape(name[end:]), file_name, re.DOTALL)
        return None if found is None else int(found.groupdict().get("number") or 0)


def _check_feeds(feeds: Mapping[str, Feed]) -> Mapping[str, Feed]:
    for name, feed in feeds.items():
        wrong = find_wrong_name(name, feed)
        if wrong is not None:
            refuse(wrong, key=name)
    return feeds


def find_wrong_name(name: str, feed: Feed) -> str | None:
    """What is wrong with the name of a feed; None for a good one."""
    if _SCHEME.match(name):
        return "must be the path of a file: only files of this machine are written"
    if name.endswith("/") or Path(name).name in {"", ".."}:
        return "must be the path of a file"
    places = [found[1] for found in _PLACE.finditer(name) if not found[2]]
    for place in places:
        if place not in _PLACES:
            known = ", ".join(f"%({each})s" for each in _PLACES)
            return f"there are {known}, and %% for a percent sign"
    if _PLACE.sub("", str(Path(name).parent)) != str(Path(name).parent):
        return "placeholders belong into the name of the file, not of its folder"
    if feed.format is None and Path(name).suffix.removeprefix(".") not in FORMATS:
        return f"the name must end in {', '.join(f'.{each}' for each in FORMATS)}, or format says what is written"
    if feed.delta and _DELTA not in places:
        return "each delta is a file of its own: its name must have %(delta)s, the number of the delta"
    if not feed.delta and _DELTA in places:
        return "%(delta)s is the number of a delta: set delta = true"
    return None


Feeds = Annotated[Mapping[FilePath, Feed], AfterValidator(_check_feeds)]


def list_files(feeds: Mapping[str, Feed]) -> Iterator[FeedFile]:
    """The feeds of a source, with their formats."""
    for name, feed in feeds.items():
        # Without one its name is refused (``find_wrong_name``).
        if (form := find_format(name, feed)) is not None:
            yield FeedFile(name, form, feed.delta, f"feed:{name}")


def find_format(name: str, feed: Feed) -> Format | None:
    """The format of a feed: what it says, or what its name ends in."""
    ending = Path(name).suffix.removeprefix(".")
    return feed.format or next((each for each in FORMATS if each == ending), None)
