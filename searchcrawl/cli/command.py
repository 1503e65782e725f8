"""What all commands share: options, arguments, settings, and the exit codes of errors."""

from __future__ import annotations

import argparse
import os
import re
import sys
from abc import abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, cast

from searchcrawl.cli import commands
from searchcrawl.cli.output import (
    error_lines,
    flush_output,
    guard_output,
    print_error,
    print_note,
    print_warnings,
    try_output,
)
from searchcrawl.environment import Variable
from searchcrawl.exceptions import ConfigurationError, Exit, InvalidFile, SearchcrawlError, exit_of
from searchcrawl.sources.checking import quote_value
from searchcrawl.sources.config import Source
from searchcrawl.sources.loading import find_project, load_project, load_source, load_sources
from searchcrawl.sources.privacy import Privacy
from searchcrawl.sources.project import Project
from searchcrawl.sources.secrets import redact
from searchcrawl.sources.source_settings import find_wrong_value, list_shipped_defaults
from searchcrawl.sources.stored_modes import apply_umask
from searchcrawl.terminal import to_one_line

if TYPE_CHECKING:
    # Scrapy takes longer to load than most commands take: commands that crawl or send to the index load it,
    # and those with Scrapy's options (``-s``, ``--logfile`` …).
    from scrapy.crawler import CrawlerProcessBase
    from scrapy.settings import Settings

#: Of numbers and codes, in each store.
_MOST: Final = 2**31 - 1
#: An option in a usage, with its value.
_OPTION: Final = re.compile(r"--\S+( [A-Z]+)?")
#: Where it is there, all of our own settings are.
_OF_OURS: Final = "SEARCHCRAWL_STALL_SECONDS"


class UsageError(Exception):
    """The command line is wrong; the command ends with its usage and exit code 2."""


def whole_number(text: str) -> int:
    """The value of an option; argparse says what is wrong with any other text, as with what no store can hold."""
    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a whole number (got {text!r})") from None
    if abs(number) > _MOST:
        raise argparse.ArgumentTypeError(f"must be at most {_MOST} (got {text})")
    return number


def utf8_text(text: str) -> str:
    """The value of an option that the store is asked for."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise argparse.ArgumentTypeError(f"must be UTF-8 (got {text!r})") from None
    return text


def find_path(text: str) -> str:
    """An argument that may be a URL or a path, as an absolute path where it is one.

    That is what has a slash in it and begins with the name of something that is here, though its end may be gone.
    """
    first, slash, _ = text.partition("/")
    return os.path.abspath(text) if slash and "://" not in text and os.path.lexists(first) else text  # noqa: PTH100 - a link has a name of its own


def require_free(folder: Path, *, option: str = "") -> None:
    """Raises UsageError, which begins with ``option``, for a folder that nothing new can be written to."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{option}is a file: {folder}")
    if folder.is_dir() and any(folder.iterdir()):
        raise UsageError(f"{option}not empty: {folder}")


class Option(NamedTuple):
    """An option as the help shows it, with its value or without one (``-o --output FILE``, ``--all``), and what it means."""

    shown: str
    meaning: str
    #: what makes a value of its text
    kind: Callable[[str], Any] = str
    default: Any = None
    repeatable: bool = False
    dest: str | None = None
    choices: Sequence[str] | None = None

    def add_to(self, parser: argparse.ArgumentParser) -> None:
        """Has the parser know it."""
        *names, last = self.shown.split()
        if last.startswith("-"):
            parser.add_argument(*names, last, action="store_true", help=self.meaning)
            return
        parser.add_argument(
            *names,
            action="append" if self.repeatable else "store",
            # A list of its own: commands add to it.
            default=[] if self.repeatable else self.default,
            type=self.kind,
            dest=self.dest,
            choices=self.choices,
            metavar=last,
            help=self.meaning,
        )


def _count_arguments(shown: str) -> tuple[int, int]:
    """How many arguments a usage shows, at least and at most: ``list|pause NAME [DIR]`` are 2 to 3."""
    words = _OPTION.sub("", shown).split()
    return sum(not word.startswith("[") for word in words), len(words)


