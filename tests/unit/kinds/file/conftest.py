"""Folders that every user may pass, and a user who may do nothing."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

NOBODY = 65534


@pytest.fixture
def tree() -> Iterator[Path]:
    """An empty folder, which is a root of its own: nothing above it keeps anybody out."""
    with tempfile.TemporaryDirectory(prefix="tree-") as folder:
        path = Path(folder).resolve()
        path.chmod(0o755)
        yield path
        path.chmod(0o755)


@pytest.fixture
def as_nobody() -> Callable[[], AbstractContextManager[None]]:
    """Lets this process be a user without rights for a while; nothing changes for one that has none."""

    @contextmanager
    def become() -> Iterator[None]:
        own = os.geteuid()
        if own == 0:
            os.seteuid(NOBODY)
        try:
            yield
        finally:
            if own == 0:
                os.seteuid(own)

    return become


@pytest.fixture
def mount(tree: Path) -> Iterator[Callable[[Path], Callable[[], None]]]:
    """Mounts an empty file system at a folder, and returns what takes it away again."""
    if os.geteuid() != 0:
        pytest.skip("only root may mount")
    mounted = list[Path]()

    def unmount(place: Path) -> None:
        mounted.remove(place)
        subprocess.run(["umount", "--lazy", place], check=True)

    def mount_at(place: Path) -> Callable[[], None]:
        if subprocess.run(["mount", "-t", "tmpfs", "tmpfs", place], check=False, capture_output=True).returncode:
            pytest.skip("mounts are forbidden here")
        mounted.append(place)
        return lambda: unmount(place)

    yield mount_at
    for place in list(mounted):
        unmount(place)
