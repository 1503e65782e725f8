"""Which principals a user has, for a search as this user (``search --as-user``): ``[principals]`` of searchcrawl.toml.

He has his name, ``everyone``, ``authenticated`` and the groups that he is said to be in; then what the machine and a class of a user's own
say of him; then what the lines of the file give to all of these, and to what they give.
"""

from __future__ import annotations

import csv
import grp
import os
import pwd
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from searchcrawl import clock
from searchcrawl.answer_headers import AUTHENTICATED, EVERYONE, PRINCIPAL_KINDS, is_principal
from searchcrawl.exceptions import ConfigurationError
from searchcrawl.sources.plugin_classes import find_error, import_class
from searchcrawl.sources.project import FILE, Project
from searchcrawl.user_code import name_error, ordinary_errors

#: Those of groups: nobody becomes another user by a group that is called like one.
_OF_GROUPS: Final = ("group:", "gid:", "sid:")
#: For so long the groups that the machine or a class of a user's own told are used again, for so many users.
KEPT_SECONDS: Final = 300.0
_MOST_KEPT: Final = 10_000
#: In place of a user: what all have.
_OF_ALL: Final = frozenset({EVERYONE, AUTHENTICATED})
_HEADER: Final = ["user", "group"]


class SearchUser(NamedTuple):
    """A user who searches: his name, and groups that he is known to be in; they may have ``sid:`` or ``gid:`` before them."""

    name: str
    groups: Sequence[str] = ()


def build_user(name: str, groups: Sequence[str] = ()) -> SearchUser:
    """A user; raises ValueError for a name that nobody, or no group, has."""
    for each in (name, *groups):
        if not is_principal(each):
            raise ValueError(f"must be a name, without control characters (got {each[:100]!r})")
    return SearchUser(name, tuple(groups))


def find_principals(project: Project, user: SearchUser) -> frozenset[str]:
    """All principals of a user; raises ConfigurationError where ``[principals]`` cannot tell."""
    own = {f"user:{user.name}", EVERYONE, AUTHENTICATED}
    own |= {_read(group, "group:", _OF_GROUPS) for group in user.groups}
    own |= _tell(project, user.name)
    if project.principals.file is None:
        return frozenset(own)
    return _follow(own, _load(project.path(project.principals.file), project.principals.file))


def find_principals_errors(project: Project) -> list[ConfigurationError]:
    """What is wrong with ``[principals]``, before anybody searches."""
    file, plugin = project.principals.file, project.principals.class_
    errors = [] if file is None else find_error(partial(_load, project.path(file), file))
    return errors if plugin is None else [*errors, *find_error(partial(_import, project, plugin))]


def _read(name: str, plain: str, kinds: tuple[str, ...] = PRINCIPAL_KINDS) -> str:
    return name if name.startswith(kinds) else f"{plain}{name}"


def _follow(own: Iterable[str], members: Mapping[str, Sequence[str]]) -> frozenset[str]:
    """What these principals have by themselves and by each other."""
    found, left = set(own), list(own)
    while left:
        for other in members.get(left.pop(), ()):
            if other not in found:
                found.add(other)
                left.append(other)
    return frozenset(found)


# The file


def _load(path: Path, shown: str) -> Mapping[str, Sequence[str]]:
    """What is in the file, by member; an edit of it counts at once."""
    try:
        now = path.stat()
        return _parse(path, shown, now.st_mtime_ns, now.st_size, now.st_ino)
    except OSError as error:
        raise ConfigurationError(FILE, "principals.file", f'{error.strerror or error} (got "{shown}")') from error


@lru_cache(maxsize=4)
def _parse(path: Path, shown: str, *_: int) -> Mapping[str, Sequence[str]]:
    found: dict[str, list[str]] = {}
    with path.open(encoding="utf-8-sig", newline="") as file:
        lines = csv.reader(file)
        try:
            for row in lines:
                names = [name.strip() for name in row]
                if not any(names) or (lines.line_num == 1 and [name.lower() for name in names] == _HEADER):
                    continue
                if len(names) != len(_HEADER) or not all(map(is_principal, names)):
                    raise ConfigurationError(shown, f"line {lines.line_num}", "must be USER,GROUP")
                member, group = names
                whose = member if member in _OF_ALL else _read(member, "user:")
                found.setdefault(whose, []).append(_read(group, "group:"))
        except (csv.Error, UnicodeDecodeError) as error:
            raise ConfigurationError(shown, f"line {lines.line_num}", f"cannot be read: {error}") from error
    return found


# The machine, and a class of a user's own

_kept: dict[tuple[Path, bool, str | None, str], tuple[float, frozenset[str]]] = {}


def _tell(project: Project, name: str) -> frozenset[str]:
    table, now = project.principals, clock.monotonic()
    key = project.root, table.system, table.class_, name
    ends, told = _kept.get(key, (0.0, frozenset[str]()))
    if key not in _kept or now >= ends:
        told = frozenset(
            [
                *(_ask_system(name) if table.system else ()),
                *(_ask_class(project, table.class_, name) if table.class_ is not None else ()),
            ]
        )
        if len(_kept) >= _MOST_KEPT:
            _kept.clear()
        _kept[key] = now + KEPT_SECONDS, told
    return told


def _ask_system(name: str) -> Iterator[str]:
    """What the machine knows of a user: nothing of one who has no account."""
    try:
        account = pwd.getpwnam(name)
    except KeyError:
        return
    yield f"uid:{account.pw_uid}"
    for number in os.getgrouplist(name, account.pw_gid):
        yield f"gid:{number}"
        try:
            yield f"group:{grp.getgrgid(number).gr_name}"
        except KeyError:
            # A group may have a number alone.
            continue


def _import(project: Project, plugin: str) -> Any:
    return import_class(plugin, ["expand"], file=FILE, key="principals.class", root=project.root)


def _ask_class(project: Project, plugin: str, name: str) -> Iterator[str]:
    made = _import(project, plugin)
    try:
        with ordinary_errors():
            found = list(made().expand(name))
    except Exception as error:
        raise _refuse(f"expand failed: {name_error(error).splitlines()[0]}", plugin) from error
    for each in found:
        if not isinstance(each, str) or not is_principal(each):
            raise _refuse(
                f"expand must give names of groups, without control characters (it gave {each!r:.100})", plugin
            )
        yield _read(each, "group:")


def _refuse(message: str, plugin: str) -> ConfigurationError:
    return ConfigurationError(FILE, "principals.class", f'{message} (got "{plugin}")')
