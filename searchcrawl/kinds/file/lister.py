"""Lists the trees of files of a source: folder by folder, with nothing in memory but names of folders.

Those of this machine are read here, each folder by its descriptor; those of servers in ``remote.walking``.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from errno import EACCES, ENOENT, EPERM
from operator import attrgetter
from typing import Final, NamedTuple

from searchcrawl.codes import Code
from searchcrawl.kinds.file import names
from searchcrawl.kinds.file.config import FileTable
from searchcrawl.kinds.file.local.folders import read_ignored
from searchcrawl.kinds.file.local.jail import Barred, Jail, Node, RootLost, is_absent, node_of
from searchcrawl.kinds.file.local.permissions import Levels, list_levels_above
from searchcrawl.kinds.file.local.scanning import Child, Folder, Scanner, describe_barred
from searchcrawl.kinds.file.local.versions import Tokens
from searchcrawl.kinds.file.remote.connecting import require_protocols
from searchcrawl.kinds.file.remote.walking import RemoteWalk
from searchcrawl.kinds.file.roots import (
    UNMOUNTED,
    Root,
    describe_empty,
    find_barred,
    has_something,
    list_roots,
    note_mark,
    open_root,
)
from searchcrawl.kinds.file.scope import FolderScope, Limits
from searchcrawl.kinds.file.selection import Ignoring, Selection
from searchcrawl.listing.model import Entry, ListedPart, ListingEnd, Marks
from searchcrawl.sources.config import Source
from searchcrawl.sources.project import Project

logger = logging.getLogger(__name__)

_READ: Final = 200
_DENIED: Final = 403
_NOT_FOUND: Final = 404
#: Through links no folder is deeper than this.
_DEEPEST_LINKED: Final = 64


class _Branch(NamedTuple):
    """A folder that was read, with those of its folders that are still to be read."""

    way: tuple[bytes, ...]
    url: str
    ignoring: Ignoring
    #: itself and those above it
    nodes: tuple[Node, ...]
    is_linked: bool
    children: list[Child]


class FileLister:
    """Lists what is below the roots of a source (``listing.model.Lister``)."""

    def __init__(self, source: Source, project: Project, marks: Marks, is_stopping: Callable[[], bool]) -> None:
        self._source = source
        self._user_agent = project.user_agent_header
        self._table: FileTable = source.own
        self._roots = list_roots(source)
        self._barred = find_barred(project)
        self._marks = marks
        self._is_stopping = is_stopping
        require_protocols(source, self._roots)

    def list_roots(self) -> Sequence[str]:
        """The identities of the roots."""
        return [root.url for root in self._roots]

    def walk(self) -> Iterator[ListedPart]:
        """All folders of all roots; a root that cannot be opened, or is not what it was, is a failure."""
        for root in self._roots:
            if self._is_stopping():
                return
            if root.is_remote:
                yield from RemoteWalk(self._source, root, self._marks, self._is_stopping, self._user_agent).list_parts()
                continue
            try:
                jail = self._open_root(root)
            except (OSError, Barred, RootLost) as error:
                yield ListedPart(url=root.url, end=describe_failure(error))
                continue
            with closing(jail):
                yield from _Walk(self._source, jail, self._marks, self._is_stopping).list_parts(root.url)

    def _open_root(self, root: Root) -> Jail:
        jail = open_root(self._source, root.path, self._barred, self._marks.find_mark(root.url))
        try:
            if self._table.marker is None and not has_something(jail) and self._marks.has_entries(root.url):
                raise RootLost(describe_empty(names.show(root.path)))
        except BaseException:
            jail.close()
            raise
        return jail


class _Walk:
    """Reads the folders of one root, a folder before those in it."""

    def __init__(self, source: Source, jail: Jail, marks: Marks, is_stopping: Callable[[], bool]) -> None:
        table: FileTable = source.own
        self._jail = jail
        self._marks = marks
        self._is_stopping = is_stopping
        self._crosses = table.cross_devices
        self._scope = FolderScope(source)
        self._above = tuple(list_levels_above(jail.path)) if table.find_permissions("file") == "posix" else None
        self._scanner = Scanner(
            jail,
            selection=Selection.of(table),
            limits=Limits(source),
            follow_links=table.follow_links,
            above=self._above,
        )
        #: folders that were read by a way with a link in it
        self._linked = set[Node]()

    def list_parts(self, root_url: str) -> Iterator[ListedPart]:
        branches = list[_Branch]()
        yield from self._read((), root_url, None, Child(b"", None), branches)
        while branches:
            branch = branches[-1]
            if not branch.children:
                branches.pop()
                continue
            child = branch.children.pop()
            if self._is_stopping():
                return
            url = f"{branch.url}{names.escape(child.name)}/"
            refusal = child.refusal or self._scope.find_refusal(url, len(branch.way) + 1)
            if refusal is not None:
                yield _leave_out(url, refusal)
            else:
                yield from self._read((*branch.way, child.name), url, branch, child, branches)

    def _read(
        self, way: tuple[bytes, ...], url: str, above: _Branch | None, child: Child, branches: list[_Branch]
    ) -> Iterator[ListedPart]:
        """The parts of a folder; what is in it is added to ``branches``."""
        depth, branch, mark = len(way) + 1, None, None
        failure: OSError | RootLost | None = None
        levels = None if self._above is None else Levels(self._above)
        try:
            with self._jail.open_folder(way, levels) as (descriptor, facts):
                branch = self._enter(way, url, above, child, descriptor, facts)
                tokens = Tokens(self._jail.file_system, None if levels is None else levels.found)
                folder = Folder(way, url, branch.ignoring, tokens)
                for entries, children, first in self._scanner.scan(folder, descriptor):
                    failure = first
                    branch.children.extend(children)
                    yield _build_part(branch, depth, entries, children)
                    if self._is_stopping():
                        return
                mark = self._note(facts, above)
        except Barred as barred:
            if not self._is_hidden(url, barred):
                yield _leave_out(url, describe_barred(barred))
                return
            failure = RootLost(
                f"{barred.reason}, and was not in the last run: is something mounted over it? "
                "If that is meant, name it in [scope] exclude_paths"
            )
        except (OSError, RootLost) as error:
            if above is not None and self._is_gone(error):
                return
            failure = error
        if branch is not None:
            branches.append(branch)
        end = ListingEnd(code=_READ, whole=True, mark=mark) if failure is None else describe_failure(failure)
        yield ListedPart(url=url, depth=depth, end=end)

    def _enter(
        self,
        way: tuple[bytes, ...],
        url: str,
        above: _Branch | None,
        child: Child,
        descriptor: int,
        facts: os.stat_result,
    ) -> _Branch:
        """The branch of an open folder; raises OSError, Barred and RootLost where it must not be read."""
        is_linked = child.is_linked or (above is not None and above.is_linked)
        nodes = () if above is None else above.nodes
        if is_linked:
            self._check_linked(node_of(facts), nodes, way)
        self._check_mount(url, facts, above)
        path = b"/".join([self._jail.path.rstrip(b"/"), *way])
        rules = Ignoring() if above is None else above.ignoring
        ignoring = rules.enter(read_ignored(descriptor), path, None if above is None else child.name)
        return _Branch(way, url, ignoring, (*nodes, node_of(facts)), is_linked, [])

    def _is_hidden(self, url: str, barred: Barred) -> bool:
        """Whether a folder was read in the last run as one of its parent's file system, and another one is over it now."""
        was_mount = self._marks.find_mark(url) == note_mark(is_mount=True)
        return barred.hides and not was_mount and self._marks.has_entries(url)

    def _is_gone(self, error: OSError | RootLost) -> bool:
        """Whether a folder is gone since its parent named it, with the root still there: the next run sees it."""
        if isinstance(error, RootLost) or not is_absent(error):
            return False
        try:
            self._jail.check()
        except RootLost:
            return False
        return True

    def _check_linked(self, node: Node, above: tuple[Node, ...], way: Sequence[bytes]) -> None:
        """Raises Barred where a way with links comes to a folder once more."""
        if node in above:
            raise Barred("leads to a folder that it is in", "follow_links")
        if node in self._linked:
            raise Barred("leads to what another link leads to", "follow_links")
        if len(way) > _DEEPEST_LINKED:
            raise Barred(f"is deeper than {_DEEPEST_LINKED} folders", "follow_links")
        self._linked.add(node)

    def _check_mount(self, url: str, facts: os.stat_result, above: _Branch | None) -> None:
        if above is None or not self._crosses or facts.st_dev != above.nodes[-1][0]:
            return
        if self._marks.find_mark(url) == note_mark(is_mount=True):
            raise RootLost(UNMOUNTED)

    def _note(self, facts: os.stat_result, above: _Branch | None) -> str | None:
        if above is None:
            return note_mark(is_mount=self._jail.is_mount)
        return note_mark(is_mount=facts.st_dev != above.nodes[-1][0]) if self._crosses else None


def _build_part(branch: _Branch, depth: int, entries: Sequence[Entry], children: Sequence[Child]) -> ListedPart:
    return ListedPart(
        url=branch.url,
        depth=depth,
        entries=tuple(sorted(entries, key=attrgetter("url"))),
        children=tuple(sorted(f"{branch.url}{names.escape(child.name)}/" for child in children)),
    )


def _leave_out(url: str, refusal: str) -> ListedPart:
    return ListedPart(url=url, end=ListingEnd(code=Code.OUTSIDE_BOUNDARY, refusal=refusal))


def describe_failure(error: OSError | Barred | RootLost) -> ListingEnd:
    """The end of a folder that cannot be read: nothing is known of what is in it."""
    if not isinstance(error, OSError):
        return ListingEnd(code=Code.IO_ERROR, error=str(error))
    codes = {EACCES: _DENIED, EPERM: _DENIED, ENOENT: _NOT_FOUND}
    return ListingEnd(code=codes.get(error.errno or 0, Code.IO_ERROR), error=error.strerror or str(error))
