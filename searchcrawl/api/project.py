"""The Python API: what the commands do, for programs.

``searchcrawl.open_project`` is where it begins. Crawls and plans run in processes of their own, since a process can run
the reactor of Scrapy only once; the questions are answered in this one.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from searchcrawl import urls
from searchcrawl.api.child_process import run_command
from searchcrawl.api.values import (
    Answer,
    Crawl,
    Difference,
    Done,
    Explanation,
    HeldRemoval,
    PastRun,
    Plan,
    Source,
    Status,
    StoredDocument,
    Submitted,
    TriedPage,
    Url,
    Verification,
    build,
)
from searchcrawl.cache.opening import open_cache
from searchcrawl.codes import is_code
from searchcrawl.comparison.differences import KINDS, list_crawled_sources, verify
from searchcrawl.comparison.look import look_at_index
from searchcrawl.delivery.documents import read_indexed
from searchcrawl.delivery.export import show
from searchcrawl.exceptions import ConfigurationError, Exit
from searchcrawl.index.opening import use_index
from searchcrawl.index.receiver import SearchQuery
from searchcrawl.operations import quarantine, redelivery, stopping
from searchcrawl.operations.dry_run import DryRun, build_dry_run
from searchcrawl.operations.visiting import recrawl, submit
from searchcrawl.queries import search
from searchcrawl.queries.explain import explain_by_all
from searchcrawl.queries.runs import is_known, list_runs
from searchcrawl.queries.status import describe_gone_source, describe_status, find_known_name, list_gone_sources
from searchcrawl.queries.urls import list_urls
from searchcrawl.settings import SEARCHCRAWL_INDEX_PATIENCE_SECONDS
from searchcrawl.sources import config
from searchcrawl.sources import project as configuration
from searchcrawl.sources.loading import (
    find_project,
    list_source_names,
    load_project,
    load_source,
    load_sources,
    read_start_urls,
    require_source_file,
)
from searchcrawl.sources.principals import SearchUser, build_user, find_principals
from searchcrawl.store.documents import document_queries
from searchcrawl.store.engine.database import Database
from searchcrawl.store.opening import use_store
from searchcrawl.store.urls.url_state import UrlState

logger = logging.getLogger(__name__)

T = TypeVar("T")


def open_project(folder: str | os.PathLike[str] | None = None) -> Project:
    """Opens the project in ``folder``, or where it is None that of the working directory, as the commands do.

    Raises ConfigurationError where there is none, or its ``searchcrawl.toml`` is wrong.

    >>> import searchcrawl
    >>> project = searchcrawl.open_project()
    >>> [source.name for source in project.sources()]
    ['demo']
    """
    root = find_project() if folder is None else Path(folder).resolve()
    if not (root / configuration.FILE).is_file():
        raise ConfigurationError(str(root), "", f"is no project: it has no {configuration.FILE}")
    load_project(root)
    return Project(root)


class Project:
    """A project: its sources, and what can be asked and ordered of them.

    Files are read at each call, so an edit counts at once. Every method raises errors of ``searchcrawl.exceptions``:
    ConfigurationError (with ``file`` and ``key``) for a wrong file, UnknownSource, StoreError, DeliveryError; ``exit_code`` of
    an error is that of the command. What lists much is an iterator: the store is open while it is read. An argument of another type is a ValueError
    that names it.
    """

    def __init__(self, root: Path) -> None:
        #: The folder of the project.
        self.root = root

    def __repr__(self) -> str:
        return f"<searchcrawl.Project {self.root}>"

    def sources(self) -> list[Source]:
        """The sources whose files can be read, by name; ``errors`` has what is wrong with the others."""
        project = self._load()
        found, _ = load_sources(project)
        return [
            Source(
                name=source.name,
                title=source.title,
                groups=source.groups,
                start_urls=tuple(read_start_urls(project, source)),
                file=source.path,
            )
            for source in found.values()
        ]

    def errors(self) -> list[ConfigurationError]:
        """Every error of ``searchcrawl.toml`` and of the source files; each has ``file``, ``key`` and ``message``."""
        try:
            project = self._load()
        except ConfigurationError as error:
            return list(error.errors)
        return load_sources(project)[1]

    def crawl(
        self,
        name: str,
        *,
        limit: int | None = None,
        overrides: Sequence[str] | str = (),
        settings: Mapping[str, object] | None = None,
    ) -> Crawl:
        """Crawls a source in a process of its own, and waits for its end; ``limit`` ends it after so many visits.

        ``overrides`` are as after ``--set``, ``settings`` are those of Scrapy (``-s``). An exit code other than 0 is no
        error, once the run has begun: ``exit_code`` has it. Raises SourceBusy while another process crawls the source, and
        ValueError for a ``limit``, ``overrides`` or ``settings`` that the command refuses.

        >>> crawl = project.crawl("demo", overrides=["fetch.retries=0"])
        >>> crawl.done, crawl.status.run.kind, crawl.status.counts["new"]
        (True, 'initial', 3)
        """
        load_source(self._load(), check_text("name", name))
        given = [] if limit is None else ["-a", f"limit={limit}"]
        given += [word for pair in list_texts("overrides", overrides) for word in ("--set", pair)]
        options = require_mapping("settings", {} if settings is None else settings)
        given += [word for key, value in options.items() for word in ("-s", f"{key}={value}")]
        code, answer, messages = self._run("crawl", name, *given)
        return Crawl(exit_code=Exit(code), status=build(Status, answer), messages=messages)

    def search(
        self,
        words: str,
        *,
        source: str | None = None,
        groups: Sequence[str] | str = (),
        rows: int = 10,
        offset: int = 0,
        sort: str | None = None,
        filters: Mapping[str, str | int] | None = None,
        facets: Sequence[str] | str = (),
        language: str = "",
        as_user: str | None = None,
        user_groups: Sequence[str] | str = (),
    ) -> Answer:
        """Searches the index: words, ``"a phrase"``, ``-word``, ``word*``, ``field:word``, as the command does.

        ``sort`` is the name of an attribute, with ``-`` before it the largest come first; ``language`` is the tag of that of
        ``facet_names``. With ``as_user`` only what this user may see is found; ``user_groups`` are groups that he is in besides those
        that ``[principals]`` knows of. Raises UnknownAttribute, and ValueError, which names the argument, for ``rows`` outside 0 to 1000, a
        negative ``offset`` and what is of another type.

        >>> answer = project.search("kettle -lamp", facets=["source"])
        >>> answer.total, answer.hits[0].title, answer.facets["source"]
        (1, 'kettle', {'demo': 1})
        """
        for argument, text in {"words": words, "language": language, "source": source, "sort": sort}.items():
            if text is not None or argument in {"words", "language"}:
                check_text(argument, text)
        search.check_page(rows, offset)
        user = _read_user(as_user, user_groups)
        query = SearchQuery(
            words=words,
            source=source,
            filters=list_filters({} if filters is None else filters),
            groups=list_texts("groups", groups),
            rows=rows,
            start=offset,
            sort=sort,
            facets=list_texts("facets", facets),
        )
        return build(Answer, search.remove_marks(search.ask(self._load(), query, language=language, user=user)))

    def explain(
        self, url: str, *, source: str | None = None, as_user: str | None = None, user_groups: Sequence[str] | str = ()
    ) -> Explanation:
        """Says why a URL is or is not in the index, as the source sees it, or the one that decides.

        With ``as_user`` a step ``permissions`` says whether this user may see it, and why.

        >>> project.explain("http://elsewhere.test/").decided_by.key
        'scope.include_hosts'
        """
        check_text("url", url)
        project, user = self._load(), _read_user(as_user, user_groups)
        sources = (
            [load_source(project, check_text("source", source))]
            if source is not None
            else list(load_sources(project)[0].values())
        )
        if not sources:
            raise ConfigurationError("sources", "", "no source to ask: put one into sources/NAME.toml")
        with use_store(project) as database:
            first, *_ = explain_by_all(project, sources, database, url)
        if user is not None:
            first = first.add_verdict(find_principals(project, user))
        return build(Explanation, first.as_json())

    def plan(self, name: str) -> Plan:
        """Says what the edited file of a source changes, without a request; ``apply`` does it.

        >>> project.plan("demo").leave
        0
        """
        load_source(self._load(), check_text("name", name))
        _, answer, _ = self._run("plan", name)
        return build(Plan, answer)

    def verify(self, name: str | None = None) -> Verification:
        """Compares the index with the URL table, of one source or of all; it mends nothing.

        >>> project.verify("demo").ok
        True
        """
        project = self._load()
        if name is not None:
            require_source_file(project, check_text("name", name))
        names = list_source_names(project)
        with use_store(project) as database, use_index(project) as index:
            crawling = list_crawled_sources(database, names if name is None else [name])
            with verify(database, index, names, only=name) as found:
                differences = [
                    build(Difference, {"kind": kind, **each}) for kind in KINDS for each in found.describe(kind)
                ]
        return Verification(differences=tuple(differences), crawling=tuple(crawling))

    def status(self, name: str) -> Status:
        """The state of a source, also of one whose file is gone.

        >>> project.status("demo").documents
        3
        """
        check_text("name", name)
        project = self._load()
        with use_store(project) as database, look_at_index(project) as look:
            gone = next((each for each in list_gone_sources(project, database) if each.name == name), None)
            if gone is not None:
                return build(Status, describe_gone_source(project, gone, database))
            return build(Status, describe_status(project, load_source(project, name), database, index=look))

    def apply(self, plan: str) -> Done:
        """Does what a plan says, from the cache, in a process of its own; raises PlanRefused where it is no longer true."""
        return build(Done, self._run("apply", check_text("plan", plan))[1])

    def test(self, url: str, *, source: str) -> TriedPage:
        """Fetches one page in a process of its own, and says what would be stored; stores nothing."""
        load_source(self._load(), check_text("source", source))
        return build(TriedPage, self._run("test", "--source", source, "--", check_text("url", url))[1])

    def urls(
        self,
        name: str,
        *,
        state: str | None = None,
        code: int | None = None,
        rule: str | None = None,
        host: str | None = None,
    ) -> Iterator[Url]:
        """The URL table of a source, in constant memory; raises ValueError for a ``state`` or ``code`` that there is not.

        >>> [row.code for row in project.urls("demo", state="indexed")]
        [200, 200, 200]
        """
        check_code(code)
        _, source = self._load_source(name)
        found = partial(list_urls, state=None if state is None else UrlState(state), code=code, rule=rule, host=host)
        return self._read(lambda database: (build(Url, row) for row in found(database, source)))

    def runs(self, name: str | None = None) -> Iterator[PastRun]:
        """The runs of a source, also of one whose file is gone, or of all; newest first.

        >>> [run.end_reason for run in project.runs("demo")]
        ['finished']
        """
        project = self._load()
        if name is not None:
            with use_store(project) as database:
                if not is_known(database, check_text("name", name)):
                    load_source(project, name)
        return self._read(lambda database: (build(PastRun, row) for row in list_runs(database, name)))

    def documents(self, name: str) -> Iterator[StoredDocument]:
        """All documents that the index has of a source, with all their fields, from the cache, in constant memory.

        Left out, with a warning in the log ``searchcrawl``, are those of which the cache does not have what the index has. Raises
        ConfigurationError where ``cache.preserve`` is false.

        >>> "kettle" in {document.title for document in project.documents("demo")}
        True
        """
        project, source = self._load_source(name)
        if not project.cache.preserve:
            raise ConfigurationError(
                configuration.FILE, "cache.preserve", "must be true: documents are read from the cache"
            )
        return self._read(lambda database: _read_documents(build_dry_run(project, source, database)))

    def submit(self, url: str, *, source: str) -> Submitted:
        """Puts one URL into the queue of a source, also while it is crawled; its rules decide as for a link.

        >>> project.submit("http://elsewhere.test/", source="demo").result
        'out_of_scope'
        """
        project, found = self._load_source(source, argument="source")
        with use_store(project) as database:
            done = submit(project, found, database, check_text("url", url))
        return Submitted(url=done.url, result=str(done.result), rule=done.rule or None)

    def recrawl(self, name: str, *, url: str | None = None, failed: bool = False) -> Done:
        """Has the next run visit all known URLs without validators, or one, or those that failed; requests nothing itself."""
        project, source = self._load_source(name)
        asked = None if url is None else urls.resolve_typed(check_text("url", url), routes=source.scope.hash_routes)
        with use_store(project) as database:
            return build(Done, recrawl(project, source, database, url=asked, failed=failed))

    def stop(self, name: str, *, wait_seconds: float = 60) -> str:
        """Ends the crawl of a source cleanly, wherever it runs: ``stopped``, ``stopping`` or ``idle``."""
        with self._open_known(name) as database:
            return stopping.stop(database, name, wait_seconds=wait_seconds)

    def suspend(self, name: str, *, wait_seconds: float = 60) -> str:
        """The same, and the source is crawled no more until ``resume``."""
        with self._open_known(name) as database:
            return stopping.stop(database, name, wait_seconds=wait_seconds, suspends=True)

    def resume(self, name: str) -> bool:
        """Lets a suspended source be crawled again, and runs nothing; whether it was suspended."""
        with self._open_known(name) as database:
            return stopping.resume(database, name)

    def flush(self, name: str) -> Done:
        """Pushes what the cache holds of a source to the index."""
        return self._send(name, redelivery.flush)

    def resend(self, name: str) -> Done:
        """Sends all documents of a source again from the cache to the index; requests no page."""
        return self._send(name, redelivery.resend)

    def quarantine(self, name: str, *, rejected: bool = False) -> Iterator[HeldRemoval]:
        """The removals that the limits on deleting hold back, or those that were rejected.

        >>> list(project.quarantine("demo"))
        []
        """
        source = load_source(self._load(), check_text("name", name))
        listing = quarantine.list_rejected if rejected else quarantine.list_waiting
        return self._read(lambda database: (build(HeldRemoval, row) for row in listing(database, source)))

    def approve(self, name: str, *, run: int | None = None) -> Done:
        """Carries held removals out: those of ``run``, or those that were listed last."""
        return self._send(name, partial(quarantine.approve, only=run))

    def reject(self, name: str, *, run: int | None = None) -> Done:
        """Keeps the documents of held removals."""
        project, source = self._load_source(name)
        with use_store(project) as database:
            return build(Done, quarantine.reject(project, source, database, only=run))

    def undelete(self, run: int) -> Done:
        """Sends what a run removed again, in a process of its own; raises UnknownRun."""
        return build(Done, self._run("undelete", str(run))[1])

    def forget(self, *addresses: str, patterns: Sequence[str] | str = ()) -> list[Done]:
        """Takes URLs out of index, cache and table, and has them refused from then on; in a process of its own.

        Patterns past the limits on deleting are carried out as well. One for each source that knew some of them.
        """
        words = [word for each in list_texts("patterns", patterns) for word in ("--pattern", each)]
        words += ["--yes", "--", *list_texts("addresses", addresses)]
        if not addresses and not patterns:
            raise ValueError("addresses: name a URL or a pattern")
        return [build(Done, each) for each in run_command(self.root, "forget", *words).answers]

    def delete(self, name: str) -> Done:
        """Takes all documents of a source out of index, cache and table, in a process of its own; its file stays."""
        return build(Done, self._run("delete", "--yes", "--", check_text("name", name))[1])

    def _send(self, name: str, order: Callable[..., Mapping[str, Any]]) -> Done:
        project, source = self._load_source(name)
        with use_store(project) as database, use_index(project) as index:
            return build(
                Done, order(project, source, database, index, retry_seconds=SEARCHCRAWL_INDEX_PATIENCE_SECONDS)
            )

    @contextmanager
    def _open_known(self, name: str) -> Iterator[Database]:
        """The store, if it or a file has such a source; raises UnknownSource."""
        project = self._load()
        with use_store(project) as database:
            find_known_name(project, database, check_text("name", name))
            yield database

    def _read(self, rows: Callable[[Database], Iterator[T]]) -> Iterator[T]:
        """The rows of a store that stays open for as long as they are read."""
        with use_store(self._load()) as database:
            yield from rows(database)

    def _load_source(self, name: str, *, argument: str = "name") -> tuple[configuration.Project, config.Source]:
        project = self._load()
        return project, load_source(project, check_text(argument, name))

    def _load(self) -> configuration.Project:
        return load_project(self.root)

    def _run(self, command: str, *arguments: str) -> tuple[int, dict[str, Any], tuple[str, ...]]:
        ended = run_command(self.root, command, *arguments)
        return ended.code, ended.answers[0], ended.messages


def list_texts(argument: str, texts: object) -> list[str]:
    """Texts, each once; a single one is one, and not its letters."""
    if not isinstance(texts, Iterable) or isinstance(texts, bytes):
        raise _refuse(argument, "a text or a list of texts", texts)
    listed = [texts] if isinstance(texts, str) else list(texts)
    return list(dict.fromkeys(check_text(argument, text) for text in listed))


def list_filters(filters: object) -> list[tuple[str, str]]:
    """The texts and values of filters; a number is looked for as it is written."""
    return [
        (
            check_text("filters", name),
            str(value) if type(value) is int else check_text(f"filters[{name!r}]", value),
        )
        for name, value in require_mapping("filters", filters).items()
    ]


def require_mapping(argument: str, value: object) -> Mapping[Any, Any]:
    """``value``; raises ValueError for what is no mapping."""
    if not isinstance(value, Mapping):
        raise _refuse(argument, "a mapping of names to values", value)
    return value


def check_text(argument: str, value: object) -> str:
    """``value``; raises ValueError for what is no text."""
    if not isinstance(value, str):
        raise _refuse(argument, "a text", value)
    return value


def _refuse(argument: str, wanted: str, value: object) -> ValueError:
    return ValueError(f"{argument}: must be {wanted} (got {value!r})")


def _read_user(name: str | None, groups: Sequence[str] | str) -> SearchUser | None:
    """The user of a call; None without one."""
    listed = list_texts("user_groups", groups)
    if name is None:
        if listed:
            raise ValueError("user_groups: are those of a user: name him as as_user")
        return None
    try:
        return build_user(check_text("as_user", name), listed)
    except ValueError as error:
        raise ValueError(f"as_user, user_groups: {error}") from None


def check_code(code: object) -> None:
    """Raises ValueError for what is no code of a URL; None is any."""
    if code is not None and (isinstance(code, bool) or not isinstance(code, int) or not is_code(code)):
        raise ValueError(f"code: there is no such code (got {code!r})")


def _read_documents(run: DryRun) -> Iterator[StoredDocument]:
    """All that the index has of a source, by rising id of the URL; raises CacheError, StoreError."""
    lost = run.read(document_queries.count_unreadable, run.source_id)
    for part in read_indexed(run, open_cache(run.project, run.source.name)):
        for _, document in part.documents:
            fields = dict(show(document))
            yield StoredDocument(
                id=document.id,
                url=fields["url"],
                title=fields.get("title") or "",
                content=fields.get("content") or "",
                fields=fields,
            )
        lost += len(part.lost)
    if lost:
        logger.warning("%s: documents of which the cache does not have what the index has: %d", run.source.name, lost)
