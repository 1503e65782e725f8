"""Who may see files: searches as users find what the kernel lets these users read."""

from __future__ import annotations

import ctypes
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import pytest

import searchcrawl
from tests.crawl_forks import COMMANDS
from tests.site.client import SCRAPY_CFG, configure

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away, and be another user")

FILES: Final = 200
#: Whoever may read a file by one class, may by all that come after it and have more: then POSIX and the index agree.
FALLING: Final = (0o400, 0o440, 0o444, 0o600, 0o640, 0o644, 0o660, 0o000)
#: With these the index hides some files from users whom a class before lets read.
ANY: Final = (*FALLING, 0o004, 0o040, 0o044, 0o204, 0o404, 0o222)


class User(NamedTuple):
    """A user: his number, and his groups."""

    number: int
    groups: tuple[int, ...]

    def reads(self, paths: Sequence[Path]) -> set[str]:
        """The names of the files that the kernel lets him read."""
        reader, writer = os.pipe()
        if os.fork() == 0:
            try:
                os.setgroups(self.groups)
                os.setgid(self.groups[0])
                os.setuid(self.number)
                os.write(writer, " ".join(path.name for path in paths if os.access(path, os.R_OK)).encode())
            finally:
                os._exit(0)
        os.close(writer)
        with os.fdopen(reader, "rb") as pipe:
            found = pipe.read().decode().split()
        os.wait()
        return set(found)


GROUPS: Final = tuple(range(70_001, 70_006))
#: Nobody knows them by name.
USERS: Final = tuple(
    User(60_001 + number, tuple(random.Random(number).sample(GROUPS, 1 + number % 4))) for number in range(12)
)


@pytest.fixture
def tree() -> Iterator[Path]:
    """A folder that everyone may pass."""
    with tempfile.TemporaryDirectory(prefix="readers-") as folder:
        path = Path(folder).resolve()
        path.chmod(0o755)
        yield path


def fill(tree: Path, modes: Sequence[int], chance: random.Random) -> list[Path]:
    """Folders in folders, and files in all of them, of any owners; the names of files say which they are."""

    def give(path: Path, mode: int) -> None:
        owner = chance.choice([0, *(user.number for user in USERS)])
        os.chown(path, owner, chance.choice(GROUPS))
        path.chmod(mode)

    folders = [tree]
    for number in range(12):
        folder = chance.choice(folders[:7]) / f"folder{number}"
        folder.mkdir()
        folders.append(folder)
    paths = [chance.choice(folders) / f"file{number}.txt" for number in range(FILES)]
    for path in paths:
        path.write_text(f"kettle of {path.stem}", "utf-8")
        give(path, chance.choice(modes))
    for folder in folders[1:]:
        # One that may be passed, and not listed, as well.
        give(folder, chance.choice([mode | mode >> 2 & 0o111 for mode in modes if mode & 0o444] + [0o711, 0o710]))
    return paths


@pytest.mark.matrix
@pytest.mark.parametrize(("modes", "is_exact"), [(FALLING, True), (ANY, False)])
def test_files_when_users_search_then_they_find_what_the_kernel_lets_them_read(
    tmp_path: Path, tree: Path, modes: Sequence[int], is_exact: bool
) -> None:
    paths = fill(tree, modes, random.Random(48))
    write_files(tmp_path, tree)
    members = "".join(f"{user.number},uid:{user.number}\n" for user in USERS)
    (tmp_path / "members.csv").write_text(members, "utf-8")
    configure(tmp_path, principals={"file": "members.csv"})
    ended = COMMANDS.run(tmp_path, "crawl", "files", "--json")
    assert ended.returncode == 0, ended.stderr

    project = searchcrawl.open_project(tmp_path)
    assert project.search("kettle").total == FILES
    readable = 0
    for user in USERS:
        groups = [f"gid:{number}" for number in user.groups]
        answer = project.search("kettle", rows=FILES, as_user=str(user.number), user_groups=groups, facets=["title"])
        found, allowed = {hit.title for hit in answer.hits}, user.reads(paths)
        assert found <= allowed
        assert found == allowed or not is_exact
        assert answer.total == len(found)
        assert answer.facets["title"].keys() <= found
        readable += len(allowed)
    # Most users may read some of them, and none all.
    assert len(USERS) < readable < FILES * len(USERS) / 2


NOBODY: Final = 65_534
#: linux/prctl.h, linux/capability.h: to read and pass whatever its mode is.
_DROP: Final = 24
_OVERRIDE, _READ_SEARCH = 1, 2
_LIBRARY: Final = ctypes.CDLL(None)


class Project(NamedTuple):
    """A project, and the tree that it reads."""

    folder: Path
    tree: Path

    def crawl(self) -> int:
        """The exit code of a run that has no more rights than the modes of files give it."""

        def drop_rights() -> None:
            _LIBRARY.prctl(_DROP, _OVERRIDE, 0, 0, 0)
            _LIBRARY.prctl(_DROP, _READ_SEARCH, 0, 0, 0)

        command = [sys.executable, "-m", "searchcrawl", "crawl", "files", "--json"]
        ended = subprocess.run(
            command, cwd=self.folder, preexec_fn=drop_rights, capture_output=True, text=True, timeout=120, check=False
        )
        assert ended.stdout, ended.stderr
        return ended.returncode

    def sees(self) -> list[str]:
        """What any user finds."""
        hits = searchcrawl.open_project(self.folder).search("kettle", as_user="mia").hits
        return sorted(hit.title for hit in hits)


def write_files(folder: Path, tree: Path) -> None:
    """Writes a project that reads a tree."""
    (folder / "sources").mkdir()
    (folder / "scrapy.cfg").write_text(SCRAPY_CFG, "utf-8")
    (folder / "sources" / "files.toml").write_text(
        f'type = "file"\n\n[file]\nroots = ["{tree}"]\npermissions = "posix"\n', "utf-8"
    )


# Not with a server of PostgreSQL: without these rights its socket cannot be reached.
def test_files_when_the_crawler_may_not_read_them_any_more_then_no_user_sees_them(tmp_path: Path, tree: Path) -> None:
    write_files(tmp_path, tree)
    configure(tmp_path)
    project = Project(tmp_path, tree)
    for name in ("free.txt", "closed.txt", "folder/in.txt", "folder/deep/in it.txt"):
        path = tree / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"kettle of {name}", "utf-8")
    for path in tree.rglob("*"):
        os.chown(path, NOBODY, NOBODY)
        # Whatever the umask of this process is.
        path.chmod(0o755 if path.is_dir() else 0o644)
    assert (project.crawl(), project.sees()) == (0, ["closed.txt", "free.txt", "in it.txt", "in.txt"])

    (tree / "closed.txt").chmod(0o600)
    (tree / "folder").chmod(0o700)
    assert (project.crawl(), project.sees()) == (3, ["free.txt"])
    # Nothing has left the index, and nothing changes.
    assert searchcrawl.open_project(tmp_path).search("kettle").total == 4
    assert (project.crawl(), project.sees()) == (3, ["free.txt"])

    (tree / "folder").chmod(0o755)
    assert project.crawl() in {0, 3}
    assert project.sees() == ["free.txt", "in it.txt", "in.txt"]
