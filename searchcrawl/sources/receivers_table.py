"""``[feeds]`` and ``[receivers.NAME]``: files of documents, and who else gets documents besides the index (K4, L14)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal, NamedTuple, get_args

from pydantic import AfterValidator, ConfigDict, Field

from searchcrawl.sources.plugin_classes import PluginName
from searchcrawl.sources.privacy import Privacy
from searchcrawl.sources.values import (
    Check,
    Count,
    FilePath,
    IndexUrl,
    ListOf,
    Table,
    key,
    refuse,
    refuse_until_later,
    require_form,
)

Format = Literal["jsonl", "json", "csv", "xml", "parquet"]
FORMATS: Final[tuple[Format, ...]] = get_args(Format)
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

    format: Format | None = key(None, "What is written; without it the ending of the file says it.")
    delta: bool = key(
        False,
        "Write what has changed since the last delta, removals included, instead of all documents; each delta "
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


_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
Kind = Literal["local", "solr", "files"]
_OWN_KEY: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
#: The types that have a key, and others not.
_TYPES_OF_KEYS: Final[Mapping[str, tuple[Kind, ...]]] = {
    "path": ("local", "files"),
    "url": ("solr",),
    "format": ("files",),
    "delta": ("files",),
    "mode": ("local", "solr"),
    "report": ("local", "solr"),
}

ReceiverName = Annotated[
    str,
    Privacy.PUBLIC,
    Check(require_form(_NAME, "must be at most 64 small letters, digits and _-, no _- first"), "name of a receiver"),
]
ReceiverNames = ListOf[ReceiverName]


def _check_days(days: int) -> int:
    refuse_until_later()


class ReceiverTable(Table):
    """A receiver besides the index; with ``class`` it may have keys of its own, which its class gets as arguments."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Any]
    #: one of them may be a password
    own_privacy: ClassVar[Privacy] = Privacy.SECRET

    type: Kind | None = key(None, "An embedded index, a Solr server, or files of documents; or else `class`.")
    path: FilePath | None = key(
        None,
        "The folder of an embedded index, without it `var/receivers/NAME`; the path of a file, as the name of a feed.",
    )
    format: Format | None = key(None, "What is written to a file; without it the ending of its path says it.")
    delta: bool = key(
        False,
        "Write what has changed since the last file, removals included, instead of all documents; the path has "
        "`%(delta)s`.",
    )
    url: IndexUrl | None = key(
        None, "The URL of a Solr server; it ends in the name of a core, a collection or an alias."
    )
    class_: PluginName | None = Field(
        None,
        alias="class",
        description="A class of your own; all further keys of the table are arguments of its constructor.",
    )
    mode: Literal["push", "list"] = key(
        "push",
        "`push` gives it documents as soon as they are sent to the index; `list` all of them at the end of a run.",
    )
    report: Literal["delta", "all"] = key(
        "delta",
        "`delta` tells it what is new, changed or deleted; `all` at the end of a completed run each other "
        "document as well, as unchanged.",
    )
    rollback_days: Annotated[Count, Check(_check_days)] | None = key(None, "Not available yet.", unit="days")

    @classmethod
    def takes_key(cls, name: str, table: Mapping[str, Any]) -> bool:
        """Whether a key that no field has is one of a class of the user's own."""
        return "class" in table and _OWN_KEY.fullmatch(name) is not None

    def _check_keys(self) -> None:
        if (self.type is None) == (self.class_ is None):
            refuse("one of type and class is required" if self.type is None else "not together with type", key="class")
        for name, kinds in _TYPES_OF_KEYS.items():
            if name in self.model_fields_set and self.type not in {None, *kinds}:
                names = " or ".join(f'"{kind}"' for kind in kinds)
                refuse(f"is of type = {names}", key=name)
        if self.type == "solr" and self.url is None:
            refuse('is required where type is "solr"', key="url")
        if self.type == "files":
            if self.path is None:
                refuse('is required where type is "files"', key="path")
            if (wrong := find_wrong_name(self.path, self._feed)) is not None:
                refuse(wrong, key="path")

    @property
    def _feed(self) -> Feed:
        return Feed(format=self.format, delta=self.delta)

    def build_feed(self, name: str) -> FeedFile | None:
        """The file that it is, under the name of the receiver; None for another type."""
        form = None if self.path is None else find_format(self.path, self._feed)
        if self.type != "files" or self.path is None or form is None:
            return None
        return FeedFile(self.path, form, self.delta, name)

    @property
    def arguments(self) -> dict[str, Any]:
        """What the constructor of its class gets."""
        own: dict[str, Any] = {
            name: getattr(self, name) for name in ("path", "url", "format", "delta") if name in self.model_fields_set
        }
        return {**own, **self.__pydantic_extra__}
