"""The folder of a project with its spiders in Python, for a project whose settings name no other."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

#: It is a package of this name, beside scrapy.cfg; it needs no ``__init__.py``.
SPIDERS_DIR: Final = "spiders"
_MARK: Final = "__init__.py"


def has_spiders_folder(root: Path) -> bool:
    """Whether the project has such a package."""
    return bool(list_spider_files(root))


def list_spider_files(root: Path) -> list[Path]:
    """Its modules."""
    return sorted((root / SPIDERS_DIR).glob("*.py"))


def make_spiders_folder(root: Path) -> None:
    """Makes the package, if it is not there; raises OSError."""
    (root / SPIDERS_DIR).mkdir(exist_ok=True)
    (root / SPIDERS_DIR / _MARK).touch()


def make_importable(root: Path) -> None:
    """Has modules of the project's folder be found, after all others."""
    if str(root) not in sys.path:
        sys.path.append(str(root))
