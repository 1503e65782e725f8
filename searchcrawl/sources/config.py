"""A source file as a value: what to crawl, and how (interface.md §1).

Every model is frozen; the names are those of the file, the defaults those of interface.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, NamedTuple

from pydantic import AfterValidator, Field, model_validator

from searchcrawl import urls
from searchcrawl.rules.identity import DEFAULT_NAMES
from searchcrawl.sources.attribute_table import Attributes
from searchcrawl.sources.fetch_values import Proxy, Windows, Zone
from searchcrawl.sources.login import Login
from searchcrawl.sources.refused_settings import why_refused
from searchcrawl.sources.rewrites import ParameterNames, Rewrites
from searchcrawl.sources.values import (
    LIST,
    Address,
    Amount,
    Charset,
    Count,
    FailureStatuses,
    FilePath,
    FilePaths,
    HeaderName,
    HeaderText,
    HeaderValue,
    HostRule,
    HostRules,
    Language,
    Networks,
    PathPrefixes,
    Percent,
    Ports,
    PositiveAmount,
    PositiveCount,
    PrefixUrl,
    ResolvedHost,
    Sitemaps,
    Table,
    Texts,
    WebUrls,
    not_available,
    once,
    refused,
)

_INDEX: Final = re.compile(r"\[[0-9]+\]")
_LATER_TYPES: Final = frozenset({"file", "table", "mail", "agent"})


def _source_type(text: str) -> str:
    if text in _LATER_TYPES:
        raise not_available()
    if text != "web":
        raise refused('must be "web"')
    return text


class Start(Table):
    """Where the crawl starts (A10).

    ``files`` are lists of URLs, one a line, relative to the project; ``sitemaps`` are "auto" (those of
    robots.txt and /sitemap.xml), "off", or a list.
    """

    urls: WebUrls = ()
    files: FilePaths = ()
    sitemaps: Sitemaps = "auto"


class HostBlock(Table):
    """A ``[[scope.host]]``: paths and ports of the hosts that match ``host``; it includes nothing by itself (B2, B3)."""

    host: HostRule
    include_paths: PathPrefixes = ()
    exclude_paths: PathPrefixes = ()
    include_ports: Ports = ()
    exclude_ports: Ports = ()

    @model_validator(mode="after")
    def _one_list_of_ports(self) -> HostBlock:
        if self.include_ports and self.exclude_ports:
            raise refused("not together with exclude_ports", key="include_ports")
        return self


class Scope(Table):
    """What may be requested (B1–B7); a limit of 0 is none."""

    allow_all: bool = False
    include_hosts: HostRules = ()
    exclude_hosts: HostRules = ()
    include_urls: Texts = ()
    exclude_urls: Texts = ()
    include_ports: Ports = ()
    exclude_ports: Ports = ()
    host: Annotated[tuple[HostBlock, ...], LIST] = ()
    depth: Count = 0
    follow_links: bool = True
    dynamic_pages: bool = True
    max_url_length: Count = 2048
    max_path_segments: Count = 16
    max_query_parameters: Count = 10
    max_repeated_segments: Count = 3
    max_urls: Count = 0
    strip_parameters: ParameterNames = DEFAULT_NAMES
    max_urls_per_pattern: Count = 0
    trap_after: Count = 200

    @model_validator(mode="after")
    def _one_list_of_ports(self) -> Scope:
        if self.include_ports and self.exclude_ports:
            raise refused("not together with exclude_ports", key="include_ports")
        return self


class Fetch(Table):
    """How it is requested (C1–C10); ``max_bytes`` is of the decoded body, ``max_minutes`` is unlimited at 0.

    ``sites`` caps the hosts that are asked at once (0: none); ``windows`` are read in ``timezone``, that of the
    machine where it is None.
    """

    concurrency: PositiveCount = 8
    host_concurrency: PositiveCount = 4
    max_minutes: Amount = 0.0
    sites: Count = 0
    delay_seconds: Amount = 1.0
    windows: Windows = ()
    timezone: Zone | None = None
    timeout_seconds: PositiveAmount = 30.0
    max_bytes: PositiveCount = 32 * 1024 * 1024
    max_redirects: Count = 10
    retries: Count = 3
    headers: Mapping[HeaderName, HeaderValue] = Field(default_factory=dict)
    proxy: Proxy | None = None
    resolve: Mapping[ResolvedHost, Address] = Field(default_factory=dict)
    verify_certificates: bool = True
    ca_file: FilePath | None = None
    client_certificate: FilePath | None = None
    client_key: FilePath | None = None
    private_networks: Networks = ()
    default_charset: Charset = "windows-1252"
    default_language: Language = ""


class Robots(Table):
    """Whose robots.txt rules are obeyed (C5); ``user_agent`` is the project's where it is None."""

    obey: bool = True
    user_agent: HeaderText | None = None
    crawl_delay: bool = True
    max_crawl_delay_seconds: Amount = 60.0


