"""Who may read a file, or pass a folder, by the mode and the owners that a server shows of it: principals by number.

An ACL does not show. Of a file that has one the bits of the group are its mask, which lets the group do at least what it may.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import xxhash

from searchcrawl.answer_headers import EVERYONE, UNREADABLE, Level

MAY_READ: Final = 4
MAY_PASS: Final = 1
#: Nobody passes.
CLOSED: Final = Level(UNREADABLE.allow)


def find_level(mode: int | None, owner: int | None, group: int | None, wanted: int) -> Level:
    """Who has a permission; nobody where the server does not say. Whoever a class denies is denied, also where a later one allows."""
    if mode is None or owner is None or group is None:
        return CLOSED
    allow, deny = list[str](), list[str]()
    of_owner, of_group, of_others = (bool(mode >> shift & wanted) for shift in (6, 3, 0))
    if of_owner:
        allow.append(f"uid:{owner}")
    elif of_group or of_others:
        deny.append(f"uid:{owner}")
    if of_group:
        allow.append(f"gid:{group}")
    elif of_others:
        deny.append(f"gid:{group}")
    if of_others:
        allow.append(EVERYONE)
    return Level(tuple(allow) or UNREADABLE.allow, tuple(deny))


def hash_levels(levels: Sequence[Level]) -> str:
    """What tells the levels over a file from others."""
    return xxhash.xxh3_64_hexdigest(repr(tuple(levels)).encode("utf-8", "replace"))
