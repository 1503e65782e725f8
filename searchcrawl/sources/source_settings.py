"""The Scrapy settings that sources are crawled with, whatever a project's settings module says for its own spiders.

A source must not change those on which a promise of searchcrawl depends: each has a reason that names the key to use in its
place. All others are passed to Scrapy as they are.
"""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from searchcrawl import settings as shipped
from searchcrawl.exceptions import ConfigurationError
from searchcrawl.sources.checking import join_key, quote_value
from searchcrawl.sources.privacy import Privacy, is_credential, privacy_below, show_name
from searchcrawl.sources.secrets import Concealed
from searchcrawl.terminal import to_one_line
from searchcrawl.wording import counted

#: The same in each source, because a promise depends on them.
FIXED: Final[Mapping[str, Any]] = {
    # Both listen on a port and run what they are sent.
    "TELNETCONSOLE_ENABLED": False,
    "REMOTE_CONTROL_ENABLED": False,
    "DOWNLOADER": "scrapy.core.downloader.Downloader",
    "DOWNLOAD_WARNSIZE": 0,
    "ITEM_PIPELINES_BASE": {},
    "REQUEST_FINGERPRINTER_CLASS": "scrapy.utils.request.RequestFingerprinter",
    # What the URL table, the host table and our own middlewares do.
    "RETRY_ENABLED": False,
    "REDIRECT_ENABLED": False,
    "METAREFRESH_ENABLED": False,
    "ROBOTSTXT_OBEY": False,
    "URLLENGTH_LIMIT": 0,
    "DEPTH_LIMIT": 0,
    "DOWNLOAD_DELAY": 0,
    "DOWNLOAD_DELAY_JITTER": 0,
    "DOWNLOAD_SLOTS": {},
    "AUTOTHROTTLE_ENABLED": False,
    "HTTPCACHE_ENABLED": False,
    "JOBDIR": None,
    # Only with a login or where a source says so: both leave traces from one page to another.
    "COOKIES_ENABLED": False,
    "HTTPPROXY_ENABLED": False,
    "REFERRER_POLICY": "same-origin",
    # Items are handed to one writer thread; more at once only cost turns of the reactor.
    "CONCURRENT_ITEMS": 1,
}
#: Others that a project or a source may change.
DEFAULTS: Final[Mapping[str, Any]] = {
    "MEMUSAGE_LIMIT_MB": 2048,
    "STATS_CLASS": "searchcrawl.extensions.run_stats.RunStats",
}
#: Settings of Scrapy's reactor, which is there before a source is known.
_REACTOR: Final[Mapping[str, Any]] = {
    "TWISTED_REACTOR": shipped.TWISTED_REACTOR,
    "TWISTED_REACTOR_ENABLED": True,
    "ASYNCIO_EVENT_LOOP": None,
}
_ADDON: Final = "searchcrawl.addon.SearchcrawlAddon"
#: Where users' own components see documents pass; a source has only those that its own file names.
USER_COMPONENTS: Final = ("DOWNLOADER_MIDDLEWARES", "ITEM_PIPELINES", "SPIDER_MIDDLEWARES")
#: Those of a settings module that are no matter of a source, or that it takes.
_OF_PROJECT: Final = frozenset({
    "ADDONS", "BOT_NAME", "COMMANDS_MODULE", "FORCE_CRAWLER_PROCESS", "NEWSPIDER_MODULE", "SPIDER_LOADER_CLASS",
    "SPIDER_LOADER_WARN_ONLY", "SPIDER_MODULES", *_REACTOR,
})  # fmt: skip


def list_shipped_defaults() -> dict[str, Any]:
    """Our own settings, for projects whose settings module does not begin with ours."""
    return {name: value for name, value in vars(shipped).items() if name.startswith("SEARCHCRAWL_")}


def find_obstacle(settings: Mapping[str, Any]) -> tuple[str, str] | None:
    """The setting of a project with which no source can be crawled, and what it must be; None where there is none."""
    if not any(_names_addon(addon) for addon, place in (settings.get("ADDONS") or {}).items() if place is not None):
        return "ADDONS", f"must have {_ADDON}"
    for name, value in _REACTOR.items():
        if settings.get(name) != value:
            return name, f"must be {value!r}: sources are crawled on the asyncio reactor"
    return None


