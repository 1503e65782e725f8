"""Scrapy settings that a source must not change, because a promise of searchcrawl depends on them.

Each has a reason that names the key to use in its place. All other settings are passed to Scrapy as they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from searchcrawl.exceptions import ConfigurationError
from searchcrawl.sources.checking import join_key, quote_value
from searchcrawl.sources.own_settings import find_wrong_value
from searchcrawl.sources.privacy import Privacy, is_credential, privacy_below, show_name
from searchcrawl.sources.secrets import Concealed
from searchcrawl.terminal import to_one_line

_NAME: Final = re.compile(r"[A-Z][A-Z0-9_]*")

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
    if not _NAME.fullmatch(name):
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