class Change(Table):
    """What makes a page changed: any of those listed differs (D2)."""

    condition: Annotated[tuple[Literal["date", "checksum", "etag"], ...], LIST, AfterValidator(once)] = (
        "date",
        "checksum",
    )


class Lifecycle(Table):
    """When documents leave and when pages are due again (D5, L3); ``recrawl_every_hours`` 0 is each run."""

    remove_on: FailureStatuses = (404, 410)
    max_delete_percent: Percent = 10.0
    max_delete_documents: Count = 1000
    recrawl_every_hours: Amount = 0.0
    trust_sitemap: bool = False


class Keep(Table):
    """What of the fetched is indexed (B8–B10); sizes are those of decoded bodies, a limit of 0 is none."""

    mime_types: Texts = ()
    exclude_mime_types: Texts = ()
    min_bytes: Count = 0
    max_bytes: Count = 0
    max_age_days: Amount = 0.0
    include_urls: Texts = ()
    exclude_urls: Texts = ()
    include_names: Texts = ()
    exclude_names: Texts = ()
    meta_robots: bool = True

    @model_validator(mode="after")
    def _some_size_is_left(self) -> Keep:
        if 0 < self.max_bytes < self.min_bytes:
            raise refused(f"must not be below min_bytes = {self.min_bytes} (got {self.max_bytes})", key="max_bytes")
        return self


class Display(Table):
    """A ``[[display]]``: access URLs that begin with ``from`` are shown with ``to`` instead (A4)."""

    from_: PrefixUrl = Field(alias="from")
    to: PrefixUrl


def _each_from_once(displays: tuple[Display, ...]) -> tuple[Display, ...]:
    seen = [urls.resolve(display.from_) for display in displays]
    for number, prefix in enumerate(seen):
        if prefix in seen[:number]:
            raise refused(f"the same prefix twice: {prefix}", key=f"[{number}].from")
    return displays


def _settings(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    for name, value in settings.items():
        reason = why_refused(name, value)
        if reason is not None:
            raise refused(reason, key=name)
    return settings


#: The parameter set of sources that name none (A3).
STANDARD: Final = "standard"


class Tables(Table):
    """The tables of a source file; also what ``[defaults]`` and each of ``[parameters.NAME]`` may hold."""

    start: Start = Field(default_factory=Start)
    scope: Scope = Field(default_factory=Scope)
    fetch: Fetch = Field(default_factory=Fetch)
    robots: Robots = Field(default_factory=Robots)
    login: Login = Field(default_factory=Login)
    change: Change = Field(default_factory=Change)
    lifecycle: Lifecycle = Field(default_factory=Lifecycle)
    keep: Keep = Field(default_factory=Keep)
    attributes: Attributes = Field(default_factory=Attributes)
    display: Annotated[tuple[Display, ...], LIST, AfterValidator(_each_from_once)] = ()
    rewrite: Rewrites = ()
    settings: Annotated[Mapping[str, Any], AfterValidator(_settings)] = Field(default_factory=dict)


class SourceFile(Tables):
    """All keys of a source file; ``parameters`` is the name of a set of searchcrawl.toml."""

    type: Annotated[str, AfterValidator(_source_type)] = "web"
    title: str = ""
    parameters: str = STANDARD


class Origin(NamedTuple):
    """Where a value was written: the file, and the table in it whose keys are those of a source ("": its top)."""

    file: str
    table: str = ""

    def __str__(self) -> str:
        return f"{self.file} [{self.table}]" if self.table else self.file


class Source(SourceFile):
    """A source as it is crawled: its file, its set, the defaults and the built-in values, in this order.

    ``file`` is the path shown in messages and decisions, relative to the project. ``origins`` says
    of each key that is not built-in where it was written; ``references`` has, by key, the reference
    of each value that came from the environment or from a file.
    """

    name: str
    file: str
    origins: Mapping[str, Origin] = Field(default_factory=dict, repr=False)
    references: Mapping[str, Mapping[str, str]] = Field(default_factory=dict, repr=False)

    def located(self, key: str) -> tuple[str, str]:
        """The file where ``key`` (``scope.exclude_urls``, and what is below it) was written, and its name there."""
        of_table = ".".join(_INDEX.sub("", key).split(".")[:2])
        origin = self.origins.get(of_table) or self.origins.get(of_table.partition(".")[0]) or Origin(self.file)
        return origin.file, f"{origin.table}.{key}" if origin.table else key


#: Keys that a later release brings, with all that is below them.
LATER_KEYS: Final = frozenset({
    "groups", "collection", "mode", "test", "receiver", "document_service", "cache",
    "lifecycle.gone_confirmations", "lifecycle.error_runs_before_hidden", "lifecycle.orphans",
    "lifecycle.recrawl_min_hours", "lifecycle.recrawl_max_hours",
    "render", "attributes.values", "file", "table", "mail", "agent",
})  # fmt: skip
