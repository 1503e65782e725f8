"""Sources that are listed, killed at random moments while what they list changes: the index is as after an undisturbed crawl."""

from __future__ import annotations

import random
import shutil
import signal
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from tests.acceptance.support_files import FileProject
from tests.acceptance.support_tables import ShopProject
from tests.crawl_forks import Forks, started
from tests.final_state import read_state
from tests.sftp_server import RunningSftp

pytestmark = pytest.mark.soak

_CHANGES: Final = 3
_KILLS: Final = 3
#: About as long as the first crawl takes; the moments of later kills are those of a crawl of this machine.
_FIRST_SECONDS: Final = 1.5
#: Fewer than the limits on deleting hold back, all changes together.
_MOST_REMOVED: Final = 3


class Listed(ABC):
    """A source in a project in ``folder``, what it lists, and changes of that."""

    source: str
    folder: Path

    @abstractmethod
    def change(self, chance: random.Random) -> None:
        """Makes, changes and removes some things."""

    @abstractmethod
    def settle(self) -> None:
        """Waits until all changes can be told."""

    @abstractmethod
    def crawl(self) -> None:
        """One run to its end."""

    @abstractmethod
    def build_undisturbed(self, folder: Path) -> Listed:
        """The same source, as it is now, in a new project."""


class Tree(Listed):
    """Files of this machine, or of a server that shows them."""

    source = "files"

    def __init__(self, files: FileProject) -> None:
        self.files = files
        self.folder = files.folder
        self._made = 0

    def change(self, chance: random.Random) -> None:
        paths = sorted(path for path in self.files.root.rglob("*.txt") if path.is_file())
        for path in chance.sample(paths, min(_MOST_REMOVED, len(paths))):
            path.unlink()
        folder = self.files.root / chance.choice("abcd")
        for path in chance.sample(paths, min(5, len(paths))):
            # What is both changed and moved counts as removed.
            if path.exists() and folder not in path.parents:
                path.write_text(self._write(chance))
        if folder.exists():
            folder.rename(self.files.root / f"moved{self._made}")
        for _ in range(15):
            above = chance.choice("abcd") + chance.choice(["", "/x", "/x/y", "/z"])
            self.files.fill({f"{above}/{self._made}.txt": self._write(chance)})

    def _write(self, chance: random.Random) -> str:
        self._made += 1
        return f"this is text {self._made} of the tree, with the number {chance.random()}"

    def settle(self) -> None:
        self.files.settle()

    def crawl(self) -> None:
        self.files.crawl(settled=False)

    def build_undisturbed(self, folder: Path) -> Listed:
        other = FileProject(folder)
        other.edit(file=self.files.written)
        return Tree(other)


class Rows(Listed):
    """Rows of a table."""

    source = "shop"

    def __init__(self, shop: ShopProject) -> None:
        self.shop = shop
        self.folder = shop.folder

    def change(self, chance: random.Random) -> None:
        for number in chance.sample(range(1, 60), _MOST_REMOVED):
            self.shop.execute("DELETE FROM articles WHERE id = ?", number)
        for number in chance.sample(range(1, 60), 12):
            self.shop.put(number, text=f"a text with the number {chance.random()}")

    def settle(self) -> None:
        """Each run compares all rows by what is in them."""

    def crawl(self) -> None:
        self.shop.crawl()

    def build_undisturbed(self, folder: Path) -> Listed:
        folder.mkdir()
        other = ShopProject(folder)
        shutil.copy(self.folder / "shop.db", folder)
        return Rows(other)


def build_tree(folder: Path, sftp: RunningSftp) -> Listed:
    del sftp
    return Tree(FileProject(folder))


def build_tree_of_server(folder: Path, sftp: RunningSftp) -> Listed:
    access = {"key_file": str(sftp.key_file), "known_hosts": str(sftp.known_hosts), "username": sftp.user}
    return Tree(FileProject(folder, served=sftp.url(folder / "root"), access=access))


def build_rows(folder: Path, sftp: RunningSftp) -> Listed:
    del sftp
    return Rows(ShopProject(folder))


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("build", [build_tree, build_tree_of_server, build_rows])
def test_listed_when_crawls_are_killed_at_random_then_the_index_is_as_after_an_undisturbed_one(
    tmp_path: Path, forks: Forks, sftp: RunningSftp, build: Callable[[Path, RunningSftp], Listed], seed: int
) -> None:
    chance = random.Random(seed)
    struck = tmp_path / "struck"
    struck.mkdir()
    listed, longest = build(struck, sftp), _FIRST_SECONDS
    for _ in range(_CHANGES):
        listed.change(chance)
        for _ in range(_KILLS):
            with started(forks.start(listed.folder, "crawl", listed.source)) as running:
                time.sleep(chance.uniform(0.05, longest))
                running.signal(signal.SIGKILL)
                running.wait()
        listed.settle()
        began = time.monotonic()
        listed.crawl()
        longest = time.monotonic() - began
    found = read_state(listed.folder, listed.source)

    undisturbed = listed.build_undisturbed(tmp_path / "undisturbed")
    undisturbed.settle()
    undisturbed.crawl()
    expected = read_state(undisturbed.folder, undisturbed.source)
    assert found.broken == ()
    assert found.index == expected.index
    assert len(found.index) > 10