def _names_addon(addon: object) -> bool:
    return addon == _ADDON or (isinstance(addon, type) and f"{addon.__module__}.{addon.__qualname__}" == _ADDON)


def list_left_out(of_project: Iterable[tuple[str, Any]]) -> list[str]:
    """The settings of a project's settings module that hold for its own spiders and for no source, sorted."""
    return sorted(
        name
        for name, value in of_project
        if name not in _OF_PROJECT
        and not name.startswith("LOG")
        and value not in (vars(shipped).get(name), FIXED.get(name))
        and (name in USER_COMPONENTS or find_refusal(name, {} if name in COMPONENTS else value) is not None)
    )


_SETTING_NAME: Final = re.compile(r"[A-Z][A-Z0-9_]*")

_BY_TABLE: Final = "the URL table is the queue and remembers what was seen"
_BY_HOSTS: Final = "the pace of each host is kept in the database: use fetch.delay_seconds and fetch.host_concurrency"
_BY_OURS: Final = "searchcrawl brings its own component for that"
_REMOTE: Final = "it runs code for whoever reaches the port"
_NO_LINE: Final = "each source has one log: use logs in searchcrawl.toml"

_REASONS: Final[Mapping[str, str]] = {
    "ADDONS": "it would take out searchcrawl's components",
    "ASYNCIO_EVENT_LOOP": _BY_OURS,
    "BOT_NAME": "use user_agent in searchcrawl.toml",
    "COMMANDS_MODULE": "it belongs into the settings module of the project",
    "COMPRESSION_ENABLED": "bodies are decoded within limits, and always",
    "CONCURRENT_ITEMS": "pages are written by one thread",
    "CONCURRENT_REQUESTS": "use fetch.concurrency",
    "CONCURRENT_REQUESTS_PER_DOMAIN": "use fetch.host_concurrency",
    "DEFAULT_REQUEST_HEADERS": "use fetch.headers",
    "DOWNLOADER": _BY_OURS,
    "DOWNLOADER_CLIENTCONTEXTFACTORY": "use fetch.verify_certificates and fetch.ca_file",
    "DOWNLOAD_DELAY": _BY_HOSTS,
    "DOWNLOAD_DELAY_JITTER": _BY_HOSTS,
    "DOWNLOAD_FAIL_ON_DATALOSS": "a cut body never replaces a whole one",
    "DOWNLOAD_HANDLERS": "the address guard is part of the handlers",
    "DOWNLOAD_MAXSIZE": "use fetch.max_bytes",
    "DOWNLOAD_SLOTS": _BY_HOSTS,
    "DOWNLOAD_TIMEOUT": "use fetch.timeout_seconds",
    "DOWNLOAD_VERIFY_CERTIFICATES": "use fetch.verify_certificates",
    "DOWNLOAD_WARNSIZE": "use fetch.max_bytes",
    "FORCE_CRAWLER_PROCESS": _BY_OURS,
    "ITEM_PROCESSOR": _BY_OURS,
    "JOBDIR": f"{_BY_TABLE}; a run goes on where it was without it",
    "NEWSPIDER_MODULE": "it belongs into the settings module of the project",
    "RANDOMIZE_DOWNLOAD_DELAY": _BY_HOSTS,
    "REQUEST_FINGERPRINTER_CLASS": _BY_TABLE,
    "SPIDER_LOADER_CLASS": "it makes spiders of the source files",
    "SPIDER_LOADER_WARN_ONLY": "it belongs into the settings module of the project",
    "SPIDER_MODULES": "it belongs into the settings module of the project",
    "TWISTED_DNS_RESOLVER": "use fetch.resolve and fetch.private_networks",
    "TWISTED_REACTOR": "searchcrawl runs on the asyncio reactor",
    "TWISTED_REACTOR_ENABLED": "searchcrawl runs on the asyncio reactor",
    "URLLENGTH_LIMIT": "use scope.max_url_length",
    "USER_AGENT": "use user_agent and contact in searchcrawl.toml",
}

