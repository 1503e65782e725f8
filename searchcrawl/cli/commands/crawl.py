"""Crawl a source: everything at first, then what may have changed."""

from __future__ import annotations

import argparse
import json
import logging
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn

from scrapy import Spider
from scrapy.exceptions import UsageError as ScrapyUsageError
from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings, Settings

from searchcrawl import clock
from searchcrawl.cli.command import BaseCommand, Option, UsageError
from searchcrawl.cli.commands.status import show_summary
from searchcrawl.cli.commands.urls import url_line
from searchcrawl.cli.following import follow_run
from searchcrawl.cli.output import (
    error_lines,
    flush_output,
    print_error,
    print_note,
    print_object,
    print_warnings,
    prints_among_answers,
    try_output,
)
from searchcrawl.cli.scrapy_commands import require_asyncio, restore_log, run_python_spider
from searchcrawl.comparison.look import look_at_index
from searchcrawl.counters import NO_START, has_mostly_failed_logins
from searchcrawl.delivery.export import find_kind
from searchcrawl.exceptions import (
    ConfigurationError,
    Exit,
    LeaseLost,
    SearchcrawlError,
    StoreError,
    UnknownSource,
    exit_of,
    exit_of_failure,
)
from searchcrawl.extensions.run_log import append_refusal, install_run_log
from searchcrawl.http.visit_end import join_lines
from searchcrawl.queries.status import describe_status
from searchcrawl.queries.urls import list_urls
from searchcrawl.run import Run, begin
from searchcrawl.sources.checking import quote_value
from searchcrawl.sources.config import Source
from searchcrawl.sources.effective import read_overrides
from searchcrawl.sources.loading import find_project, load_sources, read_start_urls
from searchcrawl.sources.plugin_classes import find_component_errors
from searchcrawl.sources.privacy import Privacy, is_credential
from searchcrawl.sources.project import FILE, Project
from searchcrawl.sources.receivers import find_origin, find_own_place, find_path, list_feeds
from searchcrawl.sources.secrets import Concealed, hide, redact
from searchcrawl.sources.source_settings import COMPONENTS, find_obstacle, find_refusal_on_command_line
from searchcrawl.spiders.base_spider import SourceSpider
from searchcrawl.spiders.running import run_spider
from searchcrawl.spiders.spider_loader import SourceSpiderLoader
from searchcrawl.store.opening import open_store, use_store
from searchcrawl.store.runs import job_table, run_table
from searchcrawl.store.runs.job_table import END_CLEANLY
from searchcrawl.store.states import EndReason
from searchcrawl.terminal import to_one_line
from searchcrawl.user_code import show_error

if TYPE_CHECKING:
    from searchcrawl.scheduling.service import Signals

logger = logging.getLogger(__name__)

_STARTS_SHOWN: Final = 3
_LEVELS: Final = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
_LOG_FILE: Final = "LOG_FILE="
_SETTING: Final = re.compile(r"[A-Z][A-Z0-9_]*=")
_POLL_SECONDS = 1.0
#: The argument of a spider with which scrapyd names each of its jobs.
_JOB: Final = "_job"


