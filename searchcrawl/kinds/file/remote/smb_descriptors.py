"""NT security descriptors: who may read a file, and who may pass a folder ([MS-DTYP] 2.4.6). Pure.

The entries of an ACL hold in their order: what an earlier one says of a principal, a later one does not take back. A denial
counts for all who have it, whatever other principals of theirs are allowed; Windows would let an explicit permission of a group
win over an inherited denial of another one.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from searchcrawl.answer_headers import AUTHENTICATED, EVERYONE, UNREADABLE, Level

#: Bits of an access mask by which a file may be read, or a folder passed: its own, and generic ones that have it in them.
READ: Final = 0x0000_0001 | 0x8000_0000 | 0x1000_0000
PASS: Final = 0x0000_0020 | 0x2000_0000 | 0x1000_0000
#: What an owner is allowed beside the ACL is not to read.
_OWNER_RIGHTS: Final = "S-1-3-4"
_WORLD: Final = "S-1-1-0"
#: Whoever comes by SMB has logged in, and comes by the network.
_NAMES: Final = {_WORLD: EVERYONE, "S-1-5-11": AUTHENTICATED, "S-1-5-2": AUTHENTICATED}
#: Groups of a server with Samba, by their numbers.
_UNIX_GROUPS: Final = "S-1-22-2-"
#: Who passes where nothing can be read.
CLOSED: Final = Level(UNREADABLE.allow)

_HEAD: Final = struct.Struct("<BxHIIII")
_ACL: Final = struct.Struct("<BxHHxx")
_ACE: Final = struct.Struct("<BBHI")
_SID: Final = struct.Struct(">BB6s")
_RELATIVE, _HAS_ACL = 0x8000, 0x0004
_INHERIT_ONLY, _INHERITED = 0x08, 0x10
_ALLOW, _DENY = 0, 1
#: Entries about properties of objects, which files have not, and entries with a condition, which cannot be asked here: what they
#: allow is not known, what they deny counts. Each with what is between mask and SID: objects have types.
_DENIALS: Final = {6: True, 10: False, 12: True}
_UNKNOWN_ALLOWS: Final = frozenset({5, 9, 11})
#: Entries that say what is noted, and no permission.
_SYSTEM: Final = frozenset({2, 3, 7, 8, 13, 14, 15, 16, 17, 18, 19, 20, 21})
_OBJECT_TYPE, _INHERITED_TYPE, _GUID_BYTES = 0x1, 0x2, 16


class Entry(NamedTuple):
    """An entry of an ACL that counts for the thing itself."""

    allows: bool
    mask: int
    sid: str
    is_inherited: bool


class Descriptor(NamedTuple):
    """Whose something is, and who may do what with it; without entries (None) everyone may do everything."""

    owner: str | None
    group: str | None
    entries: tuple[Entry, ...] | None


def parse(content: bytes) -> Descriptor:
    """A descriptor in its self-relative form; raises ValueError for what is none, or has an entry of an unknown kind."""
    try:
        revision, control, owner, group, _, acl = _HEAD.unpack_from(content)
        if revision != 1 or not control & _RELATIVE or not control & _HAS_ACL:
            raise ValueError("no security descriptor with an ACL")
        return Descriptor(
            _read_sid(content, owner) if owner else None,
            _read_sid(content, group) if group else None,
            tuple(_read_acl(content, acl)) if acl else None,
        )
    except struct.error as error:
        raise ValueError("cut short") from error


def _read_sid(content: bytes, place: int) -> str:
    revision, count, authority = _SID.unpack_from(content, place)
    if revision != 1 or count > 15:
        raise ValueError("no SID")
    numbers = struct.unpack_from(f"<{count}I", content, place + _SID.size)
    return "-".join(map(str, ("S-1", int.from_bytes(authority, "big"), *numbers)))


def _read_acl(content: bytes, place: int) -> Iterator[Entry]:
    _, size, count = _ACL.unpack_from(content, place)
    end = place + size
    place += _ACL.size
    for _ in range(count):
        kind, flags, length, mask = _ACE.unpack_from(content, place)
        if length < _ACE.size or place + length > end:
            raise ValueError("an entry that is too long")
        if not flags & _INHERIT_ONLY:
            yield from _read_entry(content, place, kind, mask, is_inherited=bool(flags & _INHERITED))
        place += length


def _read_entry(content: bytes, place: int, kind: int, mask: int, *, is_inherited: bool) -> Iterator[Entry]:
    place += _ACE.size
    if kind in {_ALLOW, _DENY}:
        yield Entry(kind == _ALLOW, mask, _read_sid(content, place), is_inherited)
    elif kind in _DENIALS:
        if _DENIALS[kind]:
            types = int.from_bytes(content[place : place + 4], "little")
            place += 4 + _GUID_BYTES * (bool(types & _OBJECT_TYPE) + bool(types & _INHERITED_TYPE))
        yield Entry(False, mask, _read_sid(content, place), is_inherited)
    elif kind not in _UNKNOWN_ALLOWS | _SYSTEM:
        raise ValueError("an entry of an unknown kind")


def find_level(content: bytes, wanted: int) -> Level:
    """Who has one of the ``wanted`` bits; nobody where the descriptor cannot be read."""
    try:
        found = parse(content)
    except ValueError:
        return CLOSED
    if found.entries is None:
        return Level((EVERYONE,))
    entries = _as_classes(found, wanted) if _is_of_modes(found) else found.entries
    allow, deny = list[str](), list[str]()
    decided = set[str]()
    for entry in entries:
        name = _name(entry.sid, found.owner)
        if not entry.mask & wanted or name is None or name in decided:
            continue
        decided.add(name)
        (allow if entry.allows else deny).append(name)
        if name in {EVERYONE, AUTHENTICATED}:
            # Each user has it: nothing is left to be decided.
            break
    return Level(tuple(allow) or UNREADABLE.allow, tuple(deny))


def _name(sid: str, owner: str | None) -> str | None:
    """The principal of a SID; None where nobody has it."""
    if sid == _OWNER_RIGHTS:
        return None if owner is None else _name(owner, None)
    return _NAMES.get(sid, f"sid:{sid}")


def _is_of_modes(found: Descriptor) -> bool:
    """Whether an ACL has the form in which Samba shows modes and ACLs of POSIX: each class once, allowed something or nothing.

    There the first class that has a user decides, so that one with fewer rights than those behind it is a denial.
    """
    entries = found.entries or ()
    sids = [entry.sid for entry in entries]
    return (
        {found.owner, found.group, _WORLD} <= {*sids}
        and len({*sids}) == len(sids)
        and all(entry.allows and not entry.is_inherited for entry in entries)
    )


def _as_classes(found: Descriptor, wanted: int) -> Sequence[Entry]:
    """The entries with denials of those classes that have not what a later class has."""
    entries = found.entries or ()
    granted = {entry.sid for entry in entries if entry.mask & wanted}
    is_open = _WORLD in granted
    others = granted - {found.owner}
    lacking = [entry for entry in entries if entry.sid not in granted and entry.sid != _WORLD]
    denied = [entry for entry in lacking if is_open or (others and not _is_group(entry.sid, found))]
    return [*(entry._replace(allows=False, mask=wanted) for entry in denied), *entries]


def _is_group(sid: str, found: Descriptor) -> bool:
    """Whether a class is surely a group, of which another one may allow what this one does not."""
    return sid == found.group or sid.startswith(_UNIX_GROUPS)


def find_owner(content: bytes) -> str | None:
    """The SID of the owner; None where it cannot be read."""
    try:
        return parse(content).owner
    except ValueError:
        return None
