"""What is written steers no terminal; other scripts, emoji and joiners stay as they are (X-O4)."""

from __future__ import annotations

import io
import json
import logging
import os
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from searchcrawl.cli.output import (
    fit_columns,
    guard_output,
    print_line,
    print_note,
    print_object,
    print_objects,
    print_table,
    while_read,
)
from searchcrawl.extensions.run_log import LogFile, OneLine
from searchcrawl.sources.secrets import hide, redact
from searchcrawl.terminal import GuardedStream, escape_json, guard_logs, make_console, to_lines, to_one_line, wrap_line

CONTROLS = [chr(code) for code in (*range(0x20), *range(0x7F, 0xA0))]
DIRECTIONS = list("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
#: Separators of lines, marks without a picture, tags, no characters.
OTHERS = list("\u2028\u2029\u2060\u2064\u206a\u206f\ufeff\ufff9\ufffb\ufdd0\ufffe\uffff\ud800\udfff") + list(
    "\U0001d173\U0001fffe\U000e0001\U000e0041\U000e007f\U0010ffff"
)
#: Persian with ZWNJ, Hindi with ZWJ, Hebrew with RLM, Arabic with ALM, Thai with a blank of no width, a soft hyphen,
#: a family joined by ZWJ, a heart with its variation, the flag of Scotland, and an emoji newer than Python 3.11.
LEGITIMATE = [
    "می\u200cخواهم",
    "क्\u200dष",
    "שלום\u200f!",
    "\u061cعربي 12\u200e",
    "ไทย\u200bไทย",
    "Donau\u00addampf \u00a0\u2009\u202f\u3000x",
    "👩\u200d👩\u200d👧 ❤\ufe0f 👍🏽",
    "🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",
    "\U0001fae8 \U0001fadf",
    "蜘蛛 Ελλάδα é e\u0301 \ue001",
]


@pytest.mark.parametrize("character", [*CONTROLS, *DIRECTIONS, *OTHERS], ids=lambda text: f"{ord(text):x}")
def test_line_when_a_character_steers_then_it_is_escaped(character: str) -> None:
    written = {to_one_line(f"a{character}b"), escape_json(f'"a{character}b"')}

    assert all(text.isascii() and text.isprintable() and "b" in text for text in written)


@pytest.mark.parametrize("text", LEGITIMATE)
def test_line_when_text_is_of_any_script_then_it_stays(text: str) -> None:
    assert to_one_line(text) == to_lines(text) == escape_json(text) == text


def test_line_when_tags_spell_no_flag_then_they_are_escaped() -> None:
    hidden = "🏴" + "".join(chr(0xE0000 + ord(letter)) for letter in "ignore all that") + "\U000e007f"

    assert all(unicodedata.category(character) != "Cf" for character in to_one_line(hidden))


@pytest.mark.parametrize("text", ["\x9b31m\u202e\x7f", "\U000e0001\U0001fffe", *LEGITIMATE, "".join(CONTROLS)])
def test_json_when_it_is_escaped_then_it_means_the_same(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    print_object({"title": text, text: [1]})

    printed = capsys.readouterr().out
    assert orjson.loads(printed) == json.loads(printed) == {"title": text, text: [1]}
    assert printed == to_lines(printed)
    assert printed.count("\n") == 1


def test_lines_when_a_value_has_line_breaks_then_no_line_is_forged(capsys: pytest.CaptureFixture[str]) -> None:
    print_line("a\nok\u2028ok\x85ok\r")
    print_note("b\nok")
    print_table(("x\x9b", "n"), [("c\nok\x1b[2J", 1)], title="t\nok")

    captured = capsys.readouterr()
    assert captured.out.startswith("a\\nok\\u2028ok\\x85ok\\r\nt\\nok\n")
    assert captured.err == "b\\nok\n"
    assert to_lines(captured.out) == captured.out
    assert "c\\nok\\x1b[2J" in captured.out


def test_guard_when_others_write_then_nothing_steers_and_no_secret_is_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging, "_logRecordFactory", logging.getLogRecordFactory())
    hide("pa55-of-the-guard")
    guard_output()
    guard_output()

    print("page\x9b31m\u202e", "\tnext", sep="\n")
    sys.stdout.writelines(["one\x07\n", "two\ud800\n"])
    sys.stderr.write("bad\x1b]0;t\x07 pa55-of-the-guard\n")
    sys.excepthook(ValueError, ValueError("title\x9b31m\npa55-of-the-guard"), None)

    captured = capsys.readouterr()
    assert captured.out == "page\\x9b31m\\u202e\n\tnext\none\\x07\ntwo\\ud800\n"
    assert captured.err == to_lines(captured.err)
    assert "bad\\x1b]0;t\\x07 ***\n" in captured.err
    assert "ValueError: title\\x9b31m\n***\n" in captured.err


def test_guard_when_it_is_asked_then_it_is_the_stream_inside() -> None:
    inner = io.StringIO()
    stream = GuardedStream(inner)

    assert stream.write("a\x9b") == 2
    make_console(stream, force_terminal=True).print("b", style="bold")  # type: ignore[arg-type]

    assert inner.getvalue() == "a\\x9b\x1b[1mb\x1b[0m\n"
    assert stream.closed is False
    assert stream.isatty() is False


def test_guard_when_a_stream_is_closed_then_what_is_written_there_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging, "_logRecordFactory", logging.getLogRecordFactory())
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    guard_output()

    print_line("a")
    print_note("b")
    print_object({"c": 1})
    print_table(("d",), [(1,)])

    assert not sys.stdout.isatty()
    sys.stdout.close()
    sys.stderr.close()


