"""Who has a permission of POSIX, by mode or ACL (acl(5)). Pure, but for the names of users and groups.

Of POSIX the first class that names a user decides: owner, named users, groups, others. Here whoever is denied is denied, also
where a class before, or another group, would let them: that may hide a document from its readers, and shows it to nobody else.
"""

from __future__ import annotations

import grp
import pwd
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import xxhash

from searchcrawl.answer_headers import EVERYONE, UNREADABLE, Level

MAY_READ: Final = 4
MAY_PASS: Final = 1
#: Nobody passes.
CLOSED: Final = Level(UNREADABLE.allow)


class Class(NamedTuple):
    """What a class of users may do: an owner, a user or a group by number."""

    number: int
    bits: int


class Acl(NamedTuple):
    """Owner, named users, the group of the file and named groups, and all others; a mask is applied."""

    owner: Class
    users: tuple[Class, ...]
    groups: tuple[Class, ...]
    others: int


def read_mode(mode: int, owner: int, group: int) -> Acl:
    """What a mode says. Of a file with an ACL the bits of the group are its mask, which lets the group do at least what it may."""
    return Acl(Class(owner, mode >> 6), (), (Class(group, mode >> 3),), mode)


@lru_cache(maxsize=4096)
def evaluate(acl: Acl, wanted: int, *, is_here: bool = True) -> Level:
    """Who has the permission, and who has not though a later class has it; with names where the users are of this machine."""
    allow, deny = list[str](), list[str]()
    is_open = bool(acl.others & wanted)
    some_group = any(group.bits & wanted for group in acl.groups)
    # An entry for the owner never counts.
    for user in (acl.owner, *(user for user in acl.users if user.number != acl.owner.number)):
        if user.bits & wanted:
            allow += _name("uid", "user", user.number, find_user if is_here else None)
        elif is_open or some_group:
            deny += _name("uid", "user", user.number, find_user if is_here else None)
    granted = {group.number for group in acl.groups if group.bits & wanted}
    for number in dict.fromkeys(group.number for group in acl.groups):
        if number in granted or is_open:
            named = _name("gid", "group", number, _find_group if is_here else None)
            (allow if number in granted else deny).extend(named)
    if is_open:
        allow.append(EVERYONE)
    return Level(tuple(allow) or UNREADABLE.allow, tuple(deny))


def _name(form: str, named: str, number: int, find: Callable[[int], str | None] | None) -> tuple[str, ...]:
    """A user or a group as principals: by number, and by name where it has one."""
    name = None if find is None else find(number)
    return (f"{form}:{number}",) if name is None else (f"{form}:{number}", f"{named}:{name}")


@lru_cache(maxsize=4096)
def find_user(number: int) -> str | None:
    """The name of a user of this machine; None for one that it does not know."""
    try:
        return pwd.getpwuid(number).pw_name
    except (KeyError, OverflowError):
        return None


@lru_cache(maxsize=4096)
def _find_group(number: int) -> str | None:
    try:
        return grp.getgrgid(number).gr_name
    except (KeyError, OverflowError):
        return None


def digest_levels(levels: Sequence[Level]) -> str:
    """What tells the levels over a file from others."""
    return xxhash.xxh3_64_hexdigest(repr(tuple(levels)).encode("utf-8", "surrogatepass"))
