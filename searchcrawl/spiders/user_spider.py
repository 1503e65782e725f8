"""What a source does with what users wrote for its documents, and with the methods that its spider overrides (K4).

One of them says which URLs are not to be requested yet: *not now*, which refuses nothing (B1). A visit that a downloader or
spider middleware of a user refused, or failed at, ends here as well (X-S11).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import islice
from traceback import walk_tb
from typing import Any, NamedTuple

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import DropItem, IgnoreRequest, NotConfigured

from searchcrawl import clock, plugins, urls
from searchcrawl.codes import Code
from searchcrawl.documents.shown_document import TEXTS, change, show
from searchcrawl.documents.user_pipeline import PipelineStep, PluginCall, PluginErrors, ServiceStep, UserPipeline
from searchcrawl.exceptions import ConfigurationError, InvalidUrl
from searchcrawl.html.links import MAX_LINKS
from searchcrawl.http.visit_end import VisitEnded, find_claim, find_redirects, join_lines
from searchcrawl.items import Claim, Document, Hop, Link, Outcome, Page, copy_with
from searchcrawl.run import Run, Shutdown
from searchcrawl.sources.config import Source
from searchcrawl.sources.plugin_classes import import_class
from searchcrawl.sources.source_settings import PLUGIN_ERRORS, parse_limits
from searchcrawl.spiders.web_spider import WebSpider
from searchcrawl.stages import stages_of
from searchcrawl.user_code import is_ours, ordinary_errors, read_text, show_error


class _UserMiddleware(NamedTuple):
    """A middleware of a user, and the setting that names it."""

    setting: str
    middleware: object

    @property
    def class_name(self) -> str:
        return type(self.middleware).__qualname__

    @property
    def name(self) -> str:
        return f"{type(self.middleware).__module__}.{self.class_name}"


class UserMiddlewares:
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

    def _find(self, error: BaseException) -> _UserMiddleware | None:
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

    def _list_own(self) -> Iterator[_UserMiddleware]:
        engine: Any = self._crawler.engine
        for setting, manager in (
            ("DOWNLOADER_MIDDLEWARES", engine.downloader.middleware),
            ("SPIDER_MIDDLEWARES", engine.scraper.spidermw),
        ):
            for middleware in manager.middlewares:
                if not is_ours(type(middleware).__module__):
                    yield _UserMiddleware(setting, middleware)


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


#: Makes the document of what a method of a spider said of it: of the document, its page, as it was shown, and the answer.
Take = Callable[[Document, Page, plugins.Document, Any], Document]


class MethodStep:
    """A method that the spider of a source overrides (``name``: the spider and the method)."""

    def __init__(
        self, name: str, ask: Callable[[plugins.Document], Any], take: Take, *, for_refused: bool = False
    ) -> None:
        self.name = f"spider {name}"
        self.rule = f"spider: {name}"
        self.for_refused = for_refused
        self._ask = ask
        self._take = take

    async def apply(self, document: Document, page: Page) -> Document:
        shown = show(document, page)
        return self._take(document, page, shown, self._ask(shown))


def _take_links(
    document: Document, page: Page, shown: plugins.Document, links: Iterable[str], *, routes: bool
) -> Document:
    chosen = list(islice(_list_texts(links), MAX_LINKS + 1))
    if len(chosen) > MAX_LINKS:
        raise ValueError(f"more than {MAX_LINKS} links")
    known = {link.url: link for link in page.links}
    found: dict[str, Link] = {}
    for text in chosen:
        link = known.get(text) or Link(urls.resolve(text, document.base_url, routes=routes))
        # One that the page has as well keeps what the page says of it.
        found.setdefault(link.url, known.get(link.url, link))
    return copy_with(document, page=copy_with(page, links=tuple(found.values())))


def _take_fields(document: Document, page: Page, shown: plugins.Document, fields: object) -> Document:
    if not isinstance(fields, Mapping):
        raise TypeError(f"returned a {type(fields).__name__}, not a mapping")
    texts = {name: value for name, value in fields.items() if name in TEXTS}
    values = {name: value for name, value in fields.items() if name not in TEXTS}
    return copy_with(document, page=change(page, texts, shown.values | values))


def _take_refusal(document: Document, page: Page, shown: plugins.Document, reason: object) -> Document:
    if not isinstance(reason, str | None):
        raise TypeError(f"returned a {type(reason).__name__}, not a text or None")
    if reason is not None:
        raise DropItem(reason)
    return document


def build_user_stage(
    crawler: Any, run: Run, pipelines: Sequence[tuple[str, Callable[[plugins.Document], Any]]]
) -> UserPipeline:
    """The stage for what users wrote for the documents of a source; raises ConfigurationError."""
    source, spider = run.source, crawler.spider
    steps: list[PluginCall] = []
    if source.has_user_spider:
        steps += _list_spider_steps(spider, source.spider or source.kind.spider, routes=source.scope.hash_routes)
    steps += [PipelineStep(name, process_item) for name, process_item in pipelines]
    if source.document_service is not None:
        steps.append(ServiceStep(source.document_service, _make_service(run, source.document_service)))
    return UserPipeline(
        steps,
        plugin_errors_of(crawler, run.shutdown),
        seconds=crawler.settings.getfloat("SEARCHCRAWL_STALL_SECONDS") or None,
        tell=partial(crawler.signals.send_catch_log_async, spider=spider),
    )


def note_user_starts(crawler: Any, run: Run) -> None:
    """Asks the spider of a source for start URLs; raises ConfigurationError."""
    spider = crawler.spider
    if isinstance(spider, WebSpider) and _overrides(spider, "list_start_urls"):
        run.user_starts = read_starts(spider.list_start_urls, run.source)


def _make_service(run: Run, name: str) -> plugins.DocumentService:
    file, key = run.source.locate("document_service")
    service_class = import_class(name, ["process"], file=file, key=key, root=run.project.root)
    try:
        with ordinary_errors():
            service: plugins.DocumentService = service_class()
    except Exception as error:
        raise ConfigurationError(file, key, f"{name} cannot begin: {join_lines(show_error(error))}") from error
    return service


def _list_spider_steps(spider: WebSpider, name: str, *, routes: bool) -> list[PluginCall]:
    """The steps for the methods that the class of ``spider`` overrides."""
    steps: dict[str, Take] = {
        "choose_links": partial(_take_links, routes=routes),
        "read_fields": _take_fields,
        "find_refusal": _take_refusal,
    }
    return [
        MethodStep(f"{name}.{method}", getattr(spider, method), take, for_refused=method == "choose_links")
        for method, take in steps.items()
        if _overrides(spider, method)
    ]


def _overrides(spider: WebSpider, method: str) -> bool:
    return getattr(type(spider), method) is not getattr(WebSpider, method)


def read_starts(find: Callable[[], Iterable[str]], source: Source) -> tuple[str, ...]:
    """The start URLs that a spider adds, each once; raises ConfigurationError for one that is none, or too many."""
    name = source.spider or source.kind.spider
    try:
        with ordinary_errors():
            texts = list(islice(_list_texts(find()), MAX_LINKS + 1))
        if len(texts) > MAX_LINKS:
            raise ValueError(f"more than {MAX_LINKS} URLs")
        return tuple(dict.fromkeys(urls.resolve(text, routes=source.scope.hash_routes) for text in texts))
    except InvalidUrl as error:
        message = f"{name}.list_start_urls: {error}"
    except Exception as error:  # noqa: BLE001 - a method of a user may raise anything
        message = f"{name}.list_start_urls failed: {join_lines(show_error(error))}"
    raise ConfigurationError(*source.locate("spider" if source.spider else "type"), message)


def _list_texts(texts: Iterable[Any]) -> Iterable[str]:
    if isinstance(texts, str):
        raise TypeError("returned one text, not a list of URLs")
    for text in texts:
        if not isinstance(text, str):
            raise TypeError(f"returned a {type(text).__name__} among the URLs")
        yield text


class OpeningMiddleware:
    """Asks ``find_opening`` of the spider before each request, of targets of redirects as well.

    A visit that is not to be made now ends without a request. Its row keeps what it has, and so does its document; it is due
    once the URL may be requested.
    """

    def __init__(self, find_opening: Callable[[str], datetime | None], name: str, errors: PluginErrors) -> None:
        self._find_opening = find_opening
        self._name = name
        self._errors = errors

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> OpeningMiddleware:
        spider: Any = crawler.spider
        if getattr(type(spider), "find_opening", None) in {None, WebSpider.find_opening}:
            raise NotConfigured
        run = stages_of(crawler).get(Run)
        name = f"spider {run.source.spider or run.source.kind.spider}.find_opening"
        return cls(spider.find_opening, name, plugin_errors_of(crawler, run.shutdown))

    def process_request(self, request: Request) -> None:
        claim = find_claim(request)
        if claim is None:
            return
        try:
            with ordinary_errors():
                opening = _read(self._find_opening(request.url))
        except Exception as error:
            redirects = find_redirects(request)
            raise VisitEnded(self._errors.note_error(self._name, claim, error, redirects=redirects)) from error
        self._errors.note_good(self._name)
        if opening is not None and opening > clock.now_ms():
            error_text = f"not to be requested before {clock.iso(opening)}: {self._name}"
            is_asked = bool(find_redirects(request))
            raise VisitEnded(
                Outcome(claim=claim, code=claim.code, error=error_text, unasked=not is_asked, not_before_ms=opening)
            )


def _read(opening: object) -> int | None:
    """A moment in ms since 1970; raises TypeError for what is none, or has no time zone."""
    if opening is None:
        return None
    if not isinstance(opening, datetime) or opening.utcoffset() is None:
        shown = "a datetime without a time zone" if isinstance(opening, datetime) else f"a {type(opening).__name__}"
        raise TypeError(f"returned {shown}, not a datetime with a time zone or None")
    return clock.cap_ms(opening)
