"""Kinds of sources: what ``type`` in a source file may be, and what each of them is made of. Data, of any thread.

A further kind is a package in ``kinds`` with its classes, and a ``Kind`` here. All others ask the kind of a source for what
they need, and nobody asks for its name. Classes are named as texts, and loaded once a source needs them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

#: Tables that say how a web site is asked.
_OF_WEB: Final = frozenset({"start", "robots", "login", "render", "rewrite"})
#: Keys of [scope] that each kind has, and one that web sites have as well as listed kinds.
_OF_ALL: Final = frozenset({"max_urls"})
_SHARED: Final = frozenset({"depth"})
#: What a listed kind has of [fetch] by itself: nothing on this machine has to be spared.
_AT_ONCE: Final[Mapping[str, Mapping[str, Any]]] = {"fetch": {"delay_seconds": 0.0, "host_concurrency": 16}}


def load_named(name: str) -> Any:
    """What ``module.NAME`` names, as those of a ``Kind``."""
    module, _, attribute = name.rpartition(".")
    return getattr(import_module(module), attribute)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What a kind of source has of its own; ``module.Class`` names a class.

    Each document has a URL, which is its identity and names a host: hosts have delays, pauses and numbers of requests at
    once. A kind is *fetched* by a download handler, whose answers are those of a web server, or it is *listed*: a lister says
    what there is, and in which version, and a reader reads what is new or differs (``listing.model``).
    """

    #: the word in ``type``
    name: str
    #: what a source of it is about
    what: str = "documents"
    #: what its URLs are called in messages
    url: str
    #: the schemes of its URLs, each with its default port
    ports: Mapping[str, int]
    #: the host of URLs that name none: those of a scheme without a port
    host: str = ""
    #: makes documents of answers, and lists URLs to start with (``list_start_urls``): ``WebSpider``, or a subclass
    spider: str = "searchcrawl.spiders.web_spider.WebSpider"
    #: the download handler of Scrapy for all its schemes; where it is fetched: 200 with a type and a body, 304 for an ETag that
    #: still holds, 404 or 410 for what is gone. Any other end of a visit removes nothing
    handler: str = ""
    #: whether hosts are asked for more than the documents: robots.txt, sitemaps, a page that cannot be there
    asks_beside: bool = True
    #: where it is listed: ``listing.model.Lister`` and ``listing.model.Reader``
    lister: str = ""
    reader: str = ""
    #: where it is listed: what ``sources check`` asks the source itself; ``module.function`` of a ``Source`` and a ``Project``, which
    #: yields ``listing.model.Finding``
    checks: str = ""
    #: the model of its own table in source files, which has its name
    table: str = ""
    #: the origin of named values that its answers have (``answer_headers``): ``[attributes]`` maps them as ``"ORIGIN:NAME"``
    values: str = ""
    #: those keys of it that decide what its documents look like: after an edit of one everything is read again
    decides: tuple[str, ...] = ()
    #: where it is listed: its rules of ``[scope]`` (``rules.listed.ListedRules``) by ``Source``, ``module.function``
    rules: str = ""
    #: the keys of ``[scope]`` that it has besides those of all kinds; None: those of web sites
    scope: frozenset[str] | None = None

    @property
    def begins(self) -> tuple[str, ...]:
        """What its URLs begin with."""
        return tuple(f"{scheme}://" for scheme in self.ports)

    @property
    def says_access(self) -> bool:
        """Whether its answers may say who may see them, and have named values (``answer_headers``): a web server's may not."""
        return not self.asks_beside

    @property
    def defaults(self) -> Mapping[str, Mapping[str, Any]]:
        """Values of tables that are built in for it, where they are others than those of web sites."""
        return _AT_ONCE if self.is_listed else {}

    @property
    def is_listed(self) -> bool:
        """Whether a lister says what there is: a row is visited once that differs, and never by the time alone."""
        return bool(self.lister)

    def has_key(self, table: str, name: str = "") -> bool:
        """Whether source files of this kind have a key, as ``name`` of ``[table]``."""
        if any(kind.table and kind.name == table for kind in KINDS.values()):
            return table == self.name
        if self.is_listed and table in _OF_WEB:
            return False
        if table != "scope" or not name:
            return True
        if self.scope is not None:
            return name in self.scope or name in _OF_ALL
        return name in _SHARED or not any(name in (kind.scope or ()) for kind in KINDS.values())


WEB: Final = Kind(
    name="web",
    what="site",
    url="an http or https URL",
    ports={"http": 80, "https": 443},
    handler="searchcrawl.http.late_handler.LateHandler",
)
FILE: Final = Kind(
    name="file",
    what="folders",
    url="a file URL",
    ports={"file": 0, "sftp": 22, "smb": 445, "dav": 80, "davs": 443, "s3": 443},
    host="localhost",
    lister="searchcrawl.kinds.file.lister.FileLister",
    reader="searchcrawl.kinds.file.reader.FileReader",
    checks="searchcrawl.kinds.file.checking.find_wrong",
    table="searchcrawl.kinds.file.config.FileTable",
    values="file",
    decides=("permissions",),
    rules="searchcrawl.kinds.file.scope.build_rules",
    scope=frozenset({
        "include_paths", "exclude_paths", "include_names", "exclude_names", "min_bytes", "max_bytes", "max_age_days", "depth",
    }),
    asks_beside=False,
)  # fmt: skip
TABLE: Final = Kind(
    name="table",
    what="database",
    url="a row URL",
    ports={"row": 0},
    lister="searchcrawl.kinds.table.lister.TableLister",
    reader="searchcrawl.kinds.table.reader.TableReader",
    checks="searchcrawl.kinds.table.checking.find_wrong",
    table="searchcrawl.kinds.table.config.TableTable",
    values="column",
    decides=("query", "table", "key", "text", "title", "body", "body_type", "display", "modified", "allow", "deny"),
    rules="searchcrawl.kinds.table.identity.build_rules",
    scope=frozenset(),
    asks_beside=False,
)
#: By name. All are known when the first other module is imported: it reads their schemes.
KINDS: Final = {kind.name: kind for kind in (WEB, FILE, TABLE)}
#: Kinds that a later release brings; each has a table of its name in source files.
LATER: Final = frozenset({"mail", "agent"})