class BaseCommand:
    """The base of our commands; each module of ``cli/commands/`` has one subclass, with the name of the module.

    A command declares how its usage shows its arguments, its ``options``, and an ``example``; it defines ``execute``. It
    raises UsageError for a wrong use, and errors of ``exceptions`` for all else.

    Scrapy's command line (``scrapy crawl NAME``) runs the same classes: it calls ``add_options``, ``process_options``
    and ``run``, and sets ``settings`` and ``crawler_process`` before.
    """

    requires_project = True
    requires_crawler_process = False
    #: Whether settings of Scrapy change what it does, and whether the options of the log do: others are not shown.
    uses_settings = False
    uses_log = False
    default_settings: ClassVar[dict[str, Any]] = {"LOG_ENABLED": False}
    exitcode: int = Exit.DONE

    shown_arguments: ClassVar[str] = ""
    #: How many it takes (at least, at most; None: any number), where that is not as many as are shown.
    arguments: ClassVar[tuple[int, int | None] | None] = None
    options: ClassVar[Sequence[Option]] = ()
    example: ClassVar[str] = ""
    #: What looks like an option, and is refused where it is none.
    option_form: ClassVar[re.Pattern[str]] = re.compile(r"-.", re.DOTALL)
    #: What the help of the command says, where that is more than one line.
    description: ClassVar[str] = ""

    def __init__(self) -> None:
        self.settings: Settings | None = None
        self.crawler_process: CrawlerProcessBase | None = None
        self._parser: argparse.ArgumentParser | None = None
        self._is_checked = False

    @property
    def name(self) -> str:
        return type(self).__module__.rpartition(".")[2]

    @abstractmethod
    def execute(self, args: list[str], opts: argparse.Namespace) -> int | None:
        """Does the work and prints the result; returns the exit code, None for 0."""

    def syntax(self) -> str:
        return self.shown_arguments

    def short_desc(self) -> str:
        return commands.describe(self.name)

    def long_desc(self) -> str:
        return self.description or self.short_desc()

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Adds ``--json``, the global options of Scrapy's commands, and those of this one."""
        self._parser = parser
        parser.prog = f"searchcrawl {self.name}"
        parser.usage = f"searchcrawl {self.name} [options] {self.syntax()}".rstrip()
        parser.epilog = f"Example: {self.example}" if self.example else None
        group = parser.add_argument_group(title="Global Options")
        group.add_argument("--profile", metavar="FILE", help="write the statistics of cProfile to FILE")
        group.add_argument("--pidfile", metavar="FILE", help="write the process ID to FILE")
        # Scrapy and scrapyd may give these to any command: all take them.
        of_log = self._shown_if(self.uses_log)
        group.add_argument("--logfile", metavar="FILE", help=of_log("write the log to FILE too"))
        group.add_argument("-L", "--loglevel", metavar="LEVEL", help=of_log("the least level that is logged"))
        group.add_argument("--nolog", action="store_true", help=of_log("a spider in Python logs nothing"))
        group.add_argument("--pdb", action="store_true", help=of_log("begin a debugger at a failure"))
        text = self._shown_if(self.uses_settings)("set a setting of Scrapy; repeatable")
        group.add_argument("-s", "--set", action="append", default=[], metavar="NAME=VALUE", help=text)
        parser.add_argument("--json", action="store_true", help="print JSON: one object, or one a line for lists")
        for option in self.options:
            option.add_to(parser)

    @staticmethod
    def _shown_if(does_something: bool) -> Callable[[str], str]:
        return (lambda text: text) if does_something else (lambda text: argparse.SUPPRESS)

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        """Ends the process with exit code 2 for a wrong use, also for arguments that Scrapy would ignore."""
        guard_output()
        if (unbuilt := commands.find_later(self.name, args)) is not None:
            print_note(f"searchcrawl {self.name} {unbuilt}: not available yet")
            sys.exit(Exit.WRONG_USE)
        try:
            args[:] = self.find_arguments(args)
            self.check_use(args, opts)
        except UsageError as error:
            self._refuse(error)
        except ConfigurationError as error:
            # Scrapy's command line calls this, and would show a traceback.
            self._report(error)
            sys.exit(self.exitcode)

    def find_arguments(self, args: Sequence[str]) -> list[str]:
        """The arguments without ``--``; raises UsageError for an unknown option."""
        end = args.index("--") if "--" in args else len(args)
        unknown = [arg for arg in args[:end] if self.option_form.match(arg)]
        if unknown:
            raise UsageError(f"unrecognized option: {unknown[0].partition('=')[0]}")
        return [*args[:end], *args[end + 1 :]]

    def check_use(self, args: list[str], opts: argparse.Namespace) -> None:
        """Raises UsageError for options and arguments that do not fit; applies the global options."""
        least, most = self.arguments or _count_arguments(self.shown_arguments)
        if len(args) < least:
            raise UsageError(f"missing argument: searchcrawl {self.name} {self.syntax()}")
        if most is not None and len(args) > most:
            raise UsageError(f"unrecognized argument: {args[most]}")
        for name in (pair.partition("=")[0] for pair in opts.set):
            if "." in name:
                raise UsageError(
                    f"-s {name}: is no setting of Scrapy; crawl --set KEY=VALUE sets a key of a source file"
                )
        for name, _, text in (pair.partition("=") for pair in opts.set):
            if (wrong := find_wrong_value(name, text)) is not None:
                raise UsageError(f"-s {name}: {wrong} (got {quote_value(text, Privacy.BY_NAME)})")
        for option, path in (("--logfile", opts.logfile), ("--pidfile", opts.pidfile)):
            if path:
                _check_writable(option, path)
        if any((opts.set, opts.logfile, opts.loglevel, opts.nolog, opts.pidfile, opts.pdb)):
            self._apply_global_options(opts)

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Sets ``exitcode`` to the result of ``execute``; our own errors become a line and their exit code."""
        try:
            self.exitcode = self.execute(args, opts) or Exit.DONE
            flush_output()
        except UsageError as error:
            self._refuse(error)
        except (SearchcrawlError, OSError) as error:
            self._report(error)
            try_output()

    def _report(self, error: Exception) -> None:
        """Says an error, with its exit code, to all who want to know of it."""
        print_error(error)
        self.exitcode = self.exitcode or exit_of(error)
        self.note_failure(self.exitcode, error_lines(error))
        if Variable.ERROR_FILE in os.environ:
            from searchcrawl.api.child_process import write_error  # noqa: PLC0415  # where a program waits for it

            write_error(Path(os.environ[Variable.ERROR_FILE]), error)

    def note_failure(self, code: int, lines: Sequence[str]) -> None:
        """Called when the command has failed and has said so; for one that has a log of its own."""

    def load_settings(self) -> Settings:
        """The settings of the project with ``default_settings``, loaded once; ``check_use`` adds those of ``-s``."""
        if self.settings is None:
            from searchcrawl.cli.scrapy_commands import load_settings  # noqa: PLC0415  # slow to load

            self.settings = load_settings(self.name)
            self.settings.setdict(self.default_settings, priority="command")
        elif _OF_OURS not in self.settings:
            # Scrapy's command line loads the settings of a project that may know nothing of ours.
            self.settings.setdict(list_shipped_defaults(), priority="default")
        if not self._is_checked:
            self._is_checked = True
            _refuse_wrong_values(self.settings)
        return self.settings

    def load_project(self) -> Project:
        """The project of the working directory or of SEARCHCRAWL_PROJECT, with its umask; raises ConfigurationError."""
        project = load_project(find_project())
        apply_umask(project)
        return project

    def load_source(self, name: str) -> tuple[Project, Source]:
        """The project as ``load_project`` has it, and its source of this name; raises ConfigurationError."""
        project = self.load_project()
        return project, load_source(project, name)

    def load_sources(self, project: Project, name: str | None) -> list[Source]:
        """The source of this name, or all that can be loaded; warns of the errors of the others."""
        if name is not None:
            return [load_source(project, name)]
        sources, errors = load_sources(project)
        print_warnings(errors)
        return list(sources.values())

    def _apply_global_options(self, opts: argparse.Namespace) -> None:
        from scrapy.commands import ScrapyCommand  # noqa: PLC0415  # slow to load
        from scrapy.exceptions import UsageError as ScrapyUsageError  # noqa: PLC0415  # it loads Scrapy

        self.load_settings()
        try:
            ScrapyCommand.process_options(cast(ScrapyCommand, self), [], opts)
        except ScrapyUsageError as error:
            raise UsageError(str(error)) from error

    def _refuse(self, error: UsageError) -> None:
        if self._parser is None:
            raise error
        # Not as Scrapy's parser formats it, with a heading on lines of its own.
        print_note(f"usage: {self._parser.usage}")
        # It may quote an argument.
        print_note(f"{self._parser.prog}: error: {to_one_line(redact(str(error)))}")
        self.note_failure(Exit.WRONG_USE, [str(error)])
        sys.exit(Exit.WRONG_USE)


def _check_writable(option: str, path: str) -> None:
    """Raises UsageError for a file that cannot be written: Scrapy would end with a traceback."""
    try:
        Path(path).open("ab").close()
    except OSError as error:
        raise UsageError(f"{option} {path}: {error.strerror}") from error


def _refuse_wrong_values(settings: Settings) -> None:
    """Raises ConfigurationError for a value of the settings module with which no run could begin."""
    wrong = {name: find_wrong_value(name, settings[name]) for name in settings}
    found = [
        ConfigurationError("settings module", name, f"{message} (got {quote_value(settings[name], Privacy.BY_NAME)})")
        for name, message in wrong.items()
        if message is not None
    ]
    if found:
        raise InvalidFile(found)


if (loaded := sys.modules.get("scrapy.commands")) is not None:
    # Scrapy's command line takes only subclasses of its own base class for commands.
    loaded.ScrapyCommand.register(BaseCommand)
