"""What real shells complete: bash, zsh and fish, each with the script that ``completion`` prints for it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from searchcrawl.cli.commands.completion import list_words
from tests.on_terminal import Terminal

#: Calls what the script has bash call for a line, and shows what it found.
_BASH = """
source <("$PROGRAM" completion bash)
for line in "$@"; do
    COMP_LINE=$line COMP_POINT=${#line} COMP_TYPE=9 COMPREPLY=()
    _python_argcomplete searchcrawl
    echo "${COMPREPLY[*]}"
done
"""
_FISH = (
    'searchcrawl completion fish | source; for line in $argv; complete -C $line | cut -f 1 | tr "\\n" " "; echo; end'
)
_LINES = (
    "searchcrawl sour", "searchcrawl crawl ", "searchcrawl sources ", "searchcrawl status --js",
    "searchcrawl explain http://a.test/ --source ", "searchcrawl apply ",
)  # fmt: skip
_FOUND = [["sources"], ["one", "two"], ["check", "show"], ["--json"], ["one", "two"], ["one-3"]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project with two sources, and a plan of one."""
    (tmp_path / "sources").mkdir()
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = searchcrawl.settings\n")
    for name in ("one", "two"):
        (tmp_path / "sources" / f"{name}.toml").write_text("")
    (tmp_path / "searchcrawl.toml").write_text('contact = "crawl@example.test"')
    (tmp_path / "var" / "plans").mkdir(parents=True)
    (tmp_path / "var" / "plans" / "one-3.json").write_text("{}")
    return tmp_path


def programs(folder: Path) -> dict[str, str]:
    """The environment with a program ``searchcrawl`` of this checkout."""
    program = folder / "bin" / "searchcrawl"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m searchcrawl "$@"\n')
    program.chmod(0o755)
    root = str(Path(__file__).resolve().parents[3])
    return {"PATH": f"{program.parent}:{os.environ['PATH']}", "PYTHONPATH": root, "PROGRAM": str(program)}


def need(shell: str) -> str:
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"{shell} is not installed (scripts/bootstrap shells)")
    return found


@pytest.mark.parametrize("shell", ["bash", "fish"])
def test_shell_when_a_line_is_completed_then_commands_options_and_sources_are_found(shell: str, folder: Path) -> None:
    arguments = ["-c", _BASH, shell, *_LINES] if shell == "bash" else ["-c", _FISH, *_LINES]

    ended = subprocess.run(
        [need(shell), *arguments],
        cwd=folder,
        env={**os.environ, **programs(folder), "HOME": str(folder)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert [sorted(line.split()) for line in ended.stdout.splitlines()] == _FOUND, ended.stderr


def test_zsh_when_tab_is_typed_then_the_line_is_completed(folder: Path) -> None:
    zsh = need("zsh")
    variables = programs(folder)
    (folder / "functions").mkdir()
    script = subprocess.run(
        [variables["PROGRAM"], "completion", "zsh"], env={**os.environ, **variables}, capture_output=True, check=True
    ).stdout
    (folder / "functions" / "_searchcrawl").write_bytes(script)
    (folder / ".zshrc").write_text("fpath=($PWD/functions $fpath)\nautoload -Uz compinit\ncompinit -u\nPS1='ready> '\n")

    with Terminal([zsh, "-i"], folder, **variables, ZDOTDIR=str(folder), HOME=str(folder)) as terminal:
        terminal.wait_for(lambda shown: "ready>" in shown)
        terminal.type("searchcrawl sources sh\t")
        terminal.wait_for(lambda shown: "searchcrawl sources show" in shown)
        terminal.type("tw\t")
        terminal.wait_for(lambda shown: " two" in shown)
        # The line is dropped.
        terminal.type("\x15exit\r")
        ended = terminal.end()

    assert ended.exit_code == 0


@pytest.mark.parametrize(
    ("syntax", "words"),
    [
        ("", []),
        ("[NAME | --all-sources]", [["NAME"]]),
        ("check | show NAME", [["check", "show"], ["NAME"]]),
        ("list|approve|reject|restore NAME", [["list", "approve", "reject", "restore"], ["NAME"]]),
        ("URL --source NAME", [["URL"]]),
        ("[URL…]", [["URL"]]),
    ],
)
def test_words_when_a_usage_is_read_then_those_of_each_argument(syntax: str, words: list[list[str]]) -> None:
    assert list_words(syntax) == words
