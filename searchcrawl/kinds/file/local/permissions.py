"""Who may read a file of this machine, and who may pass a folder: by owner, mode and ACL (``posix``)."""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from searchcrawl.answer_headers import UNREADABLE, Level, Permissions
from searchcrawl.kinds.file.posix import CLOSED, MAY_PASS, MAY_READ, Acl, Class, evaluate, read_mode

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


def read_permissions(file: int, facts: os.stat_result) -> Permissions:
    """Who may read an open file, without the folders above; nobody where that cannot be read."""
    found = _read_level(file, facts, MAY_READ)
    return UNREADABLE if found is None else Permissions(found.allow, found.deny)


def read_level(folder: int | str | bytes, facts: os.stat_result) -> Level | None:
    """Who may pass a folder, open or named by its path; None where everyone may."""
    found = _read_level(folder, facts, MAY_PASS)
    if found is None:
        return CLOSED
    return None if found.is_open else found


def _read_level(place: int | str | bytes, facts: os.stat_result, wanted: int) -> Level | None:
    if _read_attribute is None:
        return None
    try:
        acl = _parse(_read_attribute(place, _ACL), facts)
    except OSError as error:
        if error.errno not in _NO_ACL:
            return None
        acl = read_mode(facts.st_mode, facts.st_uid, facts.st_gid)
    except (ValueError, struct.error):
        return None
    return evaluate(acl, wanted)


def _parse(content: bytes, facts: os.stat_result) -> Acl:
    """An ACL as the kernel gives it; raises ValueError and struct.error for what is none."""
    if _HEADER.unpack_from(content)[0] != _VERSION:
        raise ValueError("unknown version")
    found: dict[int, list[Class]] = {}
    for tag, bits, number in _ENTRY.iter_unpack(content[_HEADER.size :]):
        found.setdefault(tag, []).append(Class(number, bits))
    if not {_OWNER, _GROUP_OF_FILE, _OTHER} <= found.keys():
        raise ValueError("not a whole ACL")
    mask = found[_MASK][0].bits if _MASK in found else 7
    groups = [Class(facts.st_gid, each.bits) for each in found[_GROUP_OF_FILE]] + found.get(_GROUP, [])
    return Acl(
        Class(facts.st_uid, found[_OWNER][0].bits),
        tuple(Class(each.number, each.bits & mask) for each in found.get(_USER, [])),
        tuple(Class(each.number, each.bits & mask) for each in groups),
        found[_OTHER][0].bits,
    )


def list_levels_above(path: bytes) -> Iterator[Level]:
    """Who may pass the folders above a root, as far as they let not everyone pass; what cannot be read lets nobody."""
    above = os.path.dirname(os.path.realpath(path))
    while True:
        try:
            level = read_level(above, os.stat(above))
        except OSError:
            level = CLOSED
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