class Command(BaseCommand):
    """The command that ``scrapy crawl`` and scrapyd run, too."""

    requires_crawler_process = True
    uses_settings = uses_log = True
    # Scrapy looks through all packages for their versions, and a source's log has no line of it.
    default_settings: ClassVar[dict[str, Any]] = {"LOG_ENABLED": False, "LOG_VERSIONS": []}
    arguments = (0, 1)
    shown_arguments = "NAME"
    example = "searchcrawl crawl intranet"
    _log_file: str | None = None
    options = (
        Option("--all", "each source in turn, without NAME"),
        Option(
            "-a NAME=VALUE",
            "limit=N ends the run after N visits; a spider in Python gets any argument",
            repeatable=True,
            dest="arguments",
        ),
        Option(
            "-o --output FILE",
            "write the source's documents to FILE.jsonl, .json, .csv, .xml or .parquet; a spider in Python appends its items",
            repeatable=True,
        ),
        Option("-O --overwrite-output FILE", "the same, and what is in FILE is lost", repeatable=True),
        Option(
            "--set KEY=VALUE",
            "a key of the source file for this run, as fetch.delay_seconds=5; repeatable",
            repeatable=True,
            dest="overrides",
        ),
        Option("--processes N", "crawl with N processes, as --set fetch.processes=N does"),
    )

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        # Known before anything can be refused.
        given = [pair.removeprefix(_LOG_FILE) for pair in opts.set if pair.startswith(_LOG_FILE)]
        self._log_file = opts.logfile or (given[-1] if given else None)
        super().process_options(args, opts)

    def note_failure(self, code: int, lines: Sequence[str]) -> None:
        # scrapyd has answered by then that the job is scheduled: who looks for a reason looks into its log.
        if self._log_file and Path(self._log_file).parent.is_dir():
            append_refusal(Path(self._log_file), code, "; ".join(lines))

    def execute(self, args: list[str], opts: argparse.Namespace) -> int | None:
        if opts.all:
            return _crawl_all(self.load_project(), opts)
        # The token of the try that it belongs to; "" for one that was started in another way.
        token = dict(pair.partition("=")[::2] for pair in opts.arguments).get(_JOB, "")
        job = token if job_table.is_token(token) else ""
        with _note_failed_job(self.load_project, args[0], job):
            return self._execute(args[0], opts, job)

    def _execute(self, name: str, opts: argparse.Namespace, job: str) -> int | None:
        made = getattr(self.crawler_process, "spider_loader", None)
        # A project need not be read twice; its settings may name a loader of its own.
        loader = (
            made if isinstance(made, SourceSpiderLoader) else SourceSpiderLoader.from_settings(self.load_settings())
        )
        try:
            # What the schedule says of the run of a try, as ``--set`` has it.
            scheduled = [f"mode={mode}"] if (mode := job_table.find_mode(job)) else []
            spider = loader.load(name, read_overrides([*opts.overrides, *scheduled]))
        except KeyError:
            raise UnknownSource(f"unknown source: {name}") from None
        print_warnings(loader.spider_errors)
        if not issubclass(spider, SourceSpider):
            if opts.overrides:
                raise UsageError(f"--set: {name} is a spider in Python, and has no keys (-s has settings of Scrapy)")
            return self._crawl_in_python(spider, opts)
        arguments = _arguments(opts.arguments)
        exports = [_find_export(text, name) for text in (*opts.output, *opts.overwrite_output)]
        _check_exports(exports, spider.project, spider.source)
        log_file, level = self._log_options(opts)
        self._check_settings(opts)
        # Ours writes these lines too; Scrapy's has no limit, and does not end the run where the disk is full.
        self.load_settings().setdict({"LOG_ENABLED": False, "LOG_FILE": None}, priority="cmdline")
        if spider.source.start.files:
            # A line that is no URL is an error of the configuration: it is reported before anything begins.
            read_start_urls(spider.project, spider.source)
        logs = install_run_log(spider.project, spider.source, copy_to=log_file, level=level)
        patience_seconds = self.load_settings().getfloat("SEARCHCRAWL_STORE_PATIENCE_SECONDS")
        database = open_store(spider.project, patience_seconds=patience_seconds)
        run = begin(spider.project, spider.source, database, job=job)
        run.files.asked = exports
        for log in logs:
            log.on_failure(run.shutdown.fail)
        for number in (*([END_CLEANLY] if job else ()), signal.SIGHUP):
            # As Ctrl-C ends it; ``nohup`` has it ignore that of a terminal that is closed.
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, lambda *_: run.shutdown.stop(EndReason.STOPPED))
        self._crawl(spider, {**arguments, "run": run})
        return self._print_result(run, as_json=opts.json)

    def check_use(self, args: list[str], opts: argparse.Namespace) -> None:
        # With Scrapy --set is the long form of -s; names of settings are upper case, and keys are not.
        opts.set += [pair for pair in opts.overrides if _SETTING.match(pair)]
        opts.overrides = [pair for pair in opts.overrides if not _SETTING.match(pair)]
        if opts.processes is not None:
            if not (opts.processes.isascii() and opts.processes.isdigit() and int(opts.processes[:9])):
                raise UsageError(f"--processes: must be a whole number of at least 1 (got {opts.processes})")
            opts.overrides.append(f"fetch.processes={opts.processes}")
        super().check_use(args, opts)
        if not args and not opts.all:
            raise UsageError(f"missing argument: searchcrawl {self.name} {self.syntax()}")
        if opts.all and (args or opts.output or opts.overwrite_output):
            raise UsageError("--all: not together with a name, -o or -O")
        level = self.load_settings()["LOG_LEVEL"]
        # Checked before Scrapy looks at it.
        if level not in _LEVELS:
            raise UsageError(f"the log level must be one of {', '.join(_LEVELS)} (got {level})")

    def _log_options(self, opts: argparse.Namespace) -> tuple[str | None, str | None]:
        """The file that scrapyd or ``--logfile`` asks for, and the level of the command line."""
        settings = self.load_settings()
        given = {pair.partition("=")[0] for pair in opts.set}
        level = settings["LOG_LEVEL"] if opts.loglevel or "LOG_LEVEL" in given else None
        # That of a settings module is for spiders in Python.
        is_given = (settings.getpriority("LOG_FILE") or 0) >= SETTINGS_PRIORITIES["cmdline"]
        return (settings["LOG_FILE"] or None) if is_given else None, level

    def _check_settings(self, opts: argparse.Namespace) -> None:
        """Refuses settings that would break what a source promises, wherever they are made."""
        for pair in opts.set:
            name, _, text = pair.partition("=")
            reason = find_refusal_on_command_line(name, text)
            if reason is not None:
                raise UsageError(f"-s {name}: {reason}")
            if name in COMPONENTS:
                for _, message in find_component_errors({name: json.loads(text)}, root=find_project()):
                    raise ConfigurationError("command line", f"-s {name}", message)
        settings = self.load_settings()
        obstacle = find_obstacle(settings)
        if obstacle is not None:
            name, message = obstacle
            got = f" (got {quote_value(settings[name], Privacy.BY_NAME)})"
            raise ConfigurationError("settings module", name, message + got)
        _conceal(settings)

    def _crawl_in_python(self, spider: type[Spider], opts: argparse.Namespace) -> int:
        """A spider that is no source's: it runs as Scrapy has it run."""
        if self.crawler_process is None:
            raise ConfigurationError("settings", "TWISTED_REACTOR", "there is no process that could crawl")
        if opts.json:
            print_note(f"searchcrawl: --json: {spider.name} is a spider in Python, whose statistics are in its log")
        restore_log(self.load_settings(), self.default_settings)
        try:
            with prints_among_answers():
                return run_python_spider(self.crawler_process, spider, opts)
        except ScrapyUsageError as error:
            raise UsageError(str(error)) from error

    def _crawl(self, spider: type[SourceSpider], arguments: dict[str, Any]) -> None:
        """Runs the reactor until the spider is closed; raises StoreError where the crawl did not begin at all."""
        process = require_asyncio(self.crawler_process)
        crawler, error = run_spider(process, spider, **arguments)
        if isinstance(error, SearchcrawlError):
            raise error
        if error is not None and crawler.spider is None and spider.source.spider is not None:
            message = f"{spider.source.spider} cannot begin: {join_lines(show_error(error))}"
            raise ConfigurationError(*spider.source.locate("spider"), message) from error
        if error is not None and not isinstance(error, OSError) and (own := _find_own(crawler.settings)):
            message = f"{' or '.join(own)} cannot begin: {join_lines(show_error(error))}"
            raise ConfigurationError("settings", "components", message) from error
        if process.bootstrap_failed or crawler.engine is None:
            reason = "" if error is None else f": {join_lines(show_error(error))}"
            logger.error("the crawl of %s could not begin%s", spider.name, reason, exc_info=error)
            logs = spider.project.logs_dir
            raise StoreError(f"the crawl of {spider.name} could not begin{reason}; its log is in {logs}") from error

    def _print_result(self, run: Run, *, as_json: bool) -> int:
        # The reason why documents wait was logged when the delivery stopped.
        if isinstance(run.shutdown.failure, SearchcrawlError):
            print_error(run.shutdown.failure)
        status, unwritten = None, None
        try:
            if isinstance(run.shutdown.failure, LeaseLost):
                # The run is that process's now, with its numbers.
                print_note(
                    f"searchcrawl: searchcrawl status {run.source.name} shows the run, as that process goes on with it"
                )
            else:
                status = self._read_status(run)
                unwritten = try_output(partial(self._show_status, run, status, as_json=as_json))
        except StoreError as error:
            # The failure of the store was logged when it ended the run.
            if run.shutdown.failure is None:
                print_error(error)
        if run.exit_code is None:
            _leave_at_once()
        if not isinstance(run.shutdown.failure, LeaseLost):
            follow_run(run, status)
        for note in run.files.notes:
            print_note(f"searchcrawl: {note}")
        run.database.close()
        code = run.exit_code if run.shutdown.failure is None else exit_of_failure(run.shutdown.failure)
        if unwritten is not None and not code:
            raise unwritten
        return code

    def _read_status(self, run: Run) -> dict[str, Any]:
        with look_at_index(run.project) as look:
            # An index that was away just now is not waited for again.
            index = look if run.delivery_failure is None else None
            return describe_status(run.project, run.source, run.database, index=index)

    def _show_status(self, run: Run, status: Mapping[str, Any], *, as_json: bool) -> None:
        if as_json:
            print_object(status)
        else:
            show_summary(status, said=run.project.said_file(run.source.name))
        if run.exit_code == Exit.NO_START:
            _print_failed_starts(run)
            if has_mostly_failed_logins(run.counts):
                text = "most pages failed the login: searchcrawl urls {} --code 959 names them"
                print_note(f"searchcrawl: {text.format(run.source.name)}")


