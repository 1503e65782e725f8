"""The rules of ``[scope]`` of a source of files, and what they say of whole folders."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from searchcrawl.kinds.file import names
from searchcrawl.kinds.file.roots import find_overlap, list_paths
from searchcrawl.rules.listed import ListedRules, PathRule
from searchcrawl.sources.config import Source
from searchcrawl.urls import unescape_unreserved


def build_rules(source: Source) -> ListedRules:
    """The rules about paths and names; raises ConfigurationError for a name that is no rule, and for roots that cannot be."""
    scope, roots = source.scope, list_paths(source)
    _check_roots(source, roots)
    return ListedRules(
        [(_to_rule(root), name) for root, name in zip(roots, source.own.roots, strict=True)],
        roots_key="file.roots",
        include_paths=[*_list_rules(scope.include_paths, roots)],
        exclude_paths=[*_list_rules(scope.exclude_paths, roots)],
        include_names=scope.include_names,
        exclude_names=scope.exclude_names,
        file=source.path,
    )


def _check_roots(source: Source, paths: list[bytes]) -> None:
    if not paths:
        raise source.build_error("file.roots", "is required")
    overlap = find_overlap(paths)
    if overlap is not None:
        one, other = (source.own.roots[number] for number in overlap)
        raise source.build_error(f"file.roots[{overlap[0]}]", f"is in {other}, which is a root as well (got {one!r})")


def _list_rules(written: Sequence[str], roots: Sequence[bytes]) -> Iterator[PathRule]:
    """Paths as identities have them; a relative one is one in each root."""
    for text in written:
        for root in roots[:1] if text.startswith("/") else roots:
            yield _to_rule(names.join(root, text)), text


def _to_rule(path: bytes) -> str:
    return names.to_identity(path, is_folder=True).removeprefix(names.BEGIN)


class FolderScope:
    """Which folders need not be read: those that no file in them can be inside, whatever its name."""

    def __init__(self, source: Source) -> None:
        self._rules = build_rules(source)
        includes = _list_rules(source.scope.include_paths, list_paths(source))
        self._includes = tuple(unescape_unreserved(path) for path, _ in includes)

    def find_refusal(self, url: str) -> str | None:
        """The rule, as ``KEY: RULE``, that leaves out all of a folder, by its identity; None where files may be inside."""
        path = unescape_unreserved(url.removeprefix(names.BEGIN))
        for decision in self._rules.find(path):
            is_above = any(include.startswith(path) for include in self._includes)
            if not decision.allowed and (decision.is_exclusion or not is_above):
                return decision.text
        return None
