"""The Scrapy settings that sources are crawled with, whatever a project's settings module says for its own spiders."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from searchcrawl import settings as shipped
from searchcrawl.sources.refused_settings import COMPONENTS, find_refusal

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
DEFAULTS: Final[Mapping[str, Any]] = {"MEMUSAGE_LIMIT_MB": 2048}
#: Settings of Scrapy's reactor, which is there before a source is known.
_REACTOR: Final[Mapping[str, Any]] = {
    "TWISTED_REACTOR": shipped.TWISTED_REACTOR,
    "TWISTED_REACTOR_ENABLED": True,
    "ASYNCIO_EVENT_LOOP": None,
}
_ADDON: Final = "searchcrawl.addon.SearchcrawlAddon"
#: Components that a source has only where its own file names them.
OF_SOURCE: Final = ("DOWNLOADER_MIDDLEWARES", "ITEM_PIPELINES", "SPIDER_MIDDLEWARES")
#: Those of a settings module that are no matter of a source, or that it takes.
_OF_PROJECT: Final = frozenset({
    "ADDONS", "BOT_NAME", "COMMANDS_MODULE", "FORCE_CRAWLER_PROCESS", "NEWSPIDER_MODULE", "SPIDER_LOADER_CLASS",
    "SPIDER_LOADER_WARN_ONLY", "SPIDER_MODULES", *_REACTOR,
})  # fmt: skip


def list_own_defaults() -> dict[str, Any]:
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
        and (name in OF_SOURCE or find_refusal(name, {} if name in COMPONENTS else value) is not None)
    )
