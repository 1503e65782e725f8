"""Which files of a project are those of sources."""

from __future__ import annotations

from pathlib import Path

from searchcrawl.exceptions import ConfigurationError
from searchcrawl.sources.project import SOURCES_DIR


def list_source_files(root: Path) -> list[Path]:
    """All source files of a project, sorted; also broken ones, and links that lead nowhere. None without the folder.

    Raises ConfigurationError where the folder cannot be read: its sources are not gone.
    """
    try:
        return [path for path in sorted((root / SOURCES_DIR).iterdir()) if _may_be_source(path) and not path.is_dir()]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise _refuse_folder(error) from error


def has_source_file(root: Path, name: str) -> bool:
    """Whether a source has a file, broken or not; raises ConfigurationError as ``list_source_files`` does."""
    path = root / SOURCES_DIR / f"{name}.toml"
    try:
        # A link that leads nowhere is a file that cannot be read.
        path.lstat()
        return not path.is_dir()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise _refuse_folder(error) from error


def _may_be_source(path: Path) -> bool:
    # Editors keep copies and locks in hidden files.
    return path.name.endswith(".toml") and not path.name.startswith(".")


def _refuse_folder(error: OSError) -> ConfigurationError:
    return ConfigurationError(SOURCES_DIR, "", f"cannot be read ({error.strerror})")
