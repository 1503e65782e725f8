"""Values and permissions as headers of an answer."""

from __future__ import annotations

import pytest

from searchcrawl.answer_headers import (
    UNREADABLE,
    Level,
    Permissions,
    drop_own,
    encode_permissions,
    encode_value,
    find_permissions,
    list_permissions,
    list_values,
)


@pytest.mark.parametrize(
    "permissions",
    [
        Permissions(("everyone",)),
        Permissions(("user:anna", "group:Vertrieb Süd"), ("sid:S-1-5-21-1",)),
        Permissions(("user:100%=a,b;c d",), (), (Level(("group:x",), ("user:y",)), Level(("ü",)))),
        Permissions(tuple(f"group:{number}" for number in range(3_000))),
    ],
)
def test_permissions_when_written_as_headers_then_they_are_read_again(permissions: Permissions) -> None:
    headers = encode_permissions(permissions)

    assert find_permissions(headers) == permissions
    assert all(value.isascii() and b"\n" not in value for _, value in headers)
    assert find_permissions(tuple((name.lower(), value) for name, value in headers)) == permissions


def test_answer_when_it_says_nothing_of_permissions_then_there_are_none() -> None:
    assert find_permissions(((b"Content-Type", b"text/plain"),)) is None


@pytest.mark.parametrize(
    "headers",
    [
        [(b"Searchcrawl-Deny", b"user:anna")],
        [(b"Searchcrawl-Level", b'[{"allow":["everyone"]}]')],
    ],
)
def test_permissions_when_nobody_is_allowed_then_nobody_may_see_the_document(
    headers: list[tuple[bytes, bytes]],
) -> None:
    found = find_permissions(headers)

    assert found is not None
    assert found.allow == ("nobody",)


@pytest.mark.parametrize(
    "header",
    [
        (b"Searchcrawl-Allow", b""),
        (b"Searchcrawl-Allow", b"user:a%0Ab"),
        (b"Searchcrawl-Deny", b"user:" + b"a" * 1_000),
        (b"Searchcrawl-Allow", b"%ff"),
        (b"Searchcrawl-Deny", b"%ed%a0%80"),
        (b"Searchcrawl-Level", b"everyone"),
        (b"Searchcrawl-Level", b"{}"),
        (b"Searchcrawl-Level", b'["everyone"]'),
        (b"Searchcrawl-Level", b'[{"allow":"everyone"}]'),
        (b"Searchcrawl-Level", b'[{"allow":[1]}]'),
        (b"Searchcrawl-Level", b'[{"allow":[""]}]'),
        (b"Searchcrawl-Level", b'[{"allow":["everyone"],"denied":[]}]'),
        (b"Searchcrawl-Level", b"[" * 100_000),
    ],
)
def test_permissions_when_a_part_cannot_be_read_then_nobody_may_see_the_document(header: tuple[bytes, bytes]) -> None:
    assert find_permissions([(b"Searchcrawl-Allow", b"everyone"), header]) == UNREADABLE


def test_principal_with_a_lone_surrogate_when_written_then_nobody_may_see_the_document() -> None:
    assert find_permissions(encode_permissions(Permissions(("everyone", "user:\udcff")))) == UNREADABLE


def test_values_when_written_as_headers_then_they_are_read_again_in_their_order() -> None:
    headers = [encode_value("column", "Größe=%", "1=2\r\n"), encode_value("file", "owner", ""), (b"X", b"column:a=b")]

    assert list(list_values(headers)) == [("column:größe=%", "1=2\r\n"), ("file:owner", "")]
    assert list(list_values([(b"Searchcrawl-Value", b"none")])) == []


def test_headers_of_ours_when_somebody_else_sends_them_then_they_are_dropped() -> None:
    others = ((b"Content-Type", b"text/plain"), (b"X-Searchcrawl-Allow", b"everyone"))
    ours = encode_permissions(Permissions(("everyone",), ("user:a",), (Level(("b",)),)))
    lower = tuple((name.lower(), value) for name, value in (*ours, encode_value("file", "owner", "x")))

    assert drop_own((*ours, *others, *lower)) == others
    assert drop_own(others) is others
    assert list_permissions((*others, *ours)) == ours
