"""Sources whose file is gone: their documents are found until the file is back, or somebody deletes the source."""

from __future__ import annotations

from typing import Any, NamedTuple

from searchcrawl.queries.status import describe_status
from searchcrawl.sources.fingerprint import VERSIONS
from searchcrawl.sources.loading import list_source_names, stand_in_for
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
    status = describe_status(stand_in_for(project, gone.name), database, VERSIONS, project=project)
    # Nothing that its file would decide is known.
    return status | {
        "state": "disabled",
        "force_recrawl": None,
        "warnings": [{"code": "no_file", "message": gone.text}],
    }
