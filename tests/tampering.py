"""Changes an index behind the crawler's back: past all versions, and without tombstones."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from searchcrawl.index.local import schema
from searchcrawl.sources.project import Project


def tamper(
    project: Project,
    *,
    removed: Iterable[str] = (),
    put: Mapping[str, Mapping[str, Any]] | None = None,
    is_new: bool = False,
) -> None:
    """Removes ids from the index of a project, and puts documents into it (fields by id, with source and version).

    ``is_new``: the index has none of those ids yet.
    """
    put = put or {}
    gone = [*removed, *(() if is_new else put)]
    if project.index.type == "solr":
        _tamper_solr(str(project.index.url), gone, put)
    else:
        _tamper_local(project.index_dir, gone, put)


def _tamper_local(folder: Path, gone: list[str], put: Mapping[str, Mapping[str, Any]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    writer = schema.open_index(folder).writer(100_000_000, num_threads=1)
    for document_id in gone:
        writer.delete_documents_by_term("id", document_id)
    for document_id, fields in put.items():
        made = schema.build_document(
            document_id, fields, source=fields["source"], crawl_version=fields["crawl_version"]
        )
        writer.add_document(made)
    writer.commit()
    writer.wait_merging_threads()


def _tamper_solr(url: str, gone: list[str], put: Mapping[str, Mapping[str, Any]]) -> None:
    for start in range(0, len(gone), 500):
        # By query: it asks for no version, and leaves no tombstone.
        _update(url, {"delete": {"query": "{!terms f=id}" + ",".join(gone[start : start + 500])}})
    _update(url, {"commit": {}})
    documents = [{"id": document_id, **fields} for document_id, fields in put.items()]
    for start in range(0, len(documents), 500):
        _update(url, documents[start : start + 500])
    _update(url, {"commit": {"expungeDeletes": False}})


def _update(url: str, body: object) -> None:
    request = urllib.request.Request(
        f"{url}/update", json.dumps(body).encode(), headers={"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert not json.load(answer)["responseHeader"].get("errors")
