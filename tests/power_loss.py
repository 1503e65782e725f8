"""A loss of power, for tests: the folder of a project becomes what a disk has that got nothing but what was synced.

``power_recorder.c`` keeps each file and each folder as it was at its last sync. A kill is what ends the process; then
the tree is built anew from that. What a disk may have of the rest is between nothing and all, so there are three ways.
"""

from __future__ import annotations

import ctypes
import os
import random
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Final

_SOURCE: Final = Path(__file__).with_name("power_recorder.c")
_KEY_BYTES: Final = 80
#: What a tree has that is no part of the project: what commands have printed.
_KEPT: Final = "output.txt"
#: Files and folders as they were at their last sync.
SYNCED: Final = "synced"
#: Folders as they are, files as they were: a journal of names alone. What was never synced is empty.
NAMED: Final = "named"
#: Of each file and folder the one or the other, by chance.
MIXED: Final = "mixed"
WAYS: Final = (SYNCED, NAMED, MIXED)


def find_compiler() -> str | None:
    """The C compiler of this machine."""
    return shutil.which("cc") or shutil.which("gcc")


def build_recorder(folder: Path) -> Path:
    """Compiles the library that commands are to load first."""
    library = folder / "power_recorder.so"
    compiler = find_compiler()
    assert compiler is not None
    flags = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-pthread")
    subprocess.run([compiler, *flags, "-o", str(library), str(_SOURCE)], check=True)
    return library


class Disk:
    """The disk below the tree of one project; ``folder`` is made, and holds what the disk has."""

    def __init__(self, library: Path, tree: Path, folder: Path) -> None:
        self._tree = tree
        self._folder = folder
        self._synced = folder / "synced"
        self._now = folder / "now"
        self._keep = ctypes.CDLL(str(library)).power_keep

    @property
    def variables(self) -> dict[str, str]:
        """The environment of a command that loaded the library."""
        return {"POWER_TREE": str(self._tree), "POWER_DISK": str(self._synced)}

    @property
    def syncs(self) -> int:
        """How often something was synced since ``begin``."""
        return (self._synced / ".syncs").stat().st_size

    def begin(self) -> None:
        """The whole tree is on the disk now."""
        self._keep_tree(self._synced)

    def fail(self, way: str, seed: int = 0) -> None:
        """The power fails: no process is left, and the tree becomes what is on the disk."""
        root = self._keep_tree(self._now)
        chance = random.Random(seed)

        def is_current(kind: str) -> bool:
            return (way == NAMED and kind == "d") or (way == MIXED and chance.random() < 0.5)

        built = self._tree.with_name(self._tree.name + ".built")
        self._build("d", root, built, is_current)
        if (self._tree / _KEPT).exists():
            (self._tree / _KEPT).rename(built / _KEPT)
        shutil.rmtree(self._tree)
        built.rename(self._tree)
        shutil.rmtree(self._now)

    def remove(self) -> None:
        """Removes the disk; the tree stays."""
        shutil.rmtree(self._folder)

    def _keep_tree(self, disk: Path) -> str:
        """Keeps all files and folders of the tree; what the tree itself is called there."""
        if disk.exists():
            shutil.rmtree(disk)
        disk.mkdir(parents=True)
        for folder, _, files in os.walk(self._tree):
            for path in (Path(folder), *(Path(folder, name) for name in files)):
                self._call(path, disk)
        return self._call(self._tree, disk)

    def _call(self, path: Path, disk: Path) -> str:
        key = ctypes.create_string_buffer(_KEY_BYTES)
        failed = self._keep(os.fsencode(path), os.fsencode(disk), key, _KEY_BYTES)
        assert not failed, path
        return key.value.decode()

    def _build(self, kind: str, key: str, target: Path, is_current: Callable[[str], bool]) -> None:
        first, second = (self._now, self._synced) if is_current(kind) else (self._synced, self._now)
        # A folder that says what was removed since has files that only the disk knows.
        found = first / key
        if not found.exists() and first is self._now:
            found = second / key
        if kind == "f":
            if found.exists():
                shutil.copyfile(found, target)
            else:
                target.touch()
            return
        target.mkdir()
        names = found.read_bytes().split(b"\0")[:-1] if found.exists() else []
        for line in names:
            each, its_key, name = line.decode().split(" ", 2)
            self._build(each, its_key, target / name, is_current)
