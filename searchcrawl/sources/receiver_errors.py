"""The errors of ``[receivers.NAME]``, and of the sources that name them, that no single value shows."""

from __future__ import annotations

from collections.abc import Iterator

from searchcrawl.exceptions import ConfigurationError
from searchcrawl.sources.checking import guess, join_key, quote_value
from searchcrawl.sources.config import Source
from searchcrawl.sources.plugin_classes import import_class
from searchcrawl.sources.project import FILE, Project

#: What a class of a user's own must have (index.receiver.Receiver).
METHODS = ("begin", "deliver", "end")


def find_receiver_errors(project: Project) -> Iterator[ConfigurationError]:
    """The receivers whose class cannot be had, and those that would write where another one does."""
    places = {_find_place(project): "index"}
    for name, table in project.receivers.items():
        above = ("receivers", name)
        if table.class_ is not None:
            try:
                import_class(
                    table.class_,
                    METHODS,
                    file=FILE,
                    key=join_key((*above, "class")),
                    root=project.root,
                    arguments=table.arguments,
                )
            except ConfigurationError as error:
                yield error
            continue
        if table.type == "files":
            continue
        place = _find_place(project.of_receiver(name))
        if place in places:
            key = join_key((*above, "path" if table.type == "local" else "url"))
            yield ConfigurationError(FILE, key, f"{places[place]} has the same: each needs one of its own")
        places.setdefault(place, f"receivers.{name}")


def find_unknown_receivers(project: Project, source: Source) -> Iterator[ConfigurationError]:
    """The names in ``receivers`` of a source that searchcrawl.toml does not have."""
    for name in source.receivers or ():
        if name not in project.receivers:
            message = f"no such receiver in {FILE}{guess(name, project.receivers)} (got {quote_value(name)})"
            yield ConfigurationError(*source.locate("receivers"), message)


def list_receivers(project: Project, source: Source) -> tuple[str, ...]:
    """The receivers of a source besides the index that are called, in the order of searchcrawl.toml: all but those that are files."""
    return tuple(name for name in list_names(project, source) if project.receivers[name].type != "files")


def list_names(project: Project, source: Source) -> tuple[str, ...]:
    """All receivers of a source, in the order of searchcrawl.toml."""
    return tuple(name for name in project.receivers if source.receivers is None or name in source.receivers)


def _find_place(project: Project) -> str:
    return str(project.index.url) if project.index.type == "solr" else str(project.index_dir.resolve())
