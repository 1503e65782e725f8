"""Who may read a file, and who may pass a folder: by owner, mode and ACL of POSIX (acl(5)).

Of POSIX the first class that names a user decides: owner, named users, groups, others. Here whoever is denied is denied, also
where a class before, or another group, would let them: that may hide a document from its readers, and shows it to nobody else.
"""

from __future__ import annotations

import errno
import grp
import os
import pwd
import struct
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from searchcrawl.answer_headers import EVERYONE, UNREADABLE, Level, Permissions

_READ: Final = 4
_PASS: Final = 1
_ACL: Final = "system.posix_acl_access"
#: Where the system has no such call, ACLs cannot be read.
_read_attribute: Final[Callable[[int | str | bytes, str], bytes] | None] = getattr(os, "getxattr", None)
#: The file has no ACL, or its file system has none.
_NO_ACL: Final = frozenset({errno.ENODATA, errno.ENOTSUP})
#: linux/posix_acl_xattr.h: a version, and entries of a tag, permissions and an id, all little-endian.
_HEADER: Final = struct.Struct("<I")
_ENTRY: Final = struct.Struct("<HHI")
_VERSION: Final = 2
_OWNER, _USER, _GROUP_OF_FILE, _GROUP, _MASK, _OTHER = 0x01, 0x02, 0x04, 0x08, 0x10, 0x20
#: Nobody passes.
_CLOSED: Final = Level(UNREADABLE.allow)


class _Class(NamedTuple):
    """What a class of users may do: an owner, a user or a group by number."""

    number: int
    bits: int


class _Acl(NamedTuple):
    """Owner, named users, the group of the file and named groups, and all others; a mask is applied."""

    owner: _Class
    users: tuple[_Class, ...]
    groups: tuple[_Class, ...]
    others: int


def read_permissions(file: int, facts: os.stat_result) -> Permissions:
    """Who may read an open file, without the folders above; nobody where that cannot be read."""
    found = _read_level(file, facts, _READ)
    return UNREADABLE if found is None else Permissions(found.allow, found.deny)


def read_level(folder: int | str | bytes, facts: os.stat_result) -> Level | None:
    """Who may pass a folder, open or named by its path; None where everyone may."""
    found = _read_level(folder, facts, _PASS)
    if found is None:
        return _CLOSED
    return None if EVERYONE in found.allow and not found.deny else found


def _read_level(place: int | str | bytes, facts: os.stat_result, wanted: int) -> Level | None:
    if _read_attribute is None:
        return None
    try:
        acl = _parse(_read_attribute(place, _ACL), facts)
    except OSError as error:
        if error.errno not in _NO_ACL:
            return None
        acl = _of_mode(facts)
    except (ValueError, struct.error):
        return None
    return _evaluate(acl, wanted)


def _of_mode(facts: os.stat_result) -> _Acl:
    mode = facts.st_mode
    groups = (_Class(facts.st_gid, mode >> 3),)
    return _Acl(_Class(facts.st_uid, mode >> 6), (), groups, mode)


def _parse(content: bytes, facts: os.stat_result) -> _Acl:
    """An ACL as the kernel gives it; raises ValueError and struct.error for what is none."""
    if _HEADER.unpack_from(content)[0] != _VERSION:
        raise ValueError("unknown version")
    found: dict[int, list[_Class]] = {}
    for tag, bits, number in _ENTRY.iter_unpack(content[_HEADER.size :]):
        found.setdefault(tag, []).append(_Class(number, bits))
    if not {_OWNER, _GROUP_OF_FILE, _OTHER} <= found.keys():
        raise ValueError("not a whole ACL")
    mask = found[_MASK][0].bits if _MASK in found else 7
    groups = [_Class(facts.st_gid, each.bits) for each in found[_GROUP_OF_FILE]] + found.get(_GROUP, [])
    return _Acl(
        _Class(facts.st_uid, found[_OWNER][0].bits),
        tuple(_Class(each.number, each.bits & mask) for each in found.get(_USER, [])),
        tuple(_Class(each.number, each.bits & mask) for each in groups),
        found[_OTHER][0].bits,
    )


@lru_cache(maxsize=4096)
def _evaluate(acl: _Acl, wanted: int) -> Level:
    """Who has the permission, and who has not though a later class has it."""
    allow, deny = list[str](), list[str]()
    is_open = bool(acl.others & wanted)
    some_group = any(group.bits & wanted for group in acl.groups)
    if acl.owner.bits & wanted:
        allow += _name_user(acl.owner.number)
    elif is_open or some_group:
        deny += _name_user(acl.owner.number)
    for user in acl.users:
        # An entry for the owner never counts.
        if user.number != acl.owner.number:
            if user.bits & wanted:
                allow += _name_user(user.number)
            elif is_open or some_group:
                deny += _name_user(user.number)
    granted = {group.number for group in acl.groups if group.bits & wanted}
    for number in dict.fromkeys(group.number for group in acl.groups):
        if number in granted:
            allow += _name_group(number)
        elif is_open:
            deny += _name_group(number)
    if is_open:
        allow.append(EVERYONE)
    return Level(tuple(allow) or UNREADABLE.allow, tuple(deny))


def _name_user(number: int) -> tuple[str, ...]:
    return _name("uid", "user", number, find_user)


def _name_group(number: int) -> tuple[str, ...]:
    return _name("gid", "group", number, _find_group)


def _name(form: str, named: str, number: int, find: Callable[[int], str | None]) -> tuple[str, ...]:
    """A user or a group as principals: by number, and by name where it has one."""
    name = find(number)
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


def list_levels_above(path: bytes) -> Iterator[Level]:
    """Who may pass the folders above a root, as far as they let not everyone pass; what cannot be read lets nobody."""
    above = os.path.dirname(os.path.realpath(path))
    while True:
        try:
            level = read_level(above, os.stat(above))
        except OSError:
            level = _CLOSED
        if level is not None:
            yield level
        if above == os.path.dirname(above):
            return
        above = os.path.dirname(above)


class Levels:
    """Collects who may pass the folders on a way, as ``jail.Visit``; ``above`` are those above its root."""

    def __init__(self, above: Sequence[Level]) -> None:
        self._found = dict.fromkeys(above)

    def __call__(self, folder: int, facts: os.stat_result) -> None:
        level = read_level(folder, facts)
        if level is not None:
            self._found[level] = None

    @property
    def found(self) -> tuple[Level, ...]:
        """The levels that let not everyone pass, each once."""
        return tuple(self._found)
