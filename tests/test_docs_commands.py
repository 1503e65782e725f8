"""The shell commands of the tutorial and of the how-to guides run as they are written.

A page is worked through from its top, as by a reader: a block with a file's name as its caption is written to that file,
a ``shell`` block is run. The tutorial begins beside a checkout; each how-to, and the README, begins in the project of the tutorial. Only the
README, which has no captions, shows commands that are not run as ``console``.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.site.client import SiteProcess
from tests.test_layout import ROOT

#: `make check` runs them.
pytestmark = pytest.mark.docs

DOCS: Final = ROOT / "docs"
PAGES: Final = (
    "../README.md",
    *sorted(path.relative_to(DOCS).as_posix() for path in (DOCS / "how-to").glob("*.md")),
)
#: Why a block may be left out.
EXCUSES: Final = frozenset(
    {"a browser", "a package index", "a Solr server", "a PostgreSQL server", "scrapyd", "root", "many minutes"}
)
MOST_EXCUSED: Final = 12
SECONDS: Final = 100

_FENCE: Final = re.compile(
    r"^```(?:\{code-block\} )?([a-z]+)\n(?::caption: ([^\n]*)\n)?\n?(.*?)^```$", re.MULTILINE | re.DOTALL
)
_EXCUSE: Final = re.compile(r'"?Not run by the tests: needs ([^"]+)"?')
_EXIT: Final = re.compile(r"Ends with exit code (\d)")
_NOT_RUN: Final = frozenset({"console", "python", "text", "toml"})


class Block(NamedTuple):
    """A block of a page: its language, its caption and its text."""

    language: str
    caption: str
    text: str


def blocks_of(page: str) -> list[Block]:
    """The blocks of a page, in order."""
    text = (DOCS / page).read_text(encoding="utf-8")
    return [Block(*found.groups("")) for found in _FENCE.finditer(text)]


def work_through(page: str, folder: Path, site: SiteProcess, *, excuses: Collection[str] = EXCUSES) -> Path:
    """Does what a page says, but for what has one of these excuses, beginning in ``folder``; the folder in which it ends."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    for block in blocks_of(page):
        text = block.text.replace("8765", str(site.port)).replace("8766", str(site.admin_port))
        caption = block.caption.strip('"')
        excuse = _EXCUSE.fullmatch(caption)
        is_left_out = caption == "In another terminal" or (excuse is not None and excuse[1] in excuses)
        if block.language == "shell" and not is_left_out:
            folder = run_block(page, text, folder, environment, expected=_EXIT.fullmatch(caption))
        elif caption and block.language in {"toml", "python"}:
            name, _, added = caption.partition(", ")
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text((path.read_text() if added else "") + text, encoding="utf-8")
    return folder


def run_block(
    page: str, text: str, folder: Path, environment: dict[str, str], *, expected: re.Match[str] | None
) -> Path:
    """Runs a block of commands; the folder in which it ends."""
    script = f"set -eu\n{text}pwd > {folder.parent}/.where\nexport -p > {folder.parent}/.exports\n"
    exports = folder.parent / ".exports"
    script = (f". {exports}\n" if exports.exists() else "") + script
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    code = int(expected[1]) if expected else 0
    assert done.returncode == code, (
        f"{page}:\n{text}\nexit {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
    )
    return folder if code else Path((folder.parent / ".where").read_text().strip())


@pytest.fixture(scope="module")
def site() -> Iterator[SiteProcess]:
    with SiteProcess() as running:
        yield running


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, site: SiteProcess) -> Path:
    """The project in which the tutorial ends."""
    checkout = tmp_path_factory.mktemp("docs") / "searchcrawl"
    checkout.mkdir()
    (checkout / ".venv").symlink_to(sys.prefix)
    return work_through("tutorial.md", checkout, site)


def test_tutorial_when_worked_through_then_every_command_runs(finished: Path) -> None:
    assert [count_hits(finished, word) > 0 for word in ("evaporimeter", "anemometer")] == [True, False]


def count_hits(project: Path, words: str) -> int:
    command = [sys.executable, "-m", "searchcrawl", "search", words, "--json"]
    answer = subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=SECONDS, check=True)
    return int(json.loads(answer.stdout)["total"])


@pytest.mark.parametrize("page", PAGES)
def test_how_to_when_worked_through_then_every_command_runs(
    page: str, finished: Path, site: SiteProcess, tmp_path: Path
) -> None:
    project = tmp_path / "my-search"
    shutil.copytree(finished, project)

    assert work_through(page, project, site).is_dir()


def test_blocks_when_left_out_then_few_and_each_says_why() -> None:
    blocks = [block for page in ("tutorial.md", *PAGES) for block in blocks_of(page)]
    excuses = [found[1] for block in blocks if (found := _EXCUSE.fullmatch(block.caption.strip('"')))]

    assert set(excuses) <= EXCUSES
    assert len(excuses) <= MOST_EXCUSED
    assert {block.language for block in blocks} <= {"shell", *_NOT_RUN}
    assert [
        page for page in ("tutorial.md", *PAGES[1:]) for block in blocks_of(page) if block.language == "console"
    ] == []