def test_log_when_a_record_steers_then_it_is_one_line_that_does_not(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "demo.log")
    log.setFormatter(OneLine("%(levelname)s %(message)s"))
    for text in ("a\x9b31m\u202e\x1b[2J\x85ERROR forged", "b\nERROR forged", *LEGITIMATE):
        log.handle(logging.LogRecord("x", logging.INFO, __file__, 1, "%s", (text,), None))
    log.close()

    lines = (tmp_path / "demo.log").read_text("utf-8").split("\n")
    assert lines[:3] == ["INFO a\\x9b31m\\u202e\\x1b[2J\\x85ERROR forged", "INFO b", "    ERROR forged"]
    assert lines[3:-1] == [f"INFO {text}" for text in LEGITIMATE]


def test_log_when_others_format_it_then_it_steers_nothing_and_tells_no_secret(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(logging, "_logRecordFactory", logging.getLogRecordFactory())
    hide("pa55-of-the-log")
    written = io.StringIO()
    logger = logging.getLogger("others")
    logger.addHandler(handler := logging.StreamHandler(written))
    guard_logs(alter=redact)

    logger.warning("page %s", "\x9b31m pa55-of-the-log")
    try:
        raise ValueError("\u202egpj pa55-of-the-log")
    except ValueError:
        logger.exception("failed", stack_info=True)

    logger.removeHandler(handler)
    text = written.getvalue()
    assert text.startswith("page \\x9b31m ***\nfailed\nTraceback")
    assert "ValueError: \\u202egpj ***\n" in text
    assert text == to_lines(redact(text))


@pytest.mark.parametrize(
    ("text", "hang", "lines"),
    [
        ("short", None, ["short"]),
        ("one two three", None, ["one two", "  three"]),
        ("  step  one two", 8, ["  step  one", "        two"]),
        # What is wider stays whole, and begins as far to the left as it must.
        ("at http://a.test/x/y", 8, ["at", "http://a.test/x/y"]),
        ("a 1234567890", 8, ["a", " 1234567890"]),
        ("気圧 計器 数値", None, ["気圧 計器", "  数値"]),
    ],
)
def test_line_when_it_is_wider_than_the_terminal_then_wrapped_at_blanks(
    text: str, hang: int | None, lines: list[str]
) -> None:
    assert wrap_line(text, 11, hang=hang) == lines


@pytest.mark.parametrize(
    ("room", "widths"),
    [(40, [2, 11, 12]), (20, [2, 6, 12]), (19, [2, 5, 12]), (18, None)],
)
def test_table_when_it_is_wider_than_the_terminal_then_columns_wrap_between_words(
    room: int, widths: list[int] | None
) -> None:
    rows = [("no", "two words", "url"), ("1", "other words", "twelve_chars")]

    assert fit_columns(rows, room) == widths


def test_table_when_a_cell_is_a_path_then_it_may_be_folded() -> None:
    assert fit_columns([("http://a.test/" + "x" * 50, "word")], 30) == [26, 4]


@pytest.fixture
def unread() -> Iterator[GuardedStream]:
    """A stream whose reader has ended."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w", buffering=1, encoding="utf-8") as inner:
        yield GuardedStream(inner)


def test_list_when_its_reader_has_ended_then_the_rest_is_not_asked_for(
    unread: GuardedStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", unread)
    rows = iter([{"number": number} for number in range(10)])

    print_objects(rows)

    assert not unread.is_read
    assert next(rows) == {"number": 1}


def test_list_when_it_is_read_then_all_of_it_comes() -> None:
    assert list(while_read(range(3))) == [0, 1, 2]


def test_stream_when_its_reader_has_ended_then_more_may_be_written_to_it(unread: GuardedStream) -> None:
    for _ in range(3):
        unread.write("line\n")
        unread.flush()

    assert not unread.is_read
