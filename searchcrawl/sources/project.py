"""searchcrawl.toml as a value: what all sources of a project share (interface.md §1)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal
from urllib.parse import parse_qsl, urlsplit

from pydantic import AfterValidator, Field, model_validator

from searchcrawl import __version__
from searchcrawl.sources.config import LATER_KEYS as LATER_SOURCE_KEYS
from searchcrawl.sources.config import Tables
from searchcrawl.sources.schedule import Schedule, each_source_once, set_name
from searchcrawl.sources.values import (
    Contact,
    Count,
    FilePath,
    PositiveAmount,
    PositiveCount,
    Product,
    Table,
    WebUrl,
    not_available,
    refused,
)

FILE: Final = "searchcrawl.toml"
_SQLITE: Final = "sqlite:///"
_POSTGRESQL: Final = "postgresql+psycopg://"


def _store_url(text: str) -> str:
    if text.startswith(_POSTGRESQL):
        return _postgresql_url(text)
    path = text.removeprefix(_SQLITE)
    if path == text or not path or path == ":memory:" or not path.isprintable() or set(path) & set("?#%"):
        raise refused(
            f"must be {_SQLITE} and the path of a file, or {_POSTGRESQL}USER:PASSWORD@HOST/DATABASE of a database"
        )
    return text


def _postgresql_url(text: str) -> str:
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise refused("not a URL of a database") from None
    if not text.isprintable() or " " in text or parts.fragment or port == 0:
        raise refused("not a URL of a database")
    name = parts.path.removeprefix("/")
    if not name or "/" in name:
        raise refused("must end in the name of a database")
    if any("password" in key for key, _ in parse_qsl(parts.query, keep_blank_values=True)):
        # There it would be shown.
        raise refused(f"the password belongs before the host: {_POSTGRESQL}USER:PASSWORD@HOST/DATABASE")
    return text


def _cache_location(text: str) -> str:
    if text == "database":
        raise not_available()
    if text != "files":
        raise refused('must be "files"')
    return text


def _index_url(text: str) -> str:
    parts = urlsplit(text)
    if not parts.path.strip("/") or parts.query or parts.fragment:
        raise refused("must end in the name of a core, a collection or an alias")
    return text.rstrip("/")


SetName = Annotated[str, AfterValidator(set_name)]


class Store(Table):
    """Where the URL table is: ``sqlite:///var/x.db``, relative to the project, or a database of a PostgreSQL server."""

    url: Annotated[str, AfterValidator(_store_url)] = "sqlite:///var/searchcrawl.db"


class Cache(Table):
    """The document cache (E1, E2); both sizes count decoded bodies, in units of 1024 × 1024 or × 1024."""

    dir: FilePath = "var/cache"
    threshold_mb: PositiveAmount = 250.0
    preserve: bool = True
    location: Annotated[str, AfterValidator(_cache_location)] = "files"
    max_gb: PositiveAmount = 20.0

    @model_validator(mode="after")
    def _threshold_is_reached(self) -> Cache:
        # Fetching waits at max_gb for a delivery that starts at the threshold.
        if self.threshold_mb > self.max_gb * 1024:
            raise refused("must not be more than cache.max_gb", key="threshold_mb")
        return self

    @property
    def threshold_bytes(self) -> int:
        return round(self.threshold_mb * 1024 * 1024)

    @property
    def max_bytes(self) -> int:
        return round(self.max_gb * 1024**3)


class Index(Table):
    """Where documents go; ``url`` ends in the name of a core, a collection or an alias."""

    type: Literal["local", "solr"] = "local"
    path: FilePath = "var/index"
    url: Annotated[WebUrl, AfterValidator(_index_url)] | None = None

    @model_validator(mode="after")
    def _solr_is_somewhere(self) -> Index:
        if self.type == "solr" and self.url is None:
            raise refused('is required where index.type is "solr"', key="url")
        return self


class Logs(Table):
    """One log per source (J3)."""

    dir: FilePath = "var/log"
    level: Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"] = "INFO"
    max_bytes: PositiveCount = 1_000_000
    backups: Count = 2


class ProjectFile(Table):
    """All keys of searchcrawl.toml.

    ``defaults`` holds what sources take where neither they nor their set of ``parameters`` say.
    """

    contact: Contact
    user_agent: Product = "searchcrawl"
    store: Store = Field(default_factory=Store)
    cache: Cache = Field(default_factory=Cache)
    index: Index = Field(default_factory=Index)
    logs: Logs = Field(default_factory=Logs)
    defaults: Tables = Field(default_factory=Tables)
    parameters: Mapping[SetName, Tables] = Field(default_factory=dict)
    schedules: Annotated[Mapping[SetName, Schedule], AfterValidator(each_source_once)] = Field(default_factory=dict)


class Project(ProjectFile):
    """A project: its folder and its searchcrawl.toml. Relative paths start at ``root``.

    ``written`` is the content of the file as it was written, but for resolved references.
    """

    root: Path
    written: Mapping[str, Any] = Field(default_factory=dict, repr=False)

    def path(self, text: str) -> Path:
        """The absolute form of a path of a configuration file."""
        return self.root / text

    @property
    def sources_dir(self) -> Path:
        return self.root / "sources"

    @property
    def database_url(self) -> str:
        """``store.url``, that of a file with its absolute path."""
        path = self.store.url.removeprefix(_SQLITE)
        return self.store.url if path == self.store.url else f"{_SQLITE}{self.path(path)}"

    @property
    def cache_dir(self) -> Path:
        return self.path(self.cache.dir)

    @property
    def index_dir(self) -> Path:
        """The folder of the local index."""
        return self.path(self.index.path)

    @property
    def logs_dir(self) -> Path:
        return self.path(self.logs.dir)

    @property
    def user_agent_header(self) -> str:
        """What is sent as User-Agent: product, version, and whom to ask about the crawl."""
        return f"{self.user_agent}/{__version__} (+{self.contact})"


#: Keys that a later release brings, with all that is below them.
LATER_KEYS: Final = frozenset(f"{table}.{key}" for table in ("defaults", "parameters.*") for key in LATER_SOURCE_KEYS)
