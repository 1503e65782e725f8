"""What becomes of a visit that a downloader or spider middleware of a user refused, or failed at (K4, X-S11)."""

from __future__ import annotations

from collections.abc import Iterator
from traceback import walk_tb
from typing import Any, NamedTuple

from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest

from searchcrawl.codes import Code
from searchcrawl.documents.own_pipeline import PluginErrors
from searchcrawl.exceptions import ConfigurationError
from searchcrawl.http.visit_end import join_lines
from searchcrawl.items import Claim, Hop, Outcome
from searchcrawl.own_code import is_ours, read_text
from searchcrawl.run import Run, Shutdown
from searchcrawl.sources.source_settings import PLUGIN_ERRORS, parse_limits
from searchcrawl.stages import stages_of


class _Own(NamedTuple):
    """A middleware of a user, and the setting that names it."""

    setting: str
    middleware: object

    @property
    def class_name(self) -> str:
        return type(self.middleware).__qualname__

    @property
    def name(self) -> str:
        return f"{type(self.middleware).__module__}.{self.class_name}"


class OwnMiddlewares:
    """Ends visits for the middlewares of users; counts what they fail at as errors of any other plug-in."""

    def __init__(self, crawler: Crawler, run: Run) -> None:
        self._crawler = crawler
        self._run = run
        self._answers = 0

    def end_visit(
        self, error: BaseException, claim: Claim, *, answers: int, redirects: tuple[Hop, ...]
    ) -> Outcome | None:
        """The end of a visit that a middleware of a user raised ``error`` in; None where none of them did.

        IgnoreRequest keeps the page out of the index, as DropItem does (952); anything else costs the page (903).
        ``answers`` is how many pages they all let pass so far.
        """
        own = self._find(error)
        if isinstance(error, IgnoreRequest):
            # A Deferred may have raised it, long after the middleware returned.
            setting, name = ("DOWNLOADER_MIDDLEWARES", "") if own is None else (own.setting, own.name)
            rule = ": ".join(filter(None, (f"settings.{setting}", name, join_lines(read_text(error)))))
            return Outcome(claim=claim, code=Code.NOT_INDEXED, rule=rule, redirects=redirects)
        if own is None:
            return None
        errors = plugin_errors_of(self._crawler, self._run.shutdown)
        name = f"middleware {own.name}"
        if answers > self._answers:
            errors.note_good(name, answers - self._answers)
            self._answers = answers
        return errors.note_error(name, claim, error, redirects=redirects)

    def _find(self, error: BaseException) -> _Own | None:
        """The middleware of a user in whose method ``error`` was raised, or whose answer Scrapy refuses."""
        own = {id(one.middleware): one for one in self._list_own()}
        for frame, _ in walk_tb(error.__traceback__ if own else None):
            code = frame.f_code
            first = frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
            if id(first) in own:
                return own[id(first)]
        # As in "Middleware Mine.process_response must return Response or Request, got …".
        said = read_text(error) if isinstance(error, TypeError) else ""
        return next((one for one in own.values() if said.startswith(f"Middleware {one.class_name}.")), None)

    def _list_own(self) -> Iterator[_Own]:
        engine: Any = self._crawler.engine
        for setting, manager in (
            ("DOWNLOADER_MIDDLEWARES", engine.downloader.middleware),
            ("SPIDER_MIDDLEWARES", engine.scraper.spidermw),
        ):
            for middleware in manager.middlewares:
                if not is_ours(type(middleware).__module__):
                    yield _Own(setting, middleware)


def plugin_errors_of(crawler: Crawler, shutdown: Shutdown) -> PluginErrors:
    """The one count of a run; raises ConfigurationError for limits that are none."""
    stages = stages_of(crawler)
    return stages.find(PluginErrors) or stages.add(build_plugin_errors(crawler, shutdown))


def build_plugin_errors(crawler: Crawler, shutdown: Shutdown) -> PluginErrors:
    """A count for the process of a run, with the limits of its settings; raises ConfigurationError for limits that are none."""
    try:
        limits = parse_limits(crawler.settings[PLUGIN_ERRORS])
    except ValueError as error:
        raise ConfigurationError("settings module", PLUGIN_ERRORS, str(error)) from error

    def count(name: str) -> None:
        # The statistics are made after the stages.
        crawler.stats.inc_value(name)

    return PluginErrors(shutdown, limits, count=count)
