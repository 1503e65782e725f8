"""``.searchignore``: names and globs, as people know them from ``.gitignore``."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from searchcrawl.kinds.file.ignoring import IgnoreFile
from searchcrawl.kinds.file.local.folders import read_ignored


def decide(rules: str | bytes, way: str | bytes, *, is_folder: bool = False) -> bool | None:
    """True: left out; False: taken back; None: nothing is said."""
    content = rules if isinstance(rules, bytes) else rules.encode()
    names = (way if isinstance(way, bytes) else way.encode()).split(b"/")
    decision = IgnoreFile(content, b"/srv").decide(names, is_folder=is_folder)
    return None if decision is None else not decision.allowed


@pytest.mark.parametrize(
    ("rule", "matching", "others"),
    [
        ("draft.txt", ["draft.txt", "a/draft.txt", "a/b/draft.txt"], ["draft.txt.x", "xdraft.txt", "Draft.txt"]),
        ("*.bak", ["x.bak", "a/x.bak", ".bak"], ["x.bak.txt"]),
        ("/top.txt", ["top.txt"], ["a/top.txt"]),
        ("a/*.txt", ["a/x.txt"], ["x.txt", "b/a/x.txt", "a/b/x.txt"]),
        ("a/**/x", ["a/x", "a/b/x", "a/b/c/x"], ["x", "ax"]),
        ("**/x", ["x", "a/x"], ["ax"]),
        ("a/**", ["a/x", "a/b/x"], ["a", "b/a/x"]),
        ("year-20[0-9][0-9]", ["year-2024"], ["year-20xx", "year-1999"]),
        ("[!a]x", ["bx"], ["ax", "x", "/x"]),
        ("[a-]x", ["ax", "-x"], ["bx"]),
        ("[", ["["], ["x"]),
        ("[]x", ["[]x"], ["x"]),
        ("[z-a]", ["[z-a]"], ["z", "a", "b"]),
        ("file?.txt", ["file1.txt", "fileä.txt"], ["file.txt", "file12.txt"]),
        (r"\*", ["*"], ["x"]),
        ("a+b(c).txt", ["a+b(c).txt"], ["aab(c).txt"]),
        ("  spaced  ", ["spaced"], ["  spaced  "]),
    ],
)
def test_rule_when_names_match_then_leaves_them_out(rule: str, matching: list[str], others: list[str]) -> None:
    assert {way: decide(rule, way) for way in matching} == dict.fromkeys(matching, True)
    assert {way: decide(rule, way) for way in others} == dict.fromkeys(others)


def test_rule_when_it_ends_in_a_slash_then_names_folders_alone() -> None:
    assert decide("build/", "a/build", is_folder=True) is True
    assert decide("build/", "a/build") is None


def test_rules_when_several_match_then_the_last_one_decides() -> None:
    rules = "*.txt\n!keep.txt\n# comment\n\nkeep.txt.old\n"

    assert decide(rules, "a.txt") is True
    assert decide(rules, "keep.txt") is False
    assert decide("!keep.txt\n*.txt", "keep.txt") is True
    assert decide("#x", "#x") is None
    assert decide("!\n/\n", "x") is None


def test_rules_when_there_are_many_then_the_last_one_decides_and_folders_have_theirs() -> None:
    rules = "*.txt\n" + "".join(f"n{number}/\n/way/{number}\n" for number in range(200)) + "!n7\n"

    assert decide(rules, "a.txt") is True
    assert decide(rules, "n7", is_folder=True) is False
    assert decide(rules, "n199", is_folder=True) is True
    assert decide(rules, "n199") is None
    assert decide(rules, "way/3") is True
    assert decide(rules, "b") is None


def test_rules_when_names_are_no_text_then_match_bytes() -> None:
    assert decide(b"*.\xff", b"a.\xff") is True
    assert decide(b"a?c", b"a\xffc") is True
    assert decide(b"a*", b"a\n\xff") is True
    assert decide(b"\xef\xbb\xbfx\r\n", b"x") is True


def test_decision_when_a_rule_leaves_out_then_names_file_and_line() -> None:
    decision = IgnoreFile(b"\n# no\n*.bak\n", b"/srv/a").decide([b"x.bak"], is_folder=False)

    assert decision is not None
    assert (decision.file, decision.key, decision.rule) == ("/srv/a/.searchignore", "line 3", "*.bak")


@pytest.mark.parametrize("content", [b"*?" * 9000, b"[" * 16_385])
def test_file_when_it_is_too_large_then_refused(content: bytes) -> None:
    with pytest.raises(OSError, match="has more than 16384 bytes"):
        IgnoreFile(content, b"/srv")


def test_file_when_its_rules_have_many_stars_then_answers_at_once() -> None:
    with pytest.raises(OSError, match="line 2 has more than 32 wildcards"):
        decide("x\n" + "*a" * 40, "a")
    assert decide("*a" * 32 + "b", "a" * 250) is None
    assert decide("\n".join("*x*y*z*" for _ in range(2000)), "x" * 4000) is None


def test_file_when_it_is_no_file_that_can_be_read_then_says_so(tmp_path: Path) -> None:
    folder = os.open(tmp_path, os.O_RDONLY)
    try:
        assert read_ignored(folder) is None
        (tmp_path / "real").write_text("x")
        (tmp_path / ".searchignore").symlink_to("real")
        with pytest.raises(OSError, match=r"\.searchignore: Too many levels"):
            read_ignored(folder)
        (tmp_path / ".searchignore").unlink()
        os.mkfifo(tmp_path / ".searchignore")
        with pytest.raises(OSError, match=r"\.searchignore: is no regular file"):
            read_ignored(folder)
    finally:
        os.close(folder)
