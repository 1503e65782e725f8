"""The version of this copy of searchcrawl. The build asks as well, and loads this file alone: it imports nothing of ours."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Final

_PACKAGE: Final = Path(__file__).resolve().parent
_BASE: Final = re.compile(r'^\s*__version__ = "([^"]+)"', re.MULTILINE)
_NOTED: Final = re.compile(r"^Version: (\S+)$", re.MULTILINE)
#: What ``git describe --long`` ends with: commits since the tag, and the revision.
_DESCRIBED: Final = re.compile(r"-(\d+)-(g[0-9a-f]+)$")
_SECONDS: Final = 10.0


def find_version() -> str:
    """``0.2.0.dev12+g1a2b3c4d5`` in a repository, by its commits; else as the archive notes it, or the plain version."""
    root = _PACKAGE.parent
    found = _BASE.search((_PACKAGE / "__init__.py").read_text("utf-8"))
    base = found[1] if found is not None else "0"
    # In a work tree it is a file. A repository further up is another one's.
    if (root / ".git").exists():
        return base + _find_suffix(root)
    try:
        noted = _NOTED.search((root / "PKG-INFO").read_text("utf-8"))
    except (OSError, UnicodeDecodeError):
        return base
    return noted[1] if noted is not None else base


def _find_suffix(root: Path) -> str:
    """What stands behind the plain version; empty at the commit of a release, and where git does not answer."""
    described = _DESCRIBED.search(_ask_git(root, "describe", "--tags", "--long", "--abbrev=9", "--match", "v[0-9]*"))
    if described is not None:
        commits, revision = described[1], described[2]
    else:
        commits, revision = _ask_git(root, "rev-list", "--count", "HEAD"), _ask_git(root, "rev-parse", "HEAD")
        revision = f"g{revision[:9]}" if revision else ""
    return f".dev{commits}+{revision}" if commits not in {"", "0"} and revision else ""


def _ask_git(root: Path, *words: str) -> str:
    # A checkout may belong to another user than the one who builds, as in a container.
    command = ["git", "-c", "safe.directory=*", "-C", str(root), *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_SECONDS)  # noqa: S603  # fixed words
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