#: Settings by the beginning of their names; the first entry that fits counts.
_REASONS_BY_PREFIX: Final[Mapping[str, str]] = {
    "AUTOTHROTTLE_": _BY_HOSTS,
    "CLOSESPIDER_": "use fetch.max_minutes, or -a limit=N with crawl",
    "COOKIES_": "cookies carry traces from one page to another: they come with a login alone",
    "DEPTH_": "use scope.depth",
    "DNS": "the address guard resolves names: use fetch.resolve and fetch.private_networks",
    "DUPEFILTER_": _BY_TABLE,
    "FEED": "use [feeds], whose files have what the index has",
    "HTTPAUTH_": "use fetch.headers with a value of {env = …} or {file = …}",
    "HTTPCACHE_": "pages are kept in the cache of the project, and asked for conditionally",
    "HTTPERROR_": "each status has its meaning for the documents: use lifecycle.remove_on",
    "HTTPPROXY_": "a proxy goes round the address guard: use fetch.proxy",
    "LOG": _NO_LINE,
    "METAREFRESH_": "a page that only leads elsewhere is settled by the scope: use fetch.max_redirects",
    "REDIRECT_": "redirects are checked against the scope: use fetch.max_redirects",
    "REFERER_": "the address a link came from is sent to nobody",
    "REFERRER_": "the address a link came from is sent to nobody",
    "REMOTE_CONTROL_": _REMOTE,
    "RETRY_": "the URL table tries again: use fetch.retries",
    "ROBOTSTXT_": "use robots.obey and robots.user_agent",
    "SCHEDULER": _BY_TABLE,
    "TELNETCONSOLE_": _REMOTE,
}

#: Lists of components to which a source may add its own.
COMPONENTS: Final = ("DOWNLOADER_MIDDLEWARES", "EXTENSIONS", "ITEM_PIPELINES", "SPIDER_MIDDLEWARES")
#: Those lists and tables of which Scrapy has one of its own, with ``_BASE`` at the end of its name.
_WITH_BASE: Final = frozenset({*COMPONENTS, "DOWNLOAD_HANDLERS", "FEED_EXPORTERS", "FEED_STORAGES", "SPIDER_CONTRACTS"})
#: The place of the item pipeline that settles what is indexed.
SETTLED_AT: Final = 200
_PIPELINES: Final = "ITEM_PIPELINES"


def find_refusal(name: str, value: Any) -> str | None:
    """Why a source must not have this setting; None if it may."""
    if not _SETTING_NAME.fullmatch(name):
        return "names of Scrapy settings are upper case"
    reason = _REASONS.get(name) or next(
        (why for prefix, why in _REASONS_BY_PREFIX.items() if name.startswith(prefix)), None
    )
    if reason is not None:
        return f"not for a source: {reason}"
    if name.removesuffix("_BASE") in _WITH_BASE and name.endswith("_BASE"):
        return f"not for a source: {_BY_OURS}; add yours to {name.removesuffix('_BASE')}"
    return _wrong_components(name, value) if name in COMPONENTS else find_wrong_value(name, value)


def list_refused_settings(settings: Any, *, file: str, above: str = "") -> list[ConfigurationError]:
    """An error for each setting of a table ``settings`` that is refused; ``above`` is the table that it is in."""
    if not isinstance(settings, Mapping):
        return []
    reasons = {name: find_refusal(name, value) for name, value in settings.items()}
    return [
        ConfigurationError(
            to_one_line(file),
            join_key((above, "settings", show_name(name, settings[name], Privacy.BY_NAME))).lstrip("."),
            f"{reason} (got {quote_value(settings[name], privacy_below(Privacy.BY_NAME, name))})",
        )
        for name, reason in reasons.items()
        if reason is not None
    ]


def find_refusal_on_command_line(name: str, text: str) -> str | None:
    """Why a crawl of a source refuses ``-s NAME=TEXT``; None if it does not.

    Settings of the log are refused in a source file and allowed here.
    """
    if name.startswith("LOG"):
        return None
    value: Any = text
    if name in COMPONENTS:
        try:
            value = json.loads(text)
        except ValueError:
            return "must be a JSON object of components and their order numbers"
    return find_refusal(name, value)


