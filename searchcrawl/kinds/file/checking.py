"""What ``sources check`` looks at: whether the roots of a source are there, and can be read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from errno import ENOENT
from typing import Final

from searchcrawl.kinds.file.local.jail import Barred, Node, RootLost
from searchcrawl.kinds.file.remote import connecting
from searchcrawl.kinds.file.remote.model import RemoteFailure
from searchcrawl.kinds.file.roots import Root, find_barred, has_something, list_roots, open_root
from searchcrawl.listing.model import Finding
from searchcrawl.sources.config import Source
from searchcrawl.sources.project import Project

_NO_CREDENTIALS: Final = 401


def find_wrong(source: Source, project: Project) -> Iterator[Finding]:
    """What is wrong with each root; one that is not there, or is empty, may be there when it is crawled."""
    barred = find_barred(project)
    for number, root in enumerate(list_roots(source)):
        key = f"file.roots[{number}]"
        if root.is_remote:
            yield from _ask_server(source, root, key, project.user_agent_header)
        else:
            yield from _look_at(source, root, barred, key)


def _look_at(source: Source, root: Root, barred: frozenset[Node], key: str) -> Iterator[Finding]:
    try:
        with closing(open_root(source, root.path, barred)) as jail:
            if not has_something(jail):
                yield _find_empty(root, key)
    except Barred as error:
        yield Finding(key, error.reason)
    except RootLost as error:
        yield Finding("file.marker", str(error), is_error=False)
    except OSError as error:
        yield Finding(key, f"{root.written} cannot be read ({error.strerror})", is_error=error.errno != ENOENT)


def _find_empty(root: Root, key: str) -> Finding:
    return Finding(key, f"{root.written} is empty: is it mounted?", is_error=False)


def _ask_server(source: Source, root: Root, key: str, user_agent: str) -> Iterator[Finding]:
    missing = dict(connecting.find_missing([root]))
    if missing:
        yield from (Finding(key, message) for message in missing.values())
        return
    try:
        with closing(connecting.connect(source, root, user_agent)) as connection:
            if not connecting.has_something(connection):
                yield _find_empty(root, key)
    except RemoteFailure as failure:
        if failure.code == _NO_CREDENTIALS:
            yield Finding(key, f"{root.written}: the server lets nobody in with these credentials ({failure})")
        else:
            yield Finding(
                key,
                f"{root.written} cannot be read ({failure})",
                is_error=not failure.transient and not failure.is_absent,
            )
