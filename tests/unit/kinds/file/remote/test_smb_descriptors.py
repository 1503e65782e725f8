"""Who may read by a security descriptor, and what is none."""

from __future__ import annotations

import struct

import pytest

from searchcrawl.answer_headers import AUTHENTICATED, EVERYONE, NOBODY, Level
from searchcrawl.kinds.file.remote.smb_descriptors import CLOSED, PASS, READ, find_level, find_owner
from tests.smb_server import Ace, build_descriptor, build_sid

OWNER, GROUP, ANNA, BOB, WORLD = "S-1-5-21-1-2-3-500", "S-1-5-21-1-2-3-513", "S-1-5-21-7", "S-1-5-21-8", "S-1-1-0"
MAY_READ, MAY_WRITE, MAY_DELETE, MAY_ALL = 0x120089, 0x120116, 0x10000, 0x1F01FF
DENY, INHERITED, INHERIT_ONLY = 1, 0x10, 0x0B


def level(*entries: Ace, wanted: int = READ) -> Level:
    return find_level(build_descriptor(OWNER, GROUP, entries), wanted)


def allowed(*sids: str) -> tuple[str, ...]:
    return tuple(sid if sid in {EVERYONE, AUTHENTICATED, NOBODY} else f"sid:{sid}" for sid in sids)


@pytest.mark.parametrize(
    ("entries", "allow", "deny"),
    [
        ([Ace(ANNA, MAY_READ), Ace(BOB, MAY_ALL)], [ANNA, BOB], []),
        ([Ace(WORLD, MAY_READ)], [EVERYONE], []),
        ([Ace("S-1-5-11", MAY_READ), Ace(ANNA, MAY_READ)], [AUTHENTICATED], []),
        ([Ace("S-1-5-2", MAY_READ)], [AUTHENTICATED], []),
        # Only bits to read count: neither writing nor deleting, allowed or denied.
        ([Ace(ANNA, MAY_WRITE), Ace(BOB, MAY_DELETE)], [NOBODY], []),
        ([Ace(ANNA, MAY_DELETE, DENY), Ace(ANNA, MAY_READ)], [ANNA], []),
        ([Ace(ANNA, 0x8000_0000), Ace(BOB, 0x1000_0000)], [ANNA, BOB], []),
        # An entry for what is below, and not for the thing.
        ([Ace(WORLD, MAY_ALL, flags=INHERIT_ONLY), Ace(ANNA, MAY_READ)], [ANNA], []),
        ([Ace(ANNA, MAY_READ, DENY), Ace(WORLD, MAY_READ)], [EVERYONE], [ANNA]),
        # What an earlier entry says of somebody, a later one does not take back.
        ([Ace(ANNA, MAY_READ), Ace(ANNA, MAY_READ, DENY, INHERITED)], [ANNA], []),
        ([Ace(ANNA, MAY_READ, DENY), Ace(ANNA, MAY_READ)], [NOBODY], [ANNA]),
        ([Ace(WORLD, MAY_READ), Ace(ANNA, MAY_READ, DENY)], [EVERYONE], []),
        ([Ace("S-1-3-4", MAY_READ)], [OWNER], []),
        ([Ace("S-1-3-4", MAY_READ, DENY), Ace(WORLD, MAY_READ)], [EVERYONE], [OWNER]),
        ([], [NOBODY], []),
        # Objects and conditions: what they allow is not known, what they deny counts.
        ([Ace(ANNA, MAY_READ, 9), Ace(BOB, MAY_READ, 10), Ace(WORLD, MAY_READ)], [EVERYONE], [BOB]),
    ],
)
def test_level_when_an_acl_allows_and_denies_then_has_who_may_read(
    entries: list[Ace], allow: list[str], deny: list[str]
) -> None:
    assert level(*entries) == Level(allowed(*allow), allowed(*deny))


def test_level_when_a_folder_is_to_be_passed_then_reading_it_is_not_enough() -> None:
    assert level(Ace(ANNA, MAY_READ), Ace(BOB, 0x1200A0), wanted=PASS) == Level(allowed(BOB))


@pytest.mark.parametrize(
    ("owner", "group", "others", "allow", "deny"),
    [
        (MAY_READ, 0, 0, [OWNER], []),
        (MAY_READ, MAY_READ, 0, [OWNER, GROUP], []),
        (MAY_READ, 0, MAY_READ, [OWNER, EVERYONE], [GROUP]),
        (0, MAY_READ, MAY_READ, [GROUP, EVERYONE], [OWNER]),
        (0, MAY_READ, 0, [GROUP], [OWNER]),
        (0, 0, 0, [NOBODY], []),
    ],
)
def test_level_when_samba_shows_a_mode_then_the_first_class_decides(
    owner: int, group: int, others: int, allow: list[str], deny: list[str]
) -> None:
    found = level(Ace(OWNER, owner), Ace(GROUP, group), Ace(WORLD, others))

    assert found == Level(allowed(*allow), allowed(*deny))


def test_level_when_samba_shows_named_users_and_groups_then_those_without_a_right_are_denied() -> None:
    unix_group = "S-1-22-2-60"
    classes = [Ace(OWNER, MAY_READ), Ace(ANNA, 0), Ace(GROUP, 0), Ace(unix_group, 0), Ace(BOB, MAY_READ)]

    assert level(*classes, Ace(WORLD, 0)) == Level(allowed(OWNER, BOB), allowed(ANNA))
    # Another group may allow what one does not, as long as not all may.
    assert level(*classes, Ace(WORLD, MAY_READ)).deny == allowed(ANNA, GROUP, unix_group)


def test_level_when_there_is_no_acl_then_everyone_may() -> None:
    assert find_level(build_descriptor(OWNER, GROUP, None), READ) == Level((EVERYONE,))


def test_level_when_a_descriptor_is_none_then_it_is_nobody() -> None:
    whole = build_descriptor(OWNER, GROUP, [Ace(WORLD, MAY_READ), Ace(ANNA, MAY_READ)])
    without_acl = struct.pack("<BBHIIII", 1, 0, 0x8000, 0, 0, 0, 0)
    of_unknown_kind = build_descriptor(OWNER, GROUP, [Ace(WORLD, MAY_READ), Ace(ANNA, MAY_READ, 99)])

    cut = [whole[:length] for length in range(len(whole))]
    assert {find_level(content, READ) for content in [*cut, without_acl, of_unknown_kind]} == {CLOSED}


def test_level_when_an_entry_is_for_an_object_then_its_sid_is_behind_the_types() -> None:
    def build(types: int, guids: int, kind: int) -> bytes:
        body = struct.pack("<II", MAY_READ, types) + b"\x07" * 16 * guids + build_sid(ANNA)
        ace = struct.pack("<BBH", kind, 0, 4 + len(body)) + body
        acl = struct.pack("<BBHHH", 4, 0, 8 + len(ace), 1, 0) + ace
        return struct.pack("<BBHIIII", 1, 0, 0x8004, 0, 0, 0, 20) + acl

    denied = [find_level(build(types, guids, 6), READ).deny for types, guids in ((0, 0), (1, 1), (2, 1), (3, 2))]
    assert denied == [allowed(ANNA)] * 4
    assert find_level(build(3, 2, 5), READ) == CLOSED


def test_owner_when_it_is_there_then_is_its_sid() -> None:
    assert find_owner(build_descriptor(OWNER, GROUP, [])) == OWNER
    assert find_owner(build_descriptor(None, None, [])) is None
    assert find_owner(b"nothing") is None
