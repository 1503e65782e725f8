"""The rules of ``[scope]`` of a source of files, and what they say of whole folders."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from searchcrawl import clock
from searchcrawl.kinds.file.roots import Root, find_overlap, list_roots
from searchcrawl.rules.listed import ListedRules, PathRule
from searchcrawl.sources.config import Source
from searchcrawl.urls import unescape_unreserved

#: An identity of more characters cannot be kept.
MOST_CHARACTERS: Final = 32_768
TOO_LONG: Final = f"file.roots: its path has more than {MOST_CHARACTERS} characters"
#: The token of what is left out by its name.
LEFT_OUT: Final = b"left out"


def build_rules(source: Source) -> ListedRules:
    """The rules about paths and names; raises ConfigurationError for a name that is no rule, and for roots that cannot be."""
    scope, roots = source.scope, list_roots(source)
    _check_roots(source, roots)
    return ListedRules(
        [(root.url, root.written) for root in roots],
        roots_key="file.roots",
        include_paths=[*_list_rules(scope.include_paths, roots)],
        exclude_paths=[*_list_rules(scope.exclude_paths, roots)],
        include_names=scope.include_names,
        exclude_names=scope.exclude_names,
        file=source.path,
    )


def _check_roots(source: Source, roots: Sequence[Root]) -> None:
    if not roots:
        raise source.build_error("file.roots", "is required")
    overlap = find_overlap(roots)
    if overlap is not None:
        one, other = (roots[number].written for number in overlap)
        raise source.build_error(f"file.roots[{overlap[0]}]", f"is in {other}, which is a root as well (got {one!r})")


def _list_rules(written: Sequence[str], roots: Sequence[Root]) -> Iterator[PathRule]:
    """Paths as identities have them; a relative one is one in each root, an absolute one is one of each server."""
    for text in written:
        for url in dict.fromkeys(root.identify(text) for root in roots):
            yield url, text


#: Each folder is opened, or named, by all those above it, so that a deeper one would cost more than its path is long.
_DEEPEST: Final = 1000


class FolderScope:
    """Which folders need not be read: those that no file in them can be inside, whatever its name."""

    def __init__(self, source: Source) -> None:
        self._depth = source.scope.depth
        self._rules = build_rules(source)
        includes = _list_rules(source.scope.include_paths, list_roots(source))
        self._includes = tuple(unescape_unreserved(url) for url, _ in includes)

    def find_refusal(self, url: str, depth: int) -> str | None:
        """The rule, as ``KEY: RULE``, that leaves out all of a folder, by its identity; None where files may be inside.

        It is so deep below its root: 1 for a folder in it.
        """
        if 0 < self._depth <= depth:
            return f"scope.depth: depth = {self._depth}"
        if depth > _DEEPEST:
            return f"file.roots: is deeper than {_DEEPEST} folders"
        if len(url) > MOST_CHARACTERS:
            return TOO_LONG
        seen = unescape_unreserved(url)
        for decision in self._rules.find(seen):
            is_above = any(include.startswith(seen) for include in self._includes)
            if not decision.allowed and (decision.is_exclusion or not is_above):
                return decision.text
        return None


class Limits:
    """The rules of ``[scope]`` about sizes and ages: refusals as ``KEY: RULE``."""

    def __init__(self, source: Source) -> None:
        scope = source.scope
        self._least, self._most = scope.min_bytes, scope.max_bytes
        self._oldest_ns = round(scope.max_age_days * clock.DAY_MS) * 1_000_000
        self._too_small = f"scope.min_bytes: min_bytes = {scope.min_bytes}"
        self._too_large = f"scope.max_bytes: max_bytes = {scope.max_bytes}"
        self._too_old = f"scope.max_age_days: max_age_days = {scope.max_age_days:g}"

    def find_refusal(self, size: int, modified_ns: int | None, now_ns: int) -> str | None:
        """The rule that leaves out a file of a size in bytes; the times are nanoseconds since 1970."""
        if size < self._least:
            return self._too_small
        if 0 < self._most < size:
            return self._too_large
        if self._oldest_ns and modified_ns is not None and now_ns - modified_ns > self._oldest_ns:
            return self._too_old
        return None