def _find_own(settings: BaseSettings) -> list[str]:
    """The components of users that a crawl has."""
    paths = [
        component if isinstance(component, str) else f"{component.__module__}.{component.__qualname__}"
        for name in COMPONENTS
        for component, place in settings.getdict(name).items()
        if place is not None
    ]
    return [path for path in paths if path.partition(".")[0] not in {"searchcrawl", "scrapy"}]


def _find_export(text: str, name: str) -> tuple[Path, str]:
    try:
        return find_kind(text, name)
    except ValueError as error:
        raise UsageError(f"-o {text}: {error}") from error


def _check_exports(exports: Sequence[tuple[Path, str]], project: Project, source: Source) -> None:
    """Refuses files that cannot be written, or that a feed of the source writes as well."""
    if exports and not project.cache.preserve:
        raise ConfigurationError(FILE, "cache.preserve", "must be true for -o: it reads the documents of the cache")
    feeds = {find_path(project, source, feed): feed for feed in list_feeds(project, source)}
    for path, _ in exports:
        if (wrong := find_own_place(project, path)) is not None:
            raise UsageError(f"-o {path}: {wrong}")
        feed = feeds.get(path)
        if feed is not None:
            file, key = find_origin(source, feed)
            raise UsageError(f"-o {path}: is the file of a feed, too ({file}: {key})")


