"""Who may see a document: what of permissions decides, the terms of an index, and the verdict on a user."""

from __future__ import annotations

import itertools
import random

import pytest

from searchcrawl.access import HIDDEN, MOST_LEVELS, Access, build_access, build_terms, find_access, judge, list_fields
from searchcrawl.answer_headers import Level, Permissions, encode_permissions

ALL = ("everyone", "authenticated")


def may_see(permissions: Permissions, principals: set[str]) -> bool:
    """What is promised, level by level."""
    each = [Level(permissions.allow, permissions.deny), *permissions.levels]
    return all(principals & {*level.allow} and not principals & {*level.deny} for level in each)


def finds(access: Access | None, principals: set[str], counts: list[str]) -> bool:
    """Whether an index finds a document that has these fields."""
    fields = list_fields(access)
    wanted = build_terms(principals, counts)
    allowed = not {*fields["acl_allow"]}.isdisjoint(wanted.principals)
    denied = not {*fields["acl_deny"]}.isdisjoint(wanted.principals)
    return allowed and not denied and all(not {*fields["acl_path"]}.isdisjoint(terms) for terms in wanted.paths)


def test_document_when_permissions_are_any_then_each_user_finds_it_who_passes_all_levels_and_nobody_else() -> None:
    chance = random.Random(7)
    names = [*ALL, "user:a", "user:b", "group:x", "group:y", "group:z", "nobody"]

    def some(least: int) -> tuple[str, ...]:
        return tuple(chance.sample(names, chance.randint(least, 3)))

    users = [{*ALL, "user:a", *groups} for groups in itertools.product(("group:x",), ("group:y", "user:b"))]
    users += [{*ALL, "user:a"}, {*ALL, "user:b", "group:z"}, {*ALL, "user:c"}, {*ALL, "user:c", "nobody"}]
    for _ in range(3_000):
        levels = tuple(Level(some(1), some(0)) for _ in range(chance.randint(0, 4)))
        permissions = Permissions(some(1), some(0), levels)
        access = build_access(permissions)
        for user in users:
            expected = may_see(permissions, user - {"nobody"})
            assert finds(access, user, ["=0", "=4"]) is expected, (permissions, user)
            assert judge(access, user).sees is expected, (permissions, user)


@pytest.mark.parametrize(
    ("permissions", "expected"),
    [
        (Permissions(("everyone",)), None),
        (Permissions(("everyone",), (), (Level(("everyone",)), Level(("authenticated",)))), None),
        (Permissions(("b", "a", "a"), (), (Level(("a", "b", "c")),)), Access(("a", "b"))),
        (Permissions(("everyone",), (), (Level(("a", "b")), Level(("a",)))), Access(("everyone",), (), (("a",),))),
        (Permissions(("everyone",), (), (Level(("everyone",), ("z",)),)), Access(("everyone",), ("z",))),
    ],
)
def test_permissions_when_some_of_them_decide_nothing_then_they_are_left_out(
    permissions: Permissions, expected: Access | None
) -> None:
    assert build_access(permissions) == expected


def test_permissions_when_there_are_more_levels_than_a_query_asks_for_then_nobody_may_see_the_document() -> None:
    levels = tuple(Level((f"group:{number}",)) for number in range(MOST_LEVELS + 1))

    assert build_access(Permissions(("everyone",), (), levels)) == HIDDEN


def test_answer_when_it_says_nothing_of_permissions_then_everyone_may_see_its_document() -> None:
    access = find_access([(b"Content-Type", b"text/plain")])

    assert list_fields(access) == {"acl_allow": ["everyone"], "acl_deny": [], "acl_path": ["=0"]}
    assert find_access(encode_permissions(Permissions(("everyone",)))) is None


def test_document_when_it_has_more_levels_than_the_index_is_known_to_have_then_nobody_finds_it() -> None:
    access = build_access(Permissions(("everyone",), (), (Level(("a",)), Level(("b",)))))

    assert finds(access, {*ALL, "a", "b"}, ["=0", "=2"])
    assert not finds(access, {*ALL, "a", "b"}, ["=0", "=1"])
    assert not finds(access, {*ALL, "a", "b"}, [])
    # What is no count says nothing.
    assert finds(access, {*ALL, "a", "b"}, ["=99999999999", "=²", "=-1", "=2"])


@pytest.mark.parametrize(
    ("principals", "sees", "reason"),
    [
        ({"user:a", "group:x"}, False, "denied to group:x"),
        ({"user:b"}, False, "allowed to group:y, user:a only"),
        ({"user:a"}, False, "a level above it lets only group:l pass"),
        ({"user:a", "group:l"}, True, "allowed to user:a"),
    ],
)
def test_verdict_when_a_user_is_judged_then_it_names_what_decides(
    principals: set[str], sees: bool, reason: str
) -> None:
    access = Access(("group:y", "user:a"), ("group:x",), (("group:l",),))

    assert judge(access, principals) == (sees, reason)
