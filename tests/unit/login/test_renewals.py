"""How often a lost login is done again: as long as that opens pages (C10)."""

from __future__ import annotations

import pytest

from searchcrawl.login.session import Renewals


def renewed(made: Renewals, pages: str) -> int:
    """How many of ``pages`` have the login renewed, each by a letter.

    ``o``: opens; ``a``: opens, and was closed before the login; ``c``: is closed, and is asked for again if that helps.
    """
    count = 0
    for page in pages:
        if page == "c":
            made.note_closed()
            if made.may_begin():
                made.begin()
                count += 1
        else:
            made.note_opened(was_closed=page == "a")
    return count


@pytest.mark.parametrize(
    ("pages", "times"),
    [
        # The first is free, and none comes after one that opened nothing.
        ("c", 1),
        ("ccccccccccccccc", 1),
        ("oooocc", 1),
        # Sessions that last for a page or three
        ("oca" * 50, 50),
        ("oooca" * 50, 50),
        # A page that is closed to this user, and then real ends
        ("ooccooooca", 2),
        ("occoccocaocca", 4),
    ],
)
def test_renewal_when_the_last_one_opened_pages_then_is_done(pages: str, times: int) -> None:
    assert renewed(Renewals(), pages) == times


def test_renewals_when_many_pages_are_closed_to_this_user_then_are_few() -> None:
    assert renewed(Renewals(), "oc" * 1000) == 3
    assert renewed(Renewals(), "o" + "c" * 1000) == 1
    assert renewed(Renewals(), ("o" + "c" * 100) * 10) <= 8


def test_renewal_when_the_session_ends_after_many_closed_pages_then_is_done_after_a_few() -> None:
    made = Renewals()
    renewed(made, "oc" * 1000)

    assert [renewed(made, "c") for _ in range(4)].count(1) == 1
    made.note_opened(was_closed=True)
    assert renewed(made, "c") == 1


def test_closed_pages_when_the_last_login_has_not_opened_any_yet_then_are_undecided_but_not_for_ever() -> None:
    made = Renewals()
    before = made.is_undecided
    made.begin()
    tries = []
    for _ in range(20):
        made.note_closed()
        tries.append(made.is_undecided)
    opened = Renewals()
    opened.begin()
    opened.note_opened(was_closed=False)

    assert (before, tries[0], tries[-1], opened.is_undecided) == (False, True, False, False)