def _conceal(settings: Settings) -> None:
    """Keeps credentials of the settings module or of ``-s`` out of the log, into which Scrapy writes settings."""
    for name in settings:
        priority, value = settings.getpriority(name), settings[name]
        if priority and is_credential(name) and isinstance(value, str) and value:
            hide(value)
            settings.set(name, Concealed(value), priority=priority)


def _leave_at_once() -> NoReturn:
    """Ends the process after a second signal: the run is not over, the next one goes on with it.

    Threads that are still delivering would keep the process for as long as the index is waited for.
    """
    logging.shutdown()
    try_output()
    os._exit(Exit.ENDED_EARLY)


def _arguments(pairs: list[str]) -> dict[str, str]:
    arguments = dict(pair.partition("=")[::2] for pair in pairs)
    arguments.pop(_JOB, None)
    for name, value in arguments.items():
        if name not in {"limit", "pages"}:
            # The value is not shown: it may be a password, and no log may have it.
            raise UsageError(f"unknown spider argument: -a {name} (there is limit=N)")
        if not value.isdigit() or int(value) < 1:
            raise UsageError(f"-a {name}={value}: must be a whole number of at least 1")
    return arguments


def _print_failed_starts(run: Run) -> None:
    """Prints to standard error why nothing was crawled: the first start URLs, as ``urls`` shows them."""
    if not run.counts[NO_START]:
        return
    shown = min(_STARTS_SHOWN, len(read_start_urls(run.project, run.source)))
    named = {start.url for start in run.starts}
    starts = (row for row in list_urls(run.database, run.source) if row["depth"] == 0)
    for row in islice((row for row in starts if row["url"] in named), shown):
        print_note(f"searchcrawl: start URL: {url_line(row)}")


