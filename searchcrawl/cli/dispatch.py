"""Finds and runs a command: Scrapy's command line with the settings of the project, from anywhere."""

from __future__ import annotations

import difflib
import gc
import importlib
import os
import pkgutil
import sys
from configparser import ConfigParser
from configparser import Error as ConfigParserError
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import scrapy.commands
from scrapy.cmdline import ScrapyArgumentParser, execute
from scrapy.commands import ScrapyHelpFormatter
from scrapy.crawler import AsyncCrawlerProcess
from scrapy.exceptions import UsageError
from scrapy.settings import Settings

from searchcrawl import __version__
from searchcrawl.cli import commands
from searchcrawl.cli.command import Command, Exit, exit_of, print_error
from searchcrawl.exceptions import ConfigurationError, SearchcrawlError
from searchcrawl.sources.checking import one_line, shown
from searchcrawl.sources.loading import find_project

#: Commands of interface.md §2 that a later release brings.
LATER: Final = frozenset({
    "apply", "delete", "optimize", "plan", "recrawl", "resume", "selftest", "serve",
    "stop", "submit", "suspend", "tick", "undelete",
})  # fmt: skip
#: These make or need no project.
WITHOUT_PROJECT: Final = frozenset({"init", "quick"})
_OWN_SETTINGS: Final = "searchcrawl.settings"
_SETTINGS_VARIABLE: Final = "SCRAPY_SETTINGS_MODULE"


def main(argv: list[str] | None = None) -> None:
    """Runs one command and exits with its code; ``argv`` is that of the process where it is None."""
    argv = list(sys.argv if argv is None else argv)
    try:
        sys.exit(_run(argv))
    except KeyboardInterrupt:
        sys.exit(Exit.ENDED_EARLY)
    except BrokenPipeError:
        # The reader has seen enough (``| head``); nothing may be written at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(Exit.DONE)


def _run(argv: list[str]) -> int:
    name = next((arg for arg in argv[1:] if not arg.startswith("-")), None)
    if name is None:
        return _without_command(argv[1:])
    if name in LATER:
        print(f"searchcrawl {name}: not available yet", file=sys.stderr)
        return Exit.WRONG_USE
    known = {*_modules(commands.__path__), *_modules(scrapy.commands.__path__)}
    if name not in known:
        close = difflib.get_close_matches(name, known, n=1)
        guess = f", did you mean {close[0]}?" if close else ""
        print(f"searchcrawl: unknown command{guess} (got {shown(name)})", file=sys.stderr)
        return Exit.WRONG_USE
    try:
        if name in _modules(commands.__path__) and "--profile" not in argv:
            return _run_own(name, argv)
        gc.enable()
        execute(argv, _settings(name))
    except SearchcrawlError as error:
        # Our commands answer for theirs; Scrapy's own commands meet a broken project too.
        print_error(error)
        return exit_of(error)
    return Exit.DONE


def _run_own(name: str, argv: list[str]) -> int:
    """Runs one of our commands as ``execute`` does, without importing all the others (a second of start-up)."""
    command = next(command for command in _own_commands([name]))
    # Off since the start (__main__.py).
    gc.enable()
    settings = _settings(name)
    settings.setdict(command.default_settings, priority="command")
    command.settings = settings
    parser = ScrapyArgumentParser(
        formatter_class=ScrapyHelpFormatter, conflict_handler="resolve", description=command.long_desc()
    )
    command.add_options(parser)
    at = argv.index(name)
    opts, args = parser.parse_known_args([*argv[1:at], *argv[at + 1 :]])
    try:
        command.process_options(args, opts)
        if command.requires_crawler_process:
            command.crawler_process = AsyncCrawlerProcess(settings)
        command.run(args, opts)
    except UsageError as error:
        if str(error):
            parser.error(str(error))
        parser.print_help()
        return Exit.WRONG_USE
    return command.exitcode


def _without_command(options: list[str]) -> int:
    if options and options[0] == "--version":
        print(f"searchcrawl {__version__}")
        return Exit.DONE
    unknown = [option for option in options if option not in {"-h", "--help"}]
    if unknown:
        print(f"searchcrawl: unknown option (got {shown(unknown[0])})", file=sys.stderr)
        return Exit.WRONG_USE
    print("Usage: searchcrawl COMMAND [options] [arguments]\n\nCommands:")
    for command in _own_commands():
        print(f"  {command.name:<12} {command.short_desc()}")
    print("\nsearchcrawl COMMAND --help says more, with an example.", flush=True)
    return Exit.DONE


def _modules(path: list[str]) -> list[str]:
    return sorted(module.name for module in pkgutil.iter_modules(path))


def _own_commands(names: list[str] | None = None) -> list[Command]:
    found: list[Command] = []
    for name in names or _modules(commands.__path__):
        module = importlib.import_module(f"{commands.__name__}.{name}")
        own = [value for value in vars(module).values() if isinstance(value, type) and issubclass(value, Command)]
        found.extend(value() for value in own if value.__module__ == module.__name__)
    return found


def _settings(command: str) -> Settings:
    """The settings of the project, or ours where a command works without a project."""
    module = os.environ.get(_SETTINGS_VARIABLE)
    if module is None:
        try:
            root = find_project()
        except ConfigurationError:
            # The command itself refuses, where it needs one.
            module = _OWN_SETTINGS
        else:
            module = _OWN_SETTINGS if command in WITHOUT_PROJECT else _settings_module(root)
        # Scrapy asks this variable whether it is inside a project.
        os.environ[_SETTINGS_VARIABLE] = module
    settings = Settings()
    settings.setmodule(module, priority="project")
    if not settings["COMMANDS_MODULE"]:
        settings.set("COMMANDS_MODULE", commands.__name__, priority="project")
    return settings


def _settings_module(root: Path) -> str:
    """The module that the project's scrapy.cfg names, importable from the project's folder."""
    parser = ConfigParser()
    try:
        parser.read(root / "scrapy.cfg", encoding="utf-8")
    except (ConfigParserError, UnicodeDecodeError) as error:
        raise ConfigurationError("scrapy.cfg", "", one_line(str(error))) from error
    module = parser.get("settings", "default", fallback=_OWN_SETTINGS)
    if str(root) not in sys.path:
        sys.path.append(str(root))
    try:
        found = find_spec(module)
    except (ImportError, ValueError):
        found = None
    if found is None:
        raise ConfigurationError("scrapy.cfg", "settings.default", f"no such module (got {shown(module)})")
    return module
