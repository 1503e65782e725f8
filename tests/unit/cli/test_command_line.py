"""What all commands share: options, exit codes, errors on a line, printed answers."""

from __future__ import annotations

import argparse
import json
import re
from itertools import pairwise

import pytest
from scrapy.commands import ScrapyHelpFormatter
from scrapy.settings import Settings

from searchcrawl import exceptions
from searchcrawl.cli import commands, dispatch
from searchcrawl.cli.command import BaseCommand
from searchcrawl.cli.dispatch import make_command
from searchcrawl.cli.output import print_objects, print_table
from searchcrawl.exceptions import exit_of
from searchcrawl.sources.secrets import hide


class Answering(BaseCommand):
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

    def execute(self, args: list[str], opts: argparse.Namespace) -> None:
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
        (exceptions.UnknownAttribute("unknown attribute: x"), 2),
        (exceptions.UnknownRun("unknown run: 7"), 2),
        (exceptions.ConfigurationError("f", "k", "m"), 4),
        (exceptions.NotAvailableYet("f", "k", "not available yet"), 4),
        (exceptions.UnsupportedByIndex("no search"), 4),
        (exceptions.SourceBusy("busy"), 5),
        (exceptions.IndexUnavailable("down"), 6),
        (exceptions.IndexMisconfigured("no core"), 6),
        (exceptions.StoreError("locked"), 7),
        (exceptions.OtherRevision("newer"), 7),
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


@pytest.mark.parametrize(
    "error",
    [
        exceptions.StoreError("no answer from me:hush-hush@db"),
        exceptions.ConfigurationError("f", "k", "m (got hush-hush)"),
        exceptions.InvalidFile([exceptions.ConfigurationError("f", "k", "hush-hush")]),
    ],
)
def test_run_when_an_error_holds_a_secret_then_its_line_does_not(
    error: Exception, capsys: pytest.CaptureFixture[str]
) -> None:
    hide("hush-hush")

    call(Answering(error))

    written = capsys.readouterr().err
    assert "***" in written
    assert "hush" not in written


def test_run_when_a_file_has_several_errors_then_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    errors = [exceptions.ConfigurationError("f.toml", key, "is wrong\nhere") for key in ("a", "b")]

    call(Answering(exceptions.InvalidFile(errors)))

    assert capsys.readouterr().err == "f.toml: a: is wrong\\nhere\nf.toml: b: is wrong\\nhere\n"


def test_run_when_the_answer_has_a_bug_then_it_is_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        call(Answering(ZeroDivisionError()))


@pytest.mark.parametrize("argv", [("--foo",), ("-x",), ("a", "--foo=1"), ("a", "b", "c")])
def test_process_options_when_something_is_left_over_then_refused(
    argv: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        call(Answering(), *argv)

    assert "error: unrecognized" in capsys.readouterr().err


def test_process_options_when_arguments_follow_two_dashes_then_they_are_no_options() -> None:
    command = call(Answering(), "a", "--", "-word")

    assert command.seen == ["a", "-word"]


def test_process_options_when_an_argument_is_missing_then_refused(capsys: pytest.CaptureFixture[str]) -> None:
    command = Answering()
    command.arguments = (1, 1)  # type: ignore[misc]

    with pytest.raises(SystemExit, match="2"):
        call(command)

    assert "error: missing argument" in capsys.readouterr().err


@pytest.mark.parametrize(
    "argv",
    [
        ("urls", "demo", "--code", "9" * 20),
        ("urls", "demo", "--code", "-1"),
        ("urls", "demo", "--host", "a\udcff"),
        ("urls", "demo", "--host", "http://a.test/"),
        ("urls", "demo", "--host", "*.a.test"),
        ("urls", "demo", "--rule", "a\udcff"),
        ("quarantine", "approve", "demo", "--run", "9" * 20),
        ("search", "*", "--offset", "9" * 20),
    ],
)
def test_options_when_one_has_a_value_that_no_store_can_hold_then_refused(
    argv: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    parser = argparse.ArgumentParser(conflict_handler="resolve")
    make_command(argv[0]).add_options(parser)

    with pytest.raises(SystemExit, match="2"):
        parser.parse_known_args(argv[1:])

    assert "error: argument --" in capsys.readouterr().err


def test_print_objects_when_several_then_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    print_objects([{"a": "é"}, {"b": None}])

    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == [{"a": "é"}, {"b": None}]


def test_print_table_when_values_steer_the_terminal_then_they_are_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("url", "pages"), [("http://a/[red]\x1b[2J", 12), (None, 3)])

    printed = capsys.readouterr().out
    assert "\x1b" not in printed
    assert "http://a/[red]\\x1b[2J" in printed
    assert "None" not in printed


def test_print_table_when_it_has_a_title_then_the_title_stays_on_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("", "n"), [("a", 1)], title="a title that is wider than the table")

    assert "a title that is wider than the table\n" in capsys.readouterr().out


@pytest.mark.parametrize("name", commands.list_names())
def test_description_when_a_module_is_a_command_then_its_first_line_says_what_it_does(name: str) -> None:
    assert re.fullmatch(r"[A-Z][^`\"]{10,90}[^`\".]", commands.describe(name))


@pytest.mark.parametrize("name", commands.list_names())
def test_help_when_scrapy_shows_it_on_a_narrow_terminal_then_no_line_of_an_option_becomes_a_heading(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Scrapy takes each line that ends with a colon for a heading, wherever the terminal wraps.
    headings = set()
    command = make_command(name)
    for columns in range(40, 121):
        monkeypatch.setenv("COLUMNS", str(columns))
        parser = argparse.ArgumentParser(formatter_class=ScrapyHelpFormatter, conflict_handler="resolve")
        command.add_options(parser)
        lines = parser.format_help().splitlines()
        headings |= {above for above, line in pairwise(lines) if re.fullmatch("={3,}|-{3,}", line)}

    assert headings == {"Usage", "Options", "Global Options"}


@pytest.mark.parametrize(
    "args", [("undelete", "1\nforged: line"), ("crawl", "a", "b\nforged: line"), ("cache", "x\nforged: line")]
)
def test_wrong_use_when_an_argument_has_a_line_break_then_the_message_stays_on_one_line(
    args: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("searchcrawl.cli.command.guard_output", lambda: None)
    monkeypatch.setattr(dispatch, "guard_output", lambda: None)

    with pytest.raises(SystemExit) as ended:
        dispatch.main(["searchcrawl", *args])

    assert ended.value.code == 2
    assert not any(line.startswith("forged") for line in capsys.readouterr().err.splitlines())
