"""A source file as a value: what to crawl, and how.

Every model is frozen; its names and defaults are those of the file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple

import re2
from pydantic import AfterValidator, Field, create_model

from searchcrawl import urls
from searchcrawl.exceptions import ConfigurationError
from searchcrawl.kind import KINDS, LATER, WEB, Kind, load_named
from searchcrawl.rules.lifecycle import FREE_DOCUMENTS, is_confirmed, is_evidence
from searchcrawl.rules.recrawl import Intervals
from searchcrawl.rules.rewriting import SESSION_NAMES, parse_replacement, re2_options
from searchcrawl.sources.attribute_table import Attributes
from searchcrawl.sources.fetch_tables import Fetch, Login, Render
from searchcrawl.sources.plugin_classes import PluginName
from searchcrawl.sources.privacy import Privacy
from searchcrawl.sources.receivers_table import Feeds, ReceiverNames
from searchcrawl.sources.source_settings import find_refusal
from searchcrawl.sources.values import (
    Amount,
    Check,
    Count,
    CssSelector,
    FailureStatuses,
    FilePaths,
    GroupNames,
    HeaderText,
    HostRule,
    HostRules,
    Language,
    ListOf,
    PathPrefixes,
    Percent,
    Ports,
    PositiveCount,
    PrefixUrl,
    PublicText,
    Rules,
    Sitemaps,
    Table,
    WebUrls,
    check_no_repeats,
    key,
    one_of,
    refuse,
    require,
)


class Content(Table):
    """What of the text of HTML pages is indexed; links and fields are read from all of a page."""

    mode: Literal["main", "all"] = key(
        "main", "`main` leaves out navigation, headers, footers and the like; `all` indexes all that a page shows."
    )
    keep: ListOf[CssSelector] = key(
        (), "CSS selectors; where they find elements of a page, the text of these is indexed, and no other."
    )
    drop: ListOf[CssSelector] = key(
        (), "CSS selectors of elements whose text is never indexed, also inside of what is kept."
    )
    language: Language = key("", "The language of all pages, whatever they declare; without it each page has its own.")


#: Characters that separate parameters or end a path or a query.
_NO_NAME: Final = frozenset("=&;/?# \t")


def _check_expression(text: str) -> str:
    try:
        re2.compile(text, re2_options())
    except re2.error as error:
        reason = error.args[0].decode("utf-8", "replace") if isinstance(error.args[0], bytes) else str(error)
        refuse(f"not an RE2 expression: {reason}")
    return text


_check_parameter: Final = require(
    lambda text: text.isprintable() and not set(text) & _NO_NAME,
    "must be the name of a parameter, with * for any characters",
)
ParameterNames = ListOf[Annotated[PublicText, Check(_check_parameter, "name of a parameter")]]


class Rewrite(Table):
    """One ``[[rewrite]]``: an expression and its replacement, or a plugin (UrlRewriter) as ``module:Class``."""

    match: Annotated[PublicText, Check(_check_expression, "RE2 expression")] | None = key(
        None, "An expression that is searched anywhere in the URL."
    )
    replace: Annotated[str, Privacy.PUBLIC] | None = key(
        None, r"What the match is replaced by; `\1` is its first group."
    )
    plugin: PluginName | None = key(
        None, "A class with the methods of `UrlRewriter`, in place of `match` and `replace`."
    )

    def _check_keys(self) -> None:
        if self.plugin is not None and (self.match is not None or self.replace is not None):
            refuse("not together with match and replace", key="plugin")
        if self.plugin is None and self.match is None:
            refuse("is required, or plugin", key="match")
        if self.plugin is None and self.replace is None:
            refuse("is required with match", key="replace")
        if self.match is not None and self.replace is not None:
            _check_groups(self.match, self.replace)


def _check_groups(match: str, replace: str) -> None:
    try:
        pieces = parse_replacement(replace)
    except ValueError as error:
        refuse(f"no such escape: {error}", key="replace")
    groups = re2.compile(match, re2_options()).groups
    wanted = max((piece for piece in pieces if isinstance(piece, int)), default=0)
    if wanted > groups:
        refuse(f"no group \\{wanted} in match", key="replace")


class Copies(Table):
    """Which documents are copies of each other, and what becomes of near copies (F2, F6)."""

    scope: Annotated[str, Privacy.PUBLIC, one_of(("source", "collection", "off"))] = key(
        "source",
        "Documents of the source with the same text, title and other indexed fields are copies: one is indexed, and lists "
        "the URLs of the others. With `collection` these are looked for in all sources that say so too and deliver to the index. "
        "With `off` each is indexed; canonical links count all the same.",
    )
    near: Annotated[str, Privacy.PUBLIC, one_of(("group", "remove", "off"))] = key(
        "group",
        "What becomes of near copies, whose texts differ in a few words: with `group` a search shows the best hit of "
        "them and lists the URLs of the others with it, with `off` each is a hit. With `remove` they are copies: after a completed run "
        "one is indexed, and the others leave, within the limits on deleting.",
    )

    def _check_keys(self) -> None:
        if self.near == "remove" and self.scope == "off":
            refuse('not with scope = "off"', key="near")


class ChangeTable(Table):
    """What makes a page changed (D2)."""

    condition: Annotated[ListOf[Literal["date", "checksum", "etag"]], AfterValidator(check_no_repeats)] = key(
        ("date", "checksum"), "A page is changed if any of these differs from the last visit."
    )


_INDEX: Final = re.compile(r"\[[0-9]+\]")


class Start(Table):
    """Where the crawl starts (A10)."""

    urls: WebUrls = key((), "The URLs that the crawl starts with.")
    files: FilePaths = key((), "Files with more of them, one URL a line; `#` starts a comment line.")
    sitemaps: Sitemaps = key(
        "auto",
        '`"auto"` reads the sitemaps that robots.txt names, `/sitemap.xml`, and the feeds that pages name; `"off"` none; or '
        "a list of URLs.",
    )


def _check_ports(table: HostBlock | Scope) -> None:
    if table.include_ports and table.exclude_ports:
        refuse("not together with exclude_ports", key="include_ports")


class HostBlock(Table):
    """A ``[[scope.host]]``: paths and ports of the hosts that match ``host``; it includes nothing by itself (B2, B3)."""

    host: HostRule = Field(description="The hosts that this block is about; it does not include them.")
    include_paths: PathPrefixes = key((), "Prefixes of paths; only URLs that begin with one are allowed.")
    exclude_paths: PathPrefixes = key((), "Prefixes of paths that are refused.")
    include_ports: Ports = key((), "The only ports that are allowed; not together with `exclude_ports`.")
    exclude_ports: Ports = key((), "Ports that are refused.")

    def _check_keys(self) -> None:
        _check_ports(self)


#: Files that programs leave beside those of people, and folders of such.
UNWANTED_NAMES: Final = ("~$*", ".~lock.*", "*.tmp", "Thumbs.db", ".git/")


class Scope(Table):
    """What may be requested (B1–B7); each kind of source has some of the keys (``kind``)."""

    allow_all: bool = key(False, "Allow every host that no other rule refuses.")
    include_hosts: HostRules = key((), "The hosts that may be requested.")
    exclude_hosts: HostRules = key((), "Hosts that are refused, even if another rule includes them.")
    include_urls: Rules = key((), "URL rules; hosts of URLs that match one may be requested as well.")
    exclude_urls: Rules = key((), "URL rules; a URL that matches one is refused.")
    include_ports: Ports = key((), "The only ports that are allowed; not together with `exclude_ports`.")
    exclude_ports: Ports = key((), "Ports that are refused, on every host.")
    host: ListOf[HostBlock] = key((), "Paths and ports of single hosts; blocks that match the same host add up.")
    depth: Count = key(
        0, "How far a URL may be from a start URL; URLs of a sitemap have depth 1, and 0 is no limit.", unit="links"
    )
    follow_links: bool = key(True, "Follow the links of pages.")
    dynamic_pages: bool = key(True, "Request URLs with a query (`?`).")
    max_url_length: Count = key(2048, "The longest URL (1004); 0 is no limit.", unit="characters")
    max_path_segments: Count = key(16, "The most parts of a path (961); 0 is no limit.", unit="segments")
    max_query_parameters: Count = key(10, "The most parameters of a query (961); 0 is no limit.", unit="parameters")
    max_repeated_segments: Count = key(
        3, "How often the same part may occur in a path (961); 0 is no limit.", unit="times"
    )
    max_urls: Count = key(0, "The most URLs of the source (955); 0 is no limit.", unit="URLs")
    include_paths: Rules = key(
        (), "Paths, from the root or relative to each of `roots`; only what is at or below one is listed."
    )
    exclude_paths: Rules = key((), "Paths, in the same way; what is at or below one is left out.")
    include_names: Rules = key(
        (), "Names of files, with `*` and `?`, or `re:` and an RE2 expression; only files that match one are listed."
    )
    exclude_names: Rules = key(
        UNWANTED_NAMES,
        "Names in the same way; files that match one are left out, and so are folders by one that ends with `/`.",
    )
    min_bytes: Count = key(0, "The smallest file that is listed; 0 is no limit.", unit="bytes")
    max_bytes: Count = key(0, "The largest file that is listed; 0 is no limit.", unit="bytes")
    max_age_days: Amount = key(
        0.0,
        "The greatest age of a file when it is found, by its last change; one that is known stays. 0 is no limit.",
        unit="days",
    )
    hash_routes: bool = key(
        False,
        "URLs with `#/` or `#!` are pages of their own (`http://host/#/users`), which are always rendered: for "
        "applications that lead by the fragment. Only with `render.mode` other than `never`.",
    )
    strip_parameters: ParameterNames = key(
        SESSION_NAMES, "Parameters that are removed from every URL, such as session and tracking ids; `*` is any text."
    )
    max_urls_per_pattern: Count = key(
        0, "The most URLs that differ only in numbers, ids and parameter values (961); 0 is no limit.", unit="URLs"
    )
    trap_after: Count = key(
        200,
        "A pattern of URLs that names its own URLs as fast as it is visited is visited last, and ended after so many more pages if it goes on so and its pages have no text of their own (961); 0 turns it off.",
        unit="pages",
    )

    def _check_keys(self) -> None:
        _check_ports(self)


class Robots(Table):
    """How robots.txt is read (C5)."""

    obey: bool = key(True, "Obey robots.txt, else `status` warns; sitemaps that it names are read in any case.")
    user_agent: Annotated[HeaderText, Privacy.PUBLIC] | None = key(
        None, "The name whose group of rules counts; without it `user_agent` of the project."
    )
    crawl_delay: bool = key(True, "Keep the delay that robots.txt asks for if it is the longer one.")
    max_crawl_delay_seconds: Amount = key(60.0, "The longest such delay that is kept.")


class Lifecycle(Table):
    """When documents leave the index, and when pages are visited again (D5, L3)."""

    remove_on: FailureStatuses = key((404, 410), "HTTP statuses that remove the document of a URL.")
    gone_confirmations: PositiveCount = key(
        1,
        "In how many runs a status of `remove_on` must be seen before it removes; a good visit in between "
        "begins the count anew.",
        unit="runs",
    )
    error_runs_before_hidden: Count = key(
        0,
        "After so many failed runs in a row the document of a URL is removed, at the end of a completed run "
        "and within the limits below, until the page answers again, also while its whole host is away; 0 is never.",
        unit="runs",
    )
    max_delete_percent: Percent = key(
        10.0,
        "If more of the source's documents (and more than 10) would be removed in a day, or since the last "
        "completed run, the removals wait in quarantine.",
    )
    max_delete_documents: Count = key(1000, "The same for a number of documents.", unit="documents")
    orphans: Literal["keep", "check", "delete"] = key(
        "check",
        "What becomes of documents that no page, sitemap or start list names any more: `keep` leaves them as "
        "they are, and does not visit them until something names them again; `check` visits them like all others; `delete` "
        "removes them after a completed run, within the limits.",
    )
    recrawl_every_hours: Amount = key(0.0, "A page is visited again after this time; 0 is in each run.")
    recrawl_min_hours: Amount = key(1.0, "The shortest such time of a page, where `recrawl_max_hours` is set.")
    recrawl_max_hours: Amount = key(
        0.0,
        "The longest such time of a page. Then each page has its own, which begins with `recrawl_every_hours`: "
        "it halves with each change of the page that a visit sees, and grows by half with each visit that sees none. 0: "
        "all pages have the same.",
    )
    trust_sitemap: bool = key(
        False,
        "Do not ask for a page whose date in the sitemap is not after its last visit, unless that was longer "
        "ago than `recrawl_max_hours`, where it is set, or the sitemap was wrong before.",
    )

    def _check_keys(self) -> None:
        if 0 < self.recrawl_max_hours < self.recrawl_min_hours:
            least = f"recrawl_min_hours = {self.recrawl_min_hours:g}"
            refuse(f"must not be below {least}", key="recrawl_max_hours")

    @property
    def intervals(self) -> Intervals:
        """How long pages wait for their next visit."""
        return Intervals.of_hours(self.recrawl_every_hours, self.recrawl_min_hours, self.recrawl_max_hours)

    def is_evidence(self, code: int, rule: str | None, failures: str | None) -> bool:
        """Whether a visit is evidence against the document, seen in enough runs; ``failures`` is what its row keeps."""
        return is_evidence(code, rule, self.remove_on) and is_confirmed(
            code, failures, remove_on=self.remove_on, confirmations=self.gone_confirmations
        )

    def allows(self, removals: int, documents: int) -> bool:
        """Whether so many removals of a source that had so many documents need no approval."""
        share = documents * self.max_delete_percent / 100
        return removals <= max(FREE_DOCUMENTS, share) and removals <= self.max_delete_documents


class Keep(Table):
    """What of the fetched pages is indexed (B8–B10); the others are 952, and their links are followed."""

    mime_types: Rules = key((), "The only MIME types that are indexed; `*` is any text.")
    exclude_mime_types: Rules = key((), "MIME types that are not indexed.")
    min_bytes: Count = key(0, "The smallest decoded body that is indexed; 0 is no limit.")
    max_bytes: Count = key(0, "The largest decoded body that is indexed; 0 is no limit.")
    max_age_days: Amount = key(0.0, "The greatest age of a page by its last modification; 0 is no limit.")
    include_urls: Rules = key((), "URL rules; only pages that match one are indexed.")
    exclude_urls: Rules = key((), "URL rules; pages that match one are not indexed.")
    include_names: Rules = key(
        (), "File names, with `*`, or `re:` and an RE2 expression; only pages that match one are indexed."
    )
    exclude_names: Rules = key(
        (), "File names, with `*`, or `re:` and an RE2 expression; pages that match one are not indexed."
    )
    meta_robots: bool = key(
        True,
        "Obey `noindex` and `nofollow` of pages and of X-Robots-Tag headers; `rel=nofollow` of a link counts in any case.",
    )

    def _check_keys(self) -> None:
        if 0 < self.max_bytes < self.min_bytes:
            refuse(f"must not be below min_bytes = {self.min_bytes}", key="max_bytes")


class Display(Table):
    """A ``[[display]]``: access URLs that begin with ``from`` are shown with ``to`` instead (A4)."""

    from_: PrefixUrl = Field(alias="from", description="The beginning of access URLs; the longest that matches counts.")
    to: PrefixUrl = Field(description="What the shown URL has in its place.")


def _check_displays(displays: tuple[Display, ...]) -> tuple[Display, ...]:
    seen = [urls.resolve(display.from_, listed=True) for display in displays]
    for number, prefix in enumerate(seen):
        if prefix in seen[:number]:
            refuse(f"the same prefix twice: {prefix}", key=(number, "from"))
    return displays


def _check_settings(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    for name, value in settings.items():
        reason = find_refusal(name, value)
        if reason is not None:
            refuse(reason, key=name)
    return settings


#: The parameter set of sources that name none (A3).
STANDARD: Final = "standard"


def _build_own_tables() -> type[Table]:
    """A model with the tables that kinds of sources have of their own, each by its name."""
    found: dict[str, Any] = {}
    for kind in KINDS.values():
        if kind.table:
            model = load_named(kind.table)
            found[kind.name] = model, key(model, f'What `type = "{kind.name}"` lists and reads.')
    return create_model("OwnTables", __base__=Table, **found)


if TYPE_CHECKING:
    OwnTables = Table
else:
    OwnTables = _build_own_tables()


class Tables(OwnTables):
    """The tables of a source file; also what ``[defaults]`` and each of ``[parameters.NAME]`` may hold."""

    later = frozenset({"collection", "cache", "tests", *LATER})

    start: Start = key(Start, "Where the crawl starts.")
    scope: Scope = key(Scope, "What may be requested.")
    fetch: Fetch = key(Fetch, "How it is requested.")
    robots: Robots = key(Robots, "How robots.txt is read.")
    login: Login = key(Login, "How the crawler logs in.")
    change: ChangeTable = key(ChangeTable, "What makes a page changed.")
    lifecycle: Lifecycle = key(Lifecycle, "When documents leave the index, and when pages are visited again.")
    keep: Keep = key(Keep, "What of the fetched pages is indexed; the links of all of them are followed.")
    render: Render = key(Render, "Which pages a browser renders, and when they are done.")
    content: Content = key(Content, "What of a page's text is indexed, and in which language it is.")
    copies: Copies = key(Copies, "Which documents are copies of each other, and what becomes of near copies.")
    attributes: Attributes = key(
        Attributes,
        'Further keys map a value of the document to an attribute: `"meta:NAME"`, `"header:NAME"`, `"jsonld:NAME"` (of a '
        'value within it `"jsonld:NAME.NAME"`), `"column:NAME"` of a row or `"file:NAME"` of a file `= "ATTRIBUTE"`.',
    )
    display: Annotated[ListOf[Display], AfterValidator(_check_displays)] = key(
        (), "URLs that are shown differently from how they are fetched."
    )
    rewrite: ListOf[Rewrite] = key((), "What becomes of links, in this order, before any rule is asked.")
    feeds: Feeds = key(dict, "Files of the documents of the index that each run writes, by their paths.")
    settings: Annotated[Mapping[str, Any], AfterValidator(_check_settings), Privacy.BY_NAME] = key(
        dict, "Settings of Scrapy for this source; those that break a promise are refused."
    )


#: What a run does with what it sees.
Mode = Literal["accept", "examine", "index_only"]


class SourceFile(Tables):
    """All keys of a source file."""

    type: Annotated[str, Privacy.PUBLIC, one_of(KINDS, LATER)] = key(WEB.name, "The kind of source.")
    title: Annotated[str, Privacy.PUBLIC] = key("", "A name of the source for people.")
    groups: GroupNames = key((), "Groups of sources that it belongs to; `search --group` is limited to one.")
    parameters: Annotated[str, Privacy.PUBLIC] = key(
        STANDARD, "The set of `[parameters.NAME]` in searchcrawl.toml that it takes."
    )
    mode: Mode = key(
        "accept",
        "What a run does: `accept` crawls and indexes; `examine` fetches and reports, and changes nothing in the "
        "index; `index_only` indexes what is known, and finds no new URLs in pages or sitemaps.",
    )
    spider: PluginName | None = key(
        None, "A subclass of `WebSpider`, which chooses links and fields; its module is beside scrapy.cfg."
    )
    document_service: PluginName | None = key(
        None, "A class that changes each document or keeps it out of the index; its module is beside scrapy.cfg."
    )
    receivers: ReceiverNames | None = key(
        None,
        "Which `[receivers.NAME]` of searchcrawl.toml get its documents besides the index; without it all of them.",
    )
    test: bool = key(False, "Crawl as always, and deliver nothing: no document and no removal.")


class Origin(NamedTuple):
    """Where a value was written: the file, and the table in it whose keys are those of a source ("": its top)."""

    file: str
    table: str = ""

    def __str__(self) -> str:
        return f"{self.file} [{self.table}]" if self.table else self.file

    def locate(self, key: str) -> tuple[str, str]:
        """The file, and the name that a key of a source has in it."""
        return self.file, f"{self.table}.{key}" if self.table else key


class Source(SourceFile):
    """A source as it is crawled: its file, its set, the defaults and the built-in values, in this order.

    ``path`` is that of its file in messages and decisions, relative to the project, and ``folder`` is the project's. ``origins`` has the place of each key that
    was written somewhere; ``references`` has the reference of each value from the environment or from a file.
    ``forgotten`` has the lines of ``forgotten.txt``, and ``user_converters`` are those of searchcrawl.toml: both hold for
    all sources of a project.
    """

    name: str
    path: str
    folder: Path = Path()
    forgotten: tuple[str, ...] = Field(default=(), repr=False)
    user_converters: Mapping[str, str] = Field(default_factory=dict, repr=False)
    origins: Mapping[str, Origin] = Field(default_factory=dict, repr=False)
    references: Mapping[str, Mapping[str, str]] = Field(default_factory=dict, repr=False)

    @property
    def kind(self) -> Kind:
        """What a source of its ``type`` is made of."""
        return KINDS[self.type]

    @property
    def own(self) -> Any:
        """The table that its kind has of its own: an instance of ``kind.table``, None where it has none."""
        return getattr(self, self.kind.name) if self.kind.table else None

    @property
    def says_displays(self) -> bool:
        """Whether what reads a document says the URL that is shown for it."""
        return bool(self.kind.table) and bool(getattr(self.own, "display", None))

    @property
    def title_column(self) -> str | None:
        """The column that has the title of each document, where one is named."""
        return getattr(self.own, "title", None) if self.kind.table else None

    @property
    def no_delivery_key(self) -> str | None:
        """The key because of which runs deliver nothing (D11, H6): what they bring waits until it is edited."""
        return "test" if self.test else "mode" if self.mode == "examine" else None

    @property
    def has_user_spider(self) -> bool:
        """Whether its spider may override what that of web sites does: one of a user, or that of another kind."""
        return self.spider is not None or self.kind.spider != WEB.spider

    @property
    def obeys_robots(self) -> bool:
        """Whether a robots.txt decides about its URLs."""
        return self.robots.obey and self.kind.asks_beside

    @property
    def has_document_plugins(self) -> bool:
        """Whether a class of a user sees each document that was read, and may change it."""
        return self.has_user_spider or self.document_service is not None or bool(self.settings.get("ITEM_PIPELINES"))

    @property
    def shares_copies(self) -> bool:
        """Whether its documents may be copies of those of other sources, and these of its own (F4)."""
        return self.copies.scope == "collection" and self.no_delivery_key is None

    @property
    def finds_urls(self) -> bool:
        """Whether new URLs are taken from pages and sitemaps (D11)."""
        return self.mode != "index_only"

    def build_error(self, key: str, message: str) -> ConfigurationError:
        """The error of a value, with the file in which it was written."""
        return ConfigurationError(*self.locate(key), message)

    def locate(self, key: str) -> tuple[str, str]:
        """The file in which ``key`` (as ``scope.exclude_urls[0]``) was written, and its name there."""
        of_table = ".".join(_INDEX.sub("", key).split(".")[:2])
        origin = self.origins.get(of_table) or self.origins.get(of_table.partition(".")[0]) or Origin(self.path)
        return origin.locate(key)
