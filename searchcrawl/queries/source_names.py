"""The names of a project's sources, also of those whose file is broken: index and store know names alone."""

from __future__ import annotations

from searchcrawl.exceptions import UnknownSource
from searchcrawl.sources.checking import to_one_line
from searchcrawl.sources.project import Project


def source_names(project: Project) -> list[str]:
    """The names of all source files, sorted."""
    files = project.sources_dir.glob("*.toml")
    return sorted(path.stem for path in files if not path.name.startswith(".") and path.is_file())


def existing(project: Project, name: str) -> str:
    """``name``, if there is a source file of this name; raises UnknownSource."""
    if name not in source_names(project):
        raise UnknownSource(f"unknown source: {to_one_line(name)}")
    return name
