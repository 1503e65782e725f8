"""What all commands share: options, exit codes, errors on a line, printed answers."""

from __future__ import annotations

import argparse
import json

import pytest
from scrapy.exceptions import UsageError
from scrapy.settings import Settings

from searchcrawl import exceptions
from searchcrawl.command_line import Command, exit_of, print_objects, print_table


class Answering(Command):
    """A command that raises what it was given, or echoes its arguments."""

    arguments = (0, 2)
    example = "searchcrawl answering"

    def __init__(self, failure: Exception | None = None) -> None:
        super().__init__()
        self.failure = failure
        self.settings = Settings()
        self.seen: list[str] = []

    def short_desc(self) -> str:
        return "Answer"

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        self.seen = args
        if self.failure is not None:
            raise self.failure


def call(command: Answering, *argv: str) -> Answering:
    """Does what Scrapy's command line does with a command."""
    parser = argparse.ArgumentParser(conflict_handler="resolve")
    command.add_options(parser)
    opts, args = parser.parse_known_args(argv)
    command.process_options(args, opts)
    command.run(args, opts)
    return command


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (exceptions.UnknownSource("unknown source: x"), 2),
        (exceptions.ConfigurationError("f", "k", "m"), 4),
        (exceptions.NotAvailableYet("f", "k", "not available yet"), 4),
        (exceptions.UnsupportedByIndex("no search"), 4),
        (exceptions.SourceBusy("busy"), 5),
        (exceptions.IndexUnavailable("down"), 6),
        (exceptions.IndexMisconfigured("no core"), 6),
        (exceptions.StoreError("locked"), 7),
        (exceptions.StoreNewer("newer"), 7),
        (exceptions.CacheError("full"), 7),
        (exceptions.LeaseLost("lost"), 7),
        (OSError(28, "No space left on device"), 7),
    ],
)
def test_run_when_the_answer_raises_then_its_exit_code_and_one_line(
    error: Exception, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    command = call(Answering(error))

    captured = capsys.readouterr()
    assert command.exitcode == code == exit_of(error)
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert "Traceback" not in captured.err


def test_run_when_a_file_has_several_errors_then_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    errors = [exceptions.ConfigurationError("f.toml", key, "is wrong\nhere") for key in ("a", "b")]

    call(Answering(exceptions.InvalidFile(errors)))

    assert capsys.readouterr().err == "f.toml: a: is wrong\\nhere\nf.toml: b: is wrong\\nhere\n"


def test_run_when_the_answer_has_a_bug_then_it_is_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        call(Answering(ZeroDivisionError()))


@pytest.mark.parametrize("argv", [("--foo",), ("-x",), ("a", "--foo=1"), ("a", "b", "c")])
def test_process_options_when_something_is_left_over_then_refused(argv: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match="unrecognized"):
        call(Answering(), *argv)


def test_process_options_when_arguments_follow_two_dashes_then_they_are_no_options() -> None:
    command = call(Answering(), "a", "--", "-word")

    assert command.seen == ["a", "-word"]


def test_process_options_when_an_argument_is_missing_then_refused() -> None:
    command = Answering()
    command.arguments = (1, 1)  # type: ignore[misc]

    with pytest.raises(UsageError, match="missing argument"):
        call(command)


def test_print_objects_when_several_then_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    print_objects([{"a": "é"}, {"b": None}])

    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == [{"a": "é"}, {"b": None}]


def test_print_table_when_values_steer_the_terminal_then_they_are_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("url", "pages"), [("http://a/[red]\x1b[2J", 12), (None, 3)])

    printed = capsys.readouterr().out
    assert "\x1b" not in printed
    assert "http://a/[red]\\x1b[2J" in printed
    assert "None" not in printed
