"""A project whose files a test writes as text: what is loaded of them, and what is said of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from searchcrawl.exceptions import ConfigurationError
from searchcrawl.sources.config import Source
from searchcrawl.sources.loading import load_project, load_source

#: A source file without errors, and a project file.
GOOD: Final = '[start]\nurls = ["https://example.org/"]\n[scope]\ninclude_hosts = ["example.org"]\n'
CONTACT: Final = 'contact = "crawler@example.org"\n'


def write_project(root: Path, text: str = CONTACT) -> None:
    """Writes searchcrawl.toml."""
    (root / "searchcrawl.toml").write_text(text, "utf-8")


def write_source(root: Path, text: str = GOOD, name: str = "demo") -> None:
    """Writes a source file."""
    (root / "sources").mkdir(exist_ok=True)
    (root / "sources" / f"{name}.toml").write_text(text, "utf-8")


def loaded(root: Path, name: str = "demo", **overrides: Any) -> Source:
    """The source as a crawl has it."""
    return load_source(load_project(root), name, overrides=overrides)


def find_error(root: Path, name: str = "demo", **overrides: Any) -> ConfigurationError:
    """The error with which a source is refused, or its project."""
    with pytest.raises(ConfigurationError) as caught:
        loaded(root, name, **overrides)
    return caught.value


def find_error_of_project(root: Path) -> ConfigurationError:
    """The error with which a project is refused."""
    with pytest.raises(ConfigurationError) as caught:
        load_project(root)
    return caught.value
