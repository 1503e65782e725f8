"""The web roots of the sites: packages of the running Debian release, unpacked side by side, as an installation lays them out."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.decisions.sites import Manual
from benchmarks.material import unpacked


def prepare_root(work: Path, name: str, manual: Manual, ready: Sequence[Path] = ()) -> Path:
    """The web root of a site below ``work``; packages that a folder of ``ready`` holds unpacked are not downloaded."""
    root = work / "roots" / name
    if not root.is_dir():
        partial = root.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        for package in manual.packages:
            source = next((folder / package for folder in ready if (folder / package).is_dir()), None)
            _add(source or unpacked(work, package), partial)
        _keep_links_inside(partial)
        partial.rename(root)
    return root / manual.folder


def list_starts(folder: Path, manual: Manual) -> list[str]:
    """The paths of the pages at which a site is entered, relative to its web root."""
    found = [path.relative_to(folder).as_posix() for pattern in manual.starts for path in sorted(folder.glob(pattern))]
    if not found:
        raise SystemExit(f"decisions: {folder} has none of {', '.join(manual.starts)}")
    return list(dict.fromkeys(found))


def list_pages(folder: Path, manual: Manual) -> list[Path]:
    """All HTML files of a site, whether linked or not; a file that is there twice by a link comes once."""
    found = (path for pattern in manual.pages for path in folder.rglob(pattern))
    return sorted(path for path in found if path.is_file() and not path.is_symlink())


def _add(source: Path, target: Path) -> None:
    for folder, _, names in os.walk(source):
        here = target / os.path.relpath(folder, source)
        here.mkdir(parents=True, exist_ok=True)
        for path in _list_entries(Path(folder), names):
            if not os.path.lexists(here / path.name):
                _copy(path, here / path.name)


def _list_entries(folder: Path, names: Sequence[str]) -> Iterator[Path]:
    """The files, and the links to folders, which ``os.walk`` tells among folders."""
    yield from (folder / name for name in names)
    yield from (path for path in folder.iterdir() if path.is_symlink() and path.name not in names)


def _copy(path: Path, target: Path) -> None:
    if path.is_symlink():
        target.symlink_to(path.readlink())
        return
    try:
        os.link(path, target)
    except OSError:  # another file system
        shutil.copy2(path, target)


def _keep_links_inside(root: Path) -> None:
    """Lets absolute links lead to what the packages hold, never into the system that this runs on."""
    for folder, folders, names in os.walk(root):
        for path in (Path(folder, name) for name in (*folders, *names)):
            if path.is_symlink() and path.readlink().is_absolute():
                inside = root / path.readlink().relative_to("/")
                path.unlink()
                path.symlink_to(os.path.relpath(inside, path.parent))
