"""The rules of ``[scope]`` about what is listed, as far as its URL says: roots, paths and names (A9). Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from urllib.parse import unquote

from searchcrawl.rules.archives import MARK
from searchcrawl.rules.decision import Decision
from searchcrawl.rules.url_rules import NameRules, PathRules
from searchcrawl.urls import unescape_unreserved

#: The identity of a folder, with a slash at its end, and the rule as it was written.
PathRule = tuple[str, str]
_NAMES: Final = "scope.include_names", "scope.exclude_names"
#: The beginnings of rules that are asked for by a URL alone, or by a list of the project.
_BY_URL: Final = ("scope.include_", "scope.exclude_", "forgotten")


def is_of_lister(rule: str | None) -> bool:
    """Whether what is listed was left out (955) by a rule that a lister alone may be able to ask, as one about sizes."""
    return not (rule or "").startswith(_BY_URL)


class ListedRules:
    """What is listed is below one of the ``roots``, whose key is ``roots_key``, and at or below an include.

    What is at or below the identities of rules matches. Names with a slash at the end are those of folders below the root, the
    others those of files.
    """

    def __init__(
        self,
        roots: Sequence[PathRule],
        *,
        roots_key: str,
        include_paths: Sequence[PathRule] = (),
        exclude_paths: Sequence[PathRule] = (),
        include_names: Sequence[str] = (),
        exclude_names: Sequence[str] = (),
        file: str = "",
    ) -> None:
        self._roots = _compile(roots, (), (roots_key, ""), file)
        self._root_urls = tuple(sorted((unescape_unreserved(url) for url, _ in roots), key=len, reverse=True))
        self._paths = _compile(include_paths, exclude_paths, ("scope.include_paths", "scope.exclude_paths"), file)
        of_files = [name for name in exclude_names if not name.endswith("/")]
        self._names = NameRules(include_names, of_files, file, *_NAMES)
        of_folders = {name[:-1]: name for name in exclude_names if name.endswith("/")}
        self._folders = NameRules((), list(of_folders), file, *_NAMES)
        self._of_folders = of_folders

    def find(self, url: str) -> list[Decision]:
        """What the rules say about an identity, in the form that rules see; for a folder its names do not count."""
        found = self._roots.find(url)
        place = url.partition(MARK)[0]
        if self._paths:
            found = [*found, *self._paths.find(f"{place}/")]
        root = next((root for root in self._root_urls if url.startswith(root)), "")
        *folders, name = unquote(place[len(root) :], errors="replace").split("/")
        if self._folders:
            found += [self._show(each) for folder in folders for each in self._folders.find(folder)]
        if self._names and name:
            found += self._names.find(name)
        # An exclude is asked before a missing include.
        return sorted(found, key=lambda decision: (decision.allowed, not decision.is_exclusion))

    def list_includes(self, url: str) -> list[Decision]:
        """The rules that include an identity which is allowed: if they were removed, it would be refused."""
        return [decision for decision in self.find(url) if decision.allowed]

    def _show(self, decision: Decision) -> Decision:
        return Decision(decision.allowed, self._of_folders[decision.rule], decision.file, decision.key)


def _compile(includes: Sequence[PathRule], excludes: Sequence[PathRule], keys: tuple[str, str], file: str) -> PathRules:
    rules = [
        (unescape_unreserved(url), Decision(allowed, rule, file, key))
        for pairs, allowed, key in ((includes, True, keys[0]), (excludes, False, keys[1]))
        for url, rule in pairs
    ]
    return PathRules(rules, keys[0], file)
