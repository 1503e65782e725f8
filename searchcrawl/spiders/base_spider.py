"""The spider that a source becomes: it holds the run, and handles the responses and failures of its requests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Self

from scrapy import Spider
from scrapy.crawler import Crawler
from scrapy.http import Response
from twisted.python.failure import Failure

from searchcrawl.codes import Code
from searchcrawl.exceptions import ConfigurationError
from searchcrawl.http.visit_end import VisitEnded, find_claim, find_failure, find_redirects, join_lines
from searchcrawl.items import Claim, Document, FetchedAnswer, Hop, Outcome
from searchcrawl.run import Run, begin
from searchcrawl.sources.config import Source
from searchcrawl.sources.project import Project
from searchcrawl.stages import Stages
from searchcrawl.store.opening import open_store
from searchcrawl.user_code import ordinary_errors, show_error

if TYPE_CHECKING:
    from searchcrawl.spiders.user_spider import UserMiddlewares


class SourceSpider(Spider):
    """Base of the spiders that source files become; the spider of each ``type`` of source has a module of its own.

    The loader sets ``source`` and ``project``. A command that has begun a run already gives it as ``run``. ``limit``
    ends the run after so many visits, ``pages`` after so many fetched documents.
    """

    source: Source
    project: Project
    run: Run
    #: set by the add-on
    stages: Stages
    #: how many answers came to the spider
    answers = 0
    _user_middlewares: UserMiddlewares | None = None

    @classmethod
    def from_crawler(
        cls, crawler: Crawler, *args: Any, run: Run | None = None, limit: str = "0", pages: str = "0", **kwargs: Any
    ) -> Self:
        cls.require_source()
        if run is None:
            # Somebody's own process: what crawl refuses is not ignored here.
            unknown = [*map(str, args), *kwargs]
            if unknown:
                # No value is shown: it may be a password.
                raise ValueError(f"unknown spider argument: {unknown[0]} (there is limit)")
        try:
            with ordinary_errors():
                spider = super().from_crawler(crawler, *args, **kwargs)
        except Exception as error:
            if cls.source.spider is None:
                raise
            message = f"{cls.source.spider} cannot begin: {join_lines(show_error(error))}"
            raise ConfigurationError(*cls.source.locate("spider"), message) from error
        most = _read_number("limit", limit), _read_number("pages", pages)
        if run is None:
            patience_seconds = crawler.settings.getfloat("SEARCHCRAWL_STORE_PATIENCE_SECONDS")
            database = open_store(cls.project, patience_seconds=patience_seconds)
            run = begin(cls.project, cls.source, database)
        run.limit, run.pages = most
        spider.run = run
        return spider

    @classmethod
    def require_source(cls) -> None:
        """Raises ConfigurationError for a class of a user that no source has as its ``spider``."""
        if getattr(cls, "source", None) is None:
            name = f"{cls.__module__}:{cls.__qualname__}"
            message = f'is the spider of no source: name it in a source file, as spider = "{name}"'
            raise ConfigurationError(name, "", message)

    async def start(self) -> AsyncIterator[Any]:
        """Yields nothing: the scheduler makes the requests from the URL table."""
        nothing: tuple[Any, ...] = ()
        for request in nothing:
            yield request

    def handle_response(self, response: Response) -> Any:
        """Yields the documents of a response, which the item pipelines read."""
        raise NotImplementedError

    def build_document(self, answer: FetchedAnswer) -> Document:
        """The document of an answer, before it is read."""
        raise NotImplementedError

    def handle_failure(self, failure: Failure) -> list[Outcome]:
        """Ends a visit that brought no response: every claimed row is settled (X-D3)."""
        request = failure.request  # type: ignore[attr-defined]  # Scrapy sets it
        error = failure.value
        if isinstance(error, VisitEnded):
            return [error.outcome]
        claim = find_claim(request)
        if claim is None:
            return []
        found = find_failure(error) if isinstance(error, Exception) else None
        if found is None and (end := self._ask_user_middlewares(error, claim, find_redirects(request))) is not None:
            return [end]
        if found is None:
            self.logger.error("unexpected failure of %s", request, exc_info=error)
        return [
            Outcome(
                claim=claim,
                code=found.code if found else Code.IO_ERROR,
                transient=found.transient if found else True,
                error=f"{join_lines(repr(error))}: {join_lines(request.url)}",
                redirects=find_redirects(request),
            )
        ]

    def _ask_user_middlewares(
        self, error: BaseException | None, claim: Claim, redirects: tuple[Hop, ...]
    ) -> Outcome | None:
        # Loaded where it is used: most sources have none of it.
        from searchcrawl.spiders.user_spider import UserMiddlewares  # noqa: PLC0415

        if error is None:
            return None
        if self._user_middlewares is None:
            self._user_middlewares = UserMiddlewares(self.crawler, self.run)
        return self._user_middlewares.end_visit(error, claim, answers=self.answers, redirects=redirects)


def _read_number(name: str, value: str | int) -> int:
    try:
        number = int(value)
    except ValueError:
        number = -1
    if number < 0:
        raise ValueError(f"{name}: must be a whole number of at least 0 (got {value!r})")
    return number