def _crawl_all(project: Project, opts: argparse.Namespace) -> int:
    """Crawls all sources but those that are suspended, each in a process of its own; the highest of their exit codes.

    A signal ends the one under way, and no other is begun.
    """
    from searchcrawl.scheduling.service import Signals  # noqa: PLC0415  # it loads what starts crawls, an HTTP client too

    sources, errors = load_sources(project)
    for error in errors:
        print_error(error)
    codes = [int(exit_of(error)) for error in errors]
    signals = Signals()
    with signals.catch():
        for name in sources:
            if signals.count:
                codes.append(Exit.ENDED_EARLY)
                break
            if _is_suspended(project, name):
                print_note(f"searchcrawl: {name} is left out: it is suspended (searchcrawl resume {name})")
            else:
                codes.append(_crawl_one(project, name, opts, signals))
    return max(codes, default=Exit.DONE)


def _is_suspended(project: Project, name: str) -> bool:
    with use_store(project) as database, database.read_once() as transaction:
        return run_table.find_source(transaction, name) in job_table.find_suspended(transaction)


def _crawl_one(project: Project, name: str, opts: argparse.Namespace, signals: Signals) -> int:
    from searchcrawl.scheduling.launching import build_command  # noqa: PLC0415  # as above

    flush_output()
    command = [*build_command(name), *_list_options(opts)]
    passed = signals.count
    with subprocess.Popen(command, cwd=project.root) as child:  # noqa: S603  # our own command
        while child.poll() is None:
            signals.wait(_POLL_SECONDS)
            if signals.count > passed:
                passed = signals.count
                # A terminal has sent it to the crawl as well; twice would be the second Ctrl-C.
                if signals.last != signal.SIGINT or not sys.stdin.isatty():
                    child.send_signal(signal.SIGTERM)
    # One that was killed goes on with its next run.
    return child.returncode if child.returncode >= 0 else Exit.ENDED_EARLY


def _list_options(opts: argparse.Namespace) -> Iterator[str]:
    """The options of the command line, for each crawl."""
    for option, values in (("-a", opts.arguments), ("-s", opts.set), ("--set", opts.overrides)):
        for value in values:
            yield from (option, value)
    if opts.loglevel:
        yield from ("-L", opts.loglevel)
    if opts.logfile:
        yield from ("--logfile", opts.logfile)
    if opts.json:
        yield "--json"


@contextmanager
def _note_failed_job(load_project: Callable[[], Project], name: str, token: str) -> Iterator[None]:
    """Notes in the store that a crawl of a try failed before, or instead of, its end; errors go on."""
    try:
        yield
    except (UsageError, SearchcrawlError, OSError) as error:
        if token:
            code = Exit.WRONG_USE if isinstance(error, UsageError) else exit_of(error)
            _note_end(load_project(), name, token, code, to_one_line(redact(" ".join(error_lines(error)))))
        raise


def _note_end(project: Project, name: str, token: str, code: Exit, text: str) -> None:
    try:
        with use_store(project) as database:
            source_id = database.read(run_table.find_source, name)
            if source_id is not None:
                database.write(job_table.end, source_id, token, exit_code=code, error=text, now_ms=clock.now_ms())
    except StoreError as error:
        # Who started it sees that its process ended.
        print_error(error)
