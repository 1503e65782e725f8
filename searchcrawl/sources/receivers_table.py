"""The tables ``[receivers.NAME]`` of searchcrawl.toml: who gets the documents of sources besides the index (L14)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import ConfigDict, Field, model_validator

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
_TYPES: Final = ("local", "solr")
_OWN_KEY: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
_KEYS_OF_TYPES: Final[Mapping[str, str]] = {"path": "local", "url": "solr"}

ReceiverName = Annotated[
    str,
    Privacy.PUBLIC,
    Check(require_form(_NAME, "must be at most 64 small letters, digits and _-, no _- first"), "name of a receiver"),
]
ReceiverNames = Annotated[tuple[ReceiverName, ...], LIST]


def _check_type(text: str) -> str:
    if text == "files":
        refuse_until_later()
    if text not in _TYPES:
        refuse('must be "local" or "solr"')
    return text


def _check_days(days: int) -> int:
    refuse_until_later()


class ReceiverTable(Table):
    """A receiver besides the index; with ``class`` it may have keys of its own, which its class gets as arguments."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Any]
    #: one of them may be a password
    own_privacy: ClassVar[Privacy] = Privacy.SECRET

    type: Annotated[str, Privacy.PUBLIC, Check(_check_type, '`"local"` or `"solr"`')] | None = Field(
        None, description="An embedded index, or a Solr server; or else `class`."
    )
    path: FilePath | None = Field(None, description="The folder of an embedded index; without it `var/receivers/NAME`.")
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
        for key, kind in _KEYS_OF_TYPES.items():
            if getattr(self, key) is not None and self.type not in {None, kind}:
                refuse(f'is of type = "{kind}"', key=key)
        if self.type == "solr" and self.url is None:
            refuse('is required where type is "solr"', key="url")
        return self

    @property
    def arguments(self) -> dict[str, Any]:
        """What the constructor of its class gets."""
        places = {key: getattr(self, key) for key in _KEYS_OF_TYPES if getattr(self, key) is not None}
        return {**places, **self.__pydantic_extra__}
