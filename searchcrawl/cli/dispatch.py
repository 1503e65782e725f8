"""Finds and runs a command. Loads Scrapy itself only for Scrapy's own commands and for ``--profile``."""

from __future__ import annotations

import argparse
import gc
import importlib
import os
import pkgutil
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from searchcrawl import __version__
from searchcrawl.cli import commands
from searchcrawl.cli.leaving import leave_while_loading
from searchcrawl.cli.output import (
    answers_apart,
    guard_output,
    print_error,
    print_line,
    print_note,
    try_output,
)
from searchcrawl.exceptions import Exit, SearchcrawlError, exit_of

if TYPE_CHECKING:
    from searchcrawl.cli.command import BaseCommand

#: A shell asks how a command line goes on.
_COMPLETING: Final = "_ARGCOMPLETE"
#: The command that a signal ends cleanly: at any moment with the same exit code.
_CRAWL: Final = "crawl"
#: What people type first; it is no command, and neither is it one of Scrapy's.
_HELP: Final = "help"
#: A command of Scrapy that draws on the terminal by itself.
_SHELL: Final = "shell"


def main(argv: list[str] | None = None) -> None:
    """Runs one command and exits with its code; ``argv`` None is that of the process."""
    argv = list(sys.argv if argv is None else argv)
    if _COMPLETING in os.environ:
        from searchcrawl.cli.commands.completion import complete  # noqa: PLC0415  # imports commands by this module

        complete()
    if _SHELL not in argv[1:2]:
        guard_output()
    sys.exit(_run_to_its_end(argv))


def _run_to_its_end(argv: list[str]) -> int | str | None:
    """The code with which the process ends, after all that was answered is written."""
    code: int | str | None = Exit.DONE
    unwritten: OSError | None = None
    try:
        code = _run(argv)
    except SystemExit as ended:
        code = ended.code
    except KeyboardInterrupt:
        code = Exit.ENDED_EARLY
    except OSError as error:
        unwritten = error
    unwritten = try_output() or unwritten
    if unwritten is not None:
        print_error(unwritten)
        code = code or exit_of(unwritten)
    return code


def _run(argv: list[str]) -> int:
    name = next((arg for arg in argv[1:] if not arg.startswith("-")), None)
    if name is None:
        return _run_without_command(argv[1:])
    if name == _HELP and argv[1:] == [_HELP]:
        return _run_without_command([])
    if name in commands.LATER:
        return _refuse(f"searchcrawl {name}: not available yet")
    own = commands.list_names()
    known = {*own, *_find_scrapy_commands()}
    if name not in known:
        return _refuse(f"searchcrawl: unknown command{_guess(name, known)}")
    try:
        if name in own and "--profile" not in argv:
            return _run_shipped(name, argv)
        from searchcrawl.cli.scrapy_commands import execute_command  # noqa: PLC0415  # loads Scrapy

        # Off since the start (__main__.py).
        gc.enable()
        execute_command(argv, name)
    except SearchcrawlError as error:
        # Our commands report such errors themselves; the commands of Scrapy also meet a broken project.
        print_error(error)
        return exit_of(error)
    return Exit.DONE


def _run_shipped(name: str, argv: list[str]) -> int:
    # Without this, Pydantic looks through all installed packages for plugins of its own; there are none.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    if name == _CRAWL:
        leave_while_loading()
    command = make_command(name)
    # Everything loaded by now stays until the end: the garbage collector need not look at it.
    gc.freeze()
    # Off since the start (__main__.py).
    gc.enable()
    parser = argparse.ArgumentParser(conflict_handler="resolve", description=command.long_desc())
    command.add_options(parser)
    at = argv.index(name)
    opts, args = parser.parse_known_args([*argv[1:at], *argv[at + 1 :]])
    with answers_apart():
        return _run_command(command, args, opts)


def _run_command(command: BaseCommand, args: list[str], opts: argparse.Namespace) -> int:
    command.process_options(args, opts)
    if command.requires_crawler_process:
        from searchcrawl.cli.scrapy_commands import make_process  # noqa: PLC0415  # heavy

        try:
            command.crawler_process = make_process(command.load_settings())
        except OSError as error:  # the file of --logfile
            print_error(error)
            return exit_of(error)
    command.run(args, opts)
    return command.exitcode


def make_command(name: str) -> BaseCommand:
    module = importlib.import_module(f"{commands.__name__}.{name}")
    from searchcrawl.cli.command import BaseCommand  # noqa: PLC0415  # `--help` does without

    own = (value for value in vars(module).values() if isinstance(value, type) and issubclass(value, BaseCommand))
    made: BaseCommand = next(value for value in own if value.__module__ == module.__name__)()
    return made


def _run_without_command(options: list[str]) -> int:
    if options and options[0] == "--version":
        print_line(f"searchcrawl {_find_version()}")
        return Exit.DONE
    unknown = [option for option in options if option not in {"-h", "--help"}]
    if unknown:
        return _refuse(f"searchcrawl: unknown option (got {_show(unknown[0])})")
    described = [f"  {name:<12} {commands.describe(name)}" for name in commands.list_names()]
    for line in ("Usage: searchcrawl COMMAND [options] [arguments]", "", "Commands:", *described, ""):
        print_line(line, hang=15)
    print_line("searchcrawl COMMAND --help says more, with an example.")
    return Exit.DONE


def _find_version() -> str:
    """That of the build, or in a checkout that of its present commit."""
    if find_spec("searchcrawl._built") is not None:
        return __version__
    from searchcrawl.release import find_version  # noqa: PLC0415  # for this alone

    return find_version()


def _find_scrapy_commands() -> list[str]:
    """The names of Scrapy's own commands, without loading it."""
    spec = find_spec("scrapy")
    folders = [f"{folder}/commands" for folder in (spec.submodule_search_locations or [])] if spec else []
    return [module.name for module in pkgutil.iter_modules(folders)]


def _guess(name: str, known: set[str]) -> str:
    import difflib  # noqa: PLC0415  # for an error alone

    close = difflib.get_close_matches(name, known, n=1)
    return f"{f', did you mean {close[0]}?' if close else ''} (got {_show(name)})"


def _show(text: str) -> str:
    from searchcrawl.sources.checking import quote_value  # noqa: PLC0415  # heavy

    return quote_value(text)


def _refuse(message: str) -> int:
    print_note(message)
    return Exit.WRONG_USE
