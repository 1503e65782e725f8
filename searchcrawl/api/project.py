"""The Python API: what the commands do, for programs.

``searchcrawl.open_project`` is where it begins. Crawls and plans run in processes of their own, since a process can run
the reactor of Scrapy only once; the questions are answered in this one.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import orjson

from searchcrawl import exceptions
from searchcrawl.api.arguments import check_text, list_filters, list_texts, require_mapping
from searchcrawl.api.values import Answer, Crawl, Difference, Explanation, Plan, Source, Status, Verification, build
from searchcrawl.comparison.look import look_at_index
from searchcrawl.exceptions import ConfigurationError, SearchcrawlError, UnknownSource
from searchcrawl.exit_codes import Exit
from searchcrawl.index.opening import use_index
from searchcrawl.index.receiver import SearchQuery
from searchcrawl.queries import search
from searchcrawl.queries.explain import explain_by_all
from searchcrawl.queries.gone_sources import describe_gone_source, list_gone_sources
from searchcrawl.queries.status import describe_status
from searchcrawl.queries.verify import KINDS, list_crawled_sources, verify
from searchcrawl.sources import project as configuration
from searchcrawl.sources.fingerprint import VERSIONS
from searchcrawl.sources.loading import (
    PROJECT_VARIABLE,
    find_project,
    list_source_names,
    load_project,
    load_source,
    load_sources,
    read_start_urls,
)
from searchcrawl.store.engine.database import Database

_SETTINGS_VARIABLE: Final = "SCRAPY_SETTINGS_MODULE"
#: What a command that printed no answer failed with, by its exit code; StoreError for all others.
_FAILURES: Final[Mapping[int, type[SearchcrawlError]]] = {
    Exit.BUSY: exceptions.SourceBusy,
    Exit.INDEX_AWAY: exceptions.DeliveryError,
}


def open_project(folder: str | os.PathLike[str] | None = None) -> Project:
    """Opens the project in ``folder``, or where it is None that of the working directory, as the commands do.

    Raises ConfigurationError where there is none, or its ``searchcrawl.toml`` is wrong.

    >>> import searchcrawl
    >>> project = searchcrawl.open_project()
    >>> [source.name for source in project.sources()]
    ['demo']
    """
    root = find_project() if folder is None else Path(folder).resolve()
    load_project(root)
    return Project(root)


class Project:
    """A project: its sources, and what can be asked and ordered of them.

    Files are read at each call, so an edit counts at once. Every method raises errors of ``searchcrawl.exceptions``:
    ConfigurationError for a wrong file, UnknownSource, StoreError, DeliveryError. An argument of another type is a ValueError
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
                file=source.file,
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
    ) -> Answer:
        """Searches the index: words, ``"a phrase"``, ``-word``, ``word*``, ``field:word``, as the command does.

        ``sort`` is the name of an attribute, with ``-`` before it the largest come first; ``language`` is the tag of that of
        ``facet_names``. Raises UnknownAttribute, and ValueError, which names the argument, for ``rows`` outside 0 to 1000, a
        negative ``offset`` and what is of another type.

        >>> answer = project.search("kettle -lamp", facets=["source"])
        >>> answer.total, answer.hits[0].title, answer.facets["source"]
        (1, 'kettle', {'demo': 1})
        """
        for argument, text in {"words": words, "language": language, "source": source, "sort": sort}.items():
            if text is not None or argument in {"words", "language"}:
                check_text(argument, text)
        search.check_page(rows, offset)
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
        return build(Answer, search.remove_marks(search.ask(self._load(), query, language=language)))

    def explain(self, url: str, *, source: str | None = None) -> Explanation:
        """Says why a URL is or is not in the index, as the source sees it, or the one that decides.

        >>> project.explain("http://elsewhere.test/").decided_by.key
        'scope.include_hosts'
        """
        check_text("url", url)
        project = self._load()
        sources = (
            [load_source(project, check_text("source", source))]
            if source is not None
            else list(load_sources(project)[0].values())
        )
        if not sources:
            raise ConfigurationError("sources", "", "no source to ask: put one into sources/NAME.toml")
        with self._open_store(project) as database:
            first, *_ = explain_by_all(project, sources, database, url, versions=VERSIONS)
        return build(Explanation, first.as_json())

    def plan(self, name: str) -> Plan:
        """Says what the edited file of a source changes, without a request; ``searchcrawl apply`` does it.

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
        if name is not None:
            check_text("name", name)
        project = self._load()
        names = list_source_names(project)
        if name is not None and name not in names:
            raise UnknownSource(f"unknown source: {name}")
        with self._open_store(project) as database, use_index(project) as index:
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
        with self._open_store(project) as database, look_at_index(project) as look:
            gone = next((each for each in list_gone_sources(project, database) if each.name == name), None)
            if gone is not None:
                return build(Status, describe_gone_source(project, gone, database))
            source = load_source(project, name)
            preserve = project.cache.preserve
            found = describe_status(source, database, VERSIONS, preserve=preserve, index=look, project=project)
            return build(Status, found)

    def _load(self) -> configuration.Project:
        return load_project(self.root)

    def _open_store(self, project: configuration.Project) -> closing[Database]:
        return closing(Database(project.database_url, project.root))

    def _run(self, command: str, *arguments: str) -> tuple[int, dict[str, Any], tuple[str, ...]]:
        """The exit code of a command, its answer, and its lines on standard error; raises the error of one without any."""
        paths = filter(None, [str(Path(__file__).resolve().parents[2]), os.environ.get("PYTHONPATH")])
        kept = {name: value for name, value in os.environ.items() if name != _SETTINGS_VARIABLE}
        ended = subprocess.run(  # noqa: S603  # our own command
            [sys.executable, "-m", "searchcrawl", command, "--json", *arguments],
            cwd=self.root,
            env={**kept, PROJECT_VARIABLE: str(self.root), "PYTHONPATH": os.pathsep.join(paths)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        messages = ended.stderr.decode("utf-8", "replace").splitlines()
        if not ended.stdout:
            text = "; ".join(messages) or f"searchcrawl {command} ended with {ended.returncode}"
            if ended.returncode == Exit.WRONG_USE:
                # The name of the source was looked up before.
                raise ValueError(messages[-1] if messages else text)
            if ended.returncode == Exit.CONFIGURATION:
                raise ConfigurationError("", "", text)
            raise _FAILURES.get(ended.returncode, exceptions.StoreError)(text)
        return ended.returncode, orjson.loads(ended.stdout), tuple(messages)
