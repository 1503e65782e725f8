"""Who may see a document: as its fields in an index say it, and as a search asks for what a user may see. Pure.

A user has principals: his own name, those of his groups, ``everyone`` and ``authenticated``. He may see a document if one of
them is among ``acl_allow``, none among ``acl_deny``, and if he passes each level above the document: one of them is among the
principals of that level. ``acl_path`` has how many levels there are, as ``=2``, and each principal after the number of its
level, as ``1:group:staff``. So a query of a few sets of terms finds what a user may see, and nothing is looked up elsewhere.

A document without these fields, which an earlier release sent, is seen by no user.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from searchcrawl.answer_headers import AUTHENTICATED, EVERYONE, NOBODY, AnswerHeaders, Permissions, find_permissions

ALLOW_FIELD: Final = "acl_allow"
DENY_FIELD: Final = "acl_deny"
PATH_FIELD: Final = "acl_path"
#: Before the number of levels.
COUNT_MARK: Final = "="
#: A query asks for each level that some document has. Nobody may see a document with more of them.
MOST_LEVELS: Final = 64
#: Each user has these.
_OF_ALL: Final = frozenset({EVERYONE, AUTHENTICATED})


class Access(NamedTuple):
    """Who may see a document: who has one of ``allow``, none of ``deny``, and one of each of ``levels``; all are sorted."""

    allow: tuple[str, ...]
    deny: tuple[str, ...] = ()
    levels: tuple[tuple[str, ...], ...] = ()

    @classmethod
    def read(cls, found: Sequence[Any]) -> Access:
        """What a record has of it, as JSON gives it back."""
        allow, deny, levels = found
        return cls(tuple(allow), tuple(deny), tuple(map(tuple, levels)))


#: Of a document whose permissions cannot be read.
HIDDEN: Final = Access((NOBODY,))
_OPEN: Final = Access((EVERYONE,))


def find_access(headers: AnswerHeaders) -> Access | None:
    """Who may see the document of an answer; None: everyone."""
    found = find_permissions(headers)
    return None if found is None else build_access(found)


def build_access(permissions: Permissions) -> Access | None:
    """The same of permissions, without what decides nothing: equal ones are equal then. None: everyone."""
    own = frozenset(permissions.allow)
    deny = {*permissions.deny, *(principal for level in permissions.levels for principal in level.deny)}
    levels = {frozenset(level.allow) for level in permissions.levels}
    levels = {level for level in levels if level.isdisjoint(_OF_ALL) and not own <= level}
    if len(levels) > MOST_LEVELS:
        return HIDDEN
    # Who passes one of them passes all that have its principals, and more.
    needed = [level for level in levels if not any(other < level for other in levels)]
    found = Access(tuple(sorted(own)), tuple(sorted(deny)), tuple(sorted(tuple(sorted(level)) for level in needed)))
    return None if EVERYONE in own and not deny and not needed else found


def list_fields(access: Access | None) -> dict[str, list[str]]:
    """The fields of a document of an index."""
    allow, deny, levels = access or _OPEN
    of_levels = (build_prefix(number) + principal for number, level in enumerate(levels, 1) for principal in level)
    return {ALLOW_FIELD: [*allow], DENY_FIELD: [*deny], PATH_FIELD: [f"{COUNT_MARK}{len(levels)}", *of_levels]}


class AccessTerms(NamedTuple):
    """What a user may see: one of ``principals`` is in ``acl_allow``, none in ``acl_deny``; ``acl_path`` has one of each of ``paths``.

    That is one of ``numbers``, which say how many levels a document has, and one of each of ``levels`` that it has.
    """

    principals: Sequence[str]
    numbers: Sequence[str]
    levels: Sequence[Sequence[str]]

    @property
    def paths(self) -> Iterator[Sequence[str]]:
        """Sets of terms of which each has to be met; who has fewer levels passes as well."""
        yield self.numbers
        for number, terms in enumerate(self.levels, 1):
            yield [*self.numbers[:number], *terms]


def build_terms(
    principals: Collection[str],
    counts: Iterable[str],
    find_few: Callable[[int], Collection[str] | None] = lambda _: None,
) -> AccessTerms:
    """The terms of a query; ``counts`` are the numbers of levels that documents of the index have, as ``=2``.

    A document with another number of levels than these is not found. ``find_few`` gives all terms with principals that an index has of
    a level, where that is worth asking: the others, which find nothing there, are left out.
    """
    wanted = sorted({*principals} - {NOBODY})
    most = min(MOST_LEVELS, max(map(read_count, counts), default=0))
    numbers = [f"{COUNT_MARK}{number}" for number in range(most + 1)]

    def list_terms(number: int) -> list[str]:
        few = find_few(number)
        prefix = build_prefix(number)
        if few is None:
            return [prefix + principal for principal in wanted]
        return [term for term in few if term.removeprefix(prefix) in has]

    has = frozenset(wanted)
    return AccessTerms(wanted, numbers, [list_terms(number) for number in range(1, most + 1)])


def build_prefix(number: int) -> str:
    """Before each principal of a level in ``acl_path``."""
    return f"{number}:"


def read_count(term: str) -> int:
    """How many levels a term as ``=2`` says that a document has; 0 for any other."""
    digits = term.removeprefix(COUNT_MARK)
    return int(digits) if digits.isdecimal() and len(digits) <= len(str(MOST_LEVELS)) else 0


class Verdict(NamedTuple):
    """Whether a user may see a document, and which principals decide."""

    sees: bool
    reason: str


def judge(access: Access | None, principals: Collection[str]) -> Verdict:
    """Whether somebody with these principals may see a document, and why."""
    if access is None:
        return Verdict(True, f"{EVERYONE} may see it")
    has = {*principals} - {NOBODY}
    if denied := sorted(has.intersection(access.deny)):
        return Verdict(False, f"denied to {show_principals(denied)}")
    if not (allowed := sorted(has.intersection(access.allow))):
        return Verdict(False, f"allowed to {show_principals(access.allow)} only")
    for level in access.levels:
        if has.isdisjoint(level):
            return Verdict(False, f"a level above it lets only {show_principals(level)} pass")
    return Verdict(True, f"allowed to {show_principals(allowed)}")


def describe_access(access: Access) -> str:
    """Who may see a document, for people."""
    parts = [f"allowed to {show_principals(access.allow)}"]
    parts += [f"denied to {show_principals(access.deny)}"] if access.deny else []
    parts += [f"a level above it lets only {show_principals(level)} pass" for level in access.levels]
    return "; ".join(parts)


_MOST_SHOWN: Final = 10


def show_principals(principals: Sequence[str]) -> str:
    """Principals for people, of many the first ones."""
    more = len(principals) - _MOST_SHOWN
    return ", ".join(principals[:_MOST_SHOWN]) + (f" and {more} more" if more > 0 else "")


def read_record(record: Mapping[str, Any]) -> Access | None:
    """Who may see the document of a record of the cache; None: everyone."""
    found = record.get("access")
    return None if found is None else Access.read(found)
