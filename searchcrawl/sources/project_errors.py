"""The errors of a searchcrawl.toml that no single value shows."""

from __future__ import annotations

from searchcrawl.exceptions import ConfigurationError
from searchcrawl.sources.checking import guess, join_key, quote_value
from searchcrawl.sources.plugin_classes import import_converter
from searchcrawl.sources.project import FILE, Project
from searchcrawl.sources.receiver_errors import find_receiver_errors
from searchcrawl.sources.source_files import list_source_files


def find_project_errors(project: Project) -> list[ConfigurationError]:
    """The errors of a searchcrawl.toml whose single values are well-formed."""
    errors = _find_unknown_sources(project)
    for mimetype, plugin in project.converters.items():
        try:
            import_converter(plugin, file=FILE, key=join_key(("converters", mimetype)), root=project.root)
        except ConfigurationError as error:
            errors.append(error)
    return [*errors, *find_receiver_errors(project)]


def _find_unknown_sources(project: Project) -> list[ConfigurationError]:
    """The schedules of sources that have no file (H1)."""
    names = [path.stem for path in list_source_files(project.root)]
    return [
        ConfigurationError(
            FILE,
            join_key(("schedules", name, "sources")),
            f"no such source{guess(source, names)} (got {quote_value(source)})",
        )
        for name, schedule in project.schedules.items()
        for source in schedule.sources
        if source not in names
    ]