def conceal_credentials(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a source for Scrapy, which prints settings: credentials in them have no readable ``repr``."""
    return {name: _conceal(value, of_credential=is_credential(name)) for name, value in settings.items()}


def _conceal(value: Any, *, of_credential: bool) -> Any:
    if isinstance(value, Mapping):
        return {
            name: _conceal(inner, of_credential=of_credential or is_credential(str(name)))
            for name, inner in value.items()
        }
    if isinstance(value, list):
        return [_conceal(item, of_credential=of_credential) for item in value]
    # Scrapy breaks long texts at blanks, and a filter of its log would not find a broken credential.
    return Concealed(value) if of_credential and type(value) is str else value


def _wrong_components(name: str, value: Any) -> str | None:
    if not isinstance(value, Mapping):
        return 'must be a table of components and their order numbers, as {"mine.Pipeline" = 300}'
    for path, place in value.items():
        if not isinstance(path, str) or path.partition(".")[0] == "searchcrawl":
            return f"not for a source: the place of {path} is fixed"
        if isinstance(place, bool) or not isinstance(place, int | None):
            return f"the place of {path} must be a whole number"
        if name == _PIPELINES and place is not None and place >= SETTLED_AT:
            return (
                f"{path} comes too late at {place}: what is indexed is settled at {SETTLED_AT}, give it a lower number"
            )
    return None


#: The name of the setting.
PLUGIN_ERRORS: Final = "SEARCHCRAWL_PLUGIN_ERRORS"
_WANTED: Final = "must be two numbers: so many documents in a row, and percent of them, as [20, 5]"


class PluginLimits(NamedTuple):
    """``in_a_row`` documents, or ``percent`` of all and more than ``in_a_row`` of them; 0 is no limit."""

    in_a_row: int
    percent: float

    def find_passed(self, *, errors: int, in_a_row: int, documents: int) -> str | None:
        """Which limit a plug-in passed, in words; None while it passed none."""
        if 0 < self.in_a_row <= in_a_row:
            return f"{counted(in_a_row, 'document', 'documents')} in a row"
        if self.percent > 0 and errors > self.in_a_row and errors * 100 > self.percent * documents:
            return f"{errors} of {counted(documents, 'document', 'documents')}"
        return None


def parse_limits(value: Any) -> PluginLimits:
    """The limits of a setting, which may be a list or a text such as ``20,5``; raises ValueError."""
    parts = value.split(",") if isinstance(value, str) else list(value) if isinstance(value, list | tuple) else []
    if len(parts) != 2 or any(isinstance(part, bool) for part in parts):
        raise ValueError(_WANTED)
    try:
        limits = PluginLimits(int(str(parts[0]).strip()), float(str(parts[1]).strip()))
    except ValueError:
        raise ValueError(_WANTED) from None
    if limits.in_a_row < 0 or not 0 <= limits.percent <= 100:
        raise ValueError(_WANTED)
    return limits


_OURS: Final = "SEARCHCRAWL_"
_OUR_NAMES: Final = frozenset(name for name in vars(shipped) if name.startswith(_OURS))
#: Those of Scrapy's that are numbers, and that a run reads where an error has no name.
_OF_MEMORY: Final = frozenset({"MEMUSAGE_LIMIT_MB", "MEMUSAGE_WARNING_MB", "MEMUSAGE_CHECK_INTERVAL_SECONDS"})
_WHOLE: Final = frozenset({"MEMUSAGE_LIMIT_MB", "MEMUSAGE_WARNING_MB"})
_SWITCHES: Final = frozenset(name for name in _OUR_NAMES if isinstance(getattr(shipped, name), bool))
_ON_AND_OFF: Final = frozenset({"0", "1", "true", "false"})


def find_wrong_value(name: str, value: Any) -> str | None:
    """What a setting must be that has another value, or that there is none of this name; None if nothing is wrong."""
    if name.startswith(_OURS) and name not in _OUR_NAMES:
        # The beginning that all share would make each of them alike.
        near = difflib.get_close_matches(
            name.removeprefix(_OURS), [each.removeprefix(_OURS) for each in _OUR_NAMES], n=1
        )
        return f"there is no such setting{f' (did you mean {_OURS}{near[0]}?)' if near else ''}"
    if name == PLUGIN_ERRORS:
        try:
            parse_limits(value)
        except ValueError as error:
            return str(error)
        return None
    if name in _SWITCHES:
        return None if str(value).lower() in _ON_AND_OFF else "must be True or False"
    if name not in _OUR_NAMES | _OF_MEMORY:
        return None
    if name in _WHOLE:
        return None if _read(value).is_integer() else "must be a whole number of at least 0"
    return "must be a number of at least 0" if math.isnan(_read(value)) else None


def _read(value: Any) -> float:
    """The number of a setting; not a number where it is none that a limit may have."""
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return math.nan
    return number if 0 <= number < math.inf else math.nan
