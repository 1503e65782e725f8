"""The version of what is installed differs from commit to commit; without a repository it is the plain one."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Final

import pytest

from tests.test_layout import ROOT, tracked_files

PLAIN: Final = "0.2.0"
pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")

#: What a build needs.
_PARTS: Final = ("searchcrawl/", "solr/", "scripts/", "pyproject.toml", "README.md", "LICENSE")


def run(folder: Path, *command: str, **variables: str) -> str:
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **variables}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """The sources without their repository, inside that of somebody else."""
    outer = tmp_path / "outer"
    outer.mkdir()
    commit(outer, "somebody else's")
    folder = outer / "searchcrawl"
    for path in tracked_files():
        name = path.relative_to(ROOT).as_posix()
        if name.startswith(_PARTS):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, folder / name)
    return folder


def commit(folder: Path, text: str) -> None:
    run(folder, "git", "init", "--quiet")
    run(folder, "git", "add", "--all")
    author = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    run(folder, "git", *author, "commit", "--quiet", "--allow-empty", "-m", text)


def build(folder: Path, kind: str, name: str) -> Path:
    target = folder.parent / name
    run(folder, sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(target))
    (built,) = target.iterdir()
    return built


def show(folder: Path) -> str:
    """What ``--version`` says of the package in a folder."""
    return run(folder.parent, sys.executable, "-m", "searchcrawl", "--version", PYTHONPATH=str(folder)).split()[1]


def show_installed(wheel: Path, name: str) -> str:
    folder = wheel.parent.parent / name
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    (metadata,) = folder.glob("*.dist-info/METADATA")
    shown = show(folder)
    assert f"\nVersion: {shown}\n" in metadata.read_text("utf-8")
    return shown


def test_build_when_there_is_no_repository_then_the_plain_version(tree: Path) -> None:
    assert (show(tree), show_installed(build(tree, "wheel", "dist"), "made")) == (PLAIN, PLAIN)


def test_build_when_made_of_a_commit_then_its_number_and_revision_and_each_has_another(tree: Path) -> None:
    found = []
    for number in (1, 2):
        commit(tree, str(number))
        revision = run(tree, "git", "rev-parse", "HEAD")[:9]
        found.append((show(tree), show_installed(build(tree, "wheel", f"dist-{number}"), f"made-{number}")))
        assert found[-1] == (f"{PLAIN}.dev{number}+g{revision}",) * 2
    run(tree, "git", "tag", f"v{PLAIN}")
    assert show(tree) == PLAIN


def test_build_when_made_of_an_archive_then_the_version_that_the_archive_has(tree: Path) -> None:
    commit(tree, "one")
    version = show(tree)
    archive = build(tree, "sdist", "dist")
    with tarfile.open(archive) as packed:
        packed.extractall(tree.parent / "unpacked", filter="data")
    (unpacked,) = (tree.parent / "unpacked").iterdir()

    assert re.fullmatch(rf"{re.escape(PLAIN)}\.dev1\+g[0-9a-f]{{9}}", version)
    assert (show(unpacked), show_installed(build(unpacked, "wheel", "again"), "made")) == (version, version)
