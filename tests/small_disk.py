"""A file system of a few hundred kilobytes, in a mount namespace of its own; it ends with the test."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.crawl_forks import COMMANDS

_HOLD: Final = 'mkdir -p "$0" && mount -t tmpfs -o "size=$1k,nr_inodes=$2" tmpfs "$0" && echo ready && exec cat'
_MANY: Final = 10_000
LIMIT_SECONDS: Final = 120.0


class SmallDisk:
    """A full disk that can be given room; commands run where it is mounted, others do not see it."""

    def __init__(self, holder: subprocess.Popen[str], mounted_at: Path) -> None:
        self._holder = holder
        self._mounted_at = mounted_at

    def copy(self, folder: Path, target: Path) -> Path:
        """Copies a folder with this disk in it to where it can be read; ``target``."""
        return shutil.copytree(f"/proc/{self._holder.pid}/root{folder}", target)

    def fill(self) -> None:
        """Copies what is behind the disk to it: what others see at its place."""
        shutil.copytree(self._mounted_at, f"/proc/{self._holder.pid}/root{self._mounted_at}", dirs_exist_ok=True)

    def grow(self, kilobytes: int) -> None:
        """Makes the disk so large."""
        self._inside("mount", "-o", f"remount,size={kilobytes}k", str(self._mounted_at)).check_returncode()

    def allow_files(self) -> None:
        """There may be as many files as anybody wants."""
        self._inside("mount", "-o", f"remount,nr_inodes={_MANY}", str(self._mounted_at)).check_returncode()

    def leave(self, kilobytes: int) -> None:
        """Makes the disk so large that this much is free."""
        text = self._inside("df", "-k", "--output=used", str(self._mounted_at)).stdout
        self.grow(int(text.split()[-1]) + kilobytes)

    def make_read_only(self) -> None:
        """Nothing can be written from now on."""
        self._inside("mount", "-o", "remount,ro", str(self._mounted_at)).check_returncode()

    def searchcrawl(self, folder: Path, *args: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """A command of ours in a project."""
        return COMMANDS.run_beside(self._holder.pid, folder, *args, **variables)

    def _inside(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["nsenter", "-t", str(self._holder.pid), "-m", "--", *command],
            capture_output=True,
            text=True,
            timeout=LIMIT_SECONDS,
            check=False,
        )


@contextmanager
def small_disk(mounted_at: Path, kilobytes: int, *, files: int = _MANY) -> Iterator[SmallDisk]:
    """Mounts an empty disk of that size, for so many files and folders, itself among them; see ``may_mount``."""
    arguments = [str(mounted_at), str(kilobytes), str(files)]
    command = ["unshare", "-m", "--propagation", "private", "sh", "-c", _HOLD, *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        if holder.stdout.readline() != "ready\n":
            raise RuntimeError(f"{mounted_at} could not be mounted")
        yield SmallDisk(holder, mounted_at)


def may_mount() -> bool:
    """Whether this user of this machine may mount file systems."""
    if os.geteuid() != 0 or shutil.which("unshare") is None or shutil.which("nsenter") is None:
        return False
    tried = ["unshare", "-m", "sh", "-c", "mount -t tmpfs tmpfs /mnt"]
    return subprocess.run(tried, capture_output=True, check=False).returncode == 0
