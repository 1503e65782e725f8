"""The tables ``[receivers.NAME]`` of searchcrawl.toml: who gets the documents of sources besides the index (L14)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import ConfigDict, Field, model_validator

from searchcrawl.sources.feeds_table import Feed, FeedFile, Format, find_format, find_wrong_name
from searchcrawl.sources.plugin_classes import PluginName
from searchcrawl.sources.privacy import Privacy
from searchcrawl.sources.values import (
    LIST,
    Check,
    Count,
    FilePath,
    IndexUrl,
    Table,
    refuse,
    refuse_until_later,
    require_form,
)

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
ReceiverNames = Annotated[tuple[ReceiverName, ...], LIST]


def _check_days(days: int) -> int:
    refuse_until_later()


class ReceiverTable(Table):
    """A receiver besides the index; with ``class`` it may have keys of its own, which its class gets as arguments."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Any]
    #: one of them may be a password
    own_privacy: ClassVar[Privacy] = Privacy.SECRET

    type: Kind | None = Field(
        None, description="An embedded index, a Solr server, or files of documents; or else `class`."
    )
    path: FilePath | None = Field(
        None,
        description="The folder of an embedded index, without it `var/receivers/NAME`; the path of a file, as the name of a feed.",
    )
    format: Format | None = Field(
        None, description="What is written to a file; without it the ending of its path says it."
    )
    delta: bool = Field(
        False,
        description="Write what has changed since the last file, removals included, instead of all documents; the path has "
        "`%(delta)s`.",
    )
    url: IndexUrl | None = Field(
        None, description="The URL of a Solr server; it ends in the name of a core, a collection or an alias."
    )
    class_: PluginName | None = Field(
        None,
        alias="class",
        description="A class of your own; all further keys of the table are arguments of its constructor.",
    )
    mode: Literal["push", "list"] = Field(
        "push",
        description="`push` gives it documents as soon as they are sent to the index; `list` all of them at the end of a run.",
    )
    report: Literal["delta", "all"] = Field(
        "delta",
        description="`delta` tells it what is new, changed or deleted; `all` at the end of a completed run each other "
        "document as well, as unchanged.",
    )
    rollback_days: Annotated[Count, Check(_check_days)] | None = Field(
        None, json_schema_extra={"unit": "days"}, description="Not available yet."
    )

    @classmethod
    def takes_key(cls, name: str, table: Mapping[str, Any]) -> bool:
        """Whether a key that no field has is one of a class of the user's own."""
        return "class" in table and _OWN_KEY.fullmatch(name) is not None

    @model_validator(mode="after")
    def _check(self) -> ReceiverTable:
        if (self.type is None) == (self.class_ is None):
            refuse("one of type and class is required" if self.type is None else "not together with type", key="class")
        for key, kinds in _TYPES_OF_KEYS.items():
            if key in self.model_fields_set and self.type not in {None, *kinds}:
                names = " or ".join(f'"{kind}"' for kind in kinds)
                refuse(f"is of type = {names}", key=key)
        if self.type == "solr" and self.url is None:
            refuse('is required where type is "solr"', key="url")
        if self.type == "files":
            self._check_files()
        return self

    def _check_files(self) -> None:
        if self.path is None:
            refuse('is required where type is "files"', key="path")
        elif (wrong := find_wrong_name(self.path, self._feed)) is not None:
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
            key: getattr(self, key) for key in ("path", "url", "format", "delta") if key in self.model_fields_set
        }
        return {**own, **self.__pydantic_extra__}
