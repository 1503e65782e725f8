"""Chooses the index of a project. A module of its own: receivers import ``receiver.py``, and this imports receivers."""

from __future__ import annotations

from searchcrawl.index.receiver import SearchIndex
from searchcrawl.sources.project import Project


def open_index(project: Project) -> SearchIndex:
    """The index that ``index.type`` names; nothing is requested yet. Its library is loaded only here."""
    if project.index.type == "solr":
        from searchcrawl.index.solr.receiver import SolrReceiver  # noqa: PLC0415  # heavy

        return SolrReceiver(str(project.index.url))
    from searchcrawl.index.local.receiver import LocalReceiver  # noqa: PLC0415  # heavy

    return LocalReceiver(project.index_dir)
