"""Sources without a good file: its documents are found until the file is back or mended, or the source is deleted."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from searchcrawl.exceptions import ConfigurationError
from searchcrawl.queries.status import describe_status
from searchcrawl.sources.fingerprint import VERSIONS
from searchcrawl.sources.loading import is_source_name, list_source_names, stand_in_for
from searchcrawl.sources.project import Project
from searchcrawl.store.documents import document_table
from searchcrawl.store.engine.database import Database, Transaction
from searchcrawl.store.runs import run_table


class GoneSource(NamedTuple):
    """A source that the store knows and that has no file; ``documents`` are those that the index has, by the table."""

    name: str
    documents: int

    @property
    def file(self) -> str:
        """Where its file was."""
        return f"sources/{self.name}.toml"

    @property
    def text(self) -> str:
        """What is the matter, and what can be done."""
        return (
            f"the file of the source is gone, and {self.documents} of its documents can still be found: put {self.file} back,"
            f" or searchcrawl delete {self.name}"
        )


def list_gone_sources(project: Project, database: Database) -> list[GoneSource]:
    """The sources of the store that have no file, by name; raises StoreError."""
    names = set(list_source_names(project))

    def find(transaction: Transaction) -> list[GoneSource]:
        known = run_table.find_source_names(transaction)
        return sorted(
            GoneSource(name, document_table.count_totals(transaction, source_id)["documents"])
            for source_id, name in known.items()
            if name not in names
        )

    return database.read(find)


def describe_gone_source(project: Project, gone: GoneSource, database: Database) -> dict[str, Any]:
    """What ``status`` says of it, in the shape of all sources; raises StoreError."""
    return _describe_stand_in(project, gone.name, database, state="disabled", warnings={"no_file": [gone.text]})


def find_refused_sources(
    project: Project, good: Collection[str], errors: Iterable[ConfigurationError]
) -> dict[str, list[ConfigurationError]]:
    """The errors of each source that has a file and is not ``good``, by its name."""
    refused: dict[str, list[ConfigurationError]] = {
        name: [] for name in list_source_names(project) if name not in good and is_source_name(name)
    }
    files = {f"sources/{name}.toml": of_source for name, of_source in refused.items()}
    for error in errors:
        if error.file in files:
            files[error.file].append(error)
    return refused


def describe_refused_source(
    project: Project, name: str, errors: Iterable[ConfigurationError], database: Database
) -> dict[str, Any]:
    """What ``status`` says of a source that cannot run for the errors of its file; raises StoreError."""
    texts = [str(error) for error in errors]
    return _describe_stand_in(project, name, database, state="failed", warnings={"bad_file": texts})


def _describe_stand_in(
    project: Project, name: str, database: Database, *, state: str, warnings: Mapping[str, Iterable[str]]
) -> dict[str, Any]:
    status = describe_status(stand_in_for(project, name), database, VERSIONS, project=project)
    # Nothing that its file would decide is known.
    return status | {
        # A crawl that began before goes on with what it has read.
        "state": status["state"] if status["state"] == "executing" else state,
        "force_recrawl": None,
        "warnings": [{"code": code, "message": text} for code, texts in warnings.items() for text in texts],
    }
