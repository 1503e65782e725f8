"""All errors of a source file are said at once: those of single values, and those that only sound values show."""

from __future__ import annotations

from pathlib import Path

import pytest

from searchcrawl.exceptions import ConfigurationError
from searchcrawl.sources.checking import is_about, leave_out_broken
from tests.unit.sources.test_loading import GOOD, lines_of, root

__all__ = ["root"]

NO_MODULE = "cannot be imported: ModuleNotFoundError: No module named 'nowhere'"
OTHERS_SHOW = (
    f'spider = "nowhere:Spider"\n{GOOD}exclude_urls = ["re:("]\n[fetch]\ndelay_seconds = -1\n'
    '[settings]\nLOG_LEVEL = "INFO"\nEXTENSIONS = {"nowhere.Bell" = 1}\n'
)
THEY_FOLLOW = (
    '[start]\nurls = ["no URL"]\n[scope]\ninclude_hosts = [1]\n[attributes]\n"meta:x" = "a b"\ndrop = ["y"]\n'
    '[login]\ntype = "none of these"\npassword = "x"\n'
)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (
            OTHERS_SHOW,
            [
                'settings.LOG_LEVEL: not for a source: each source has one log: use logs in searchcrawl.toml (got "INFO")',
                "fetch.delay_seconds: must not be negative (got -1)",
                f'settings.EXTENSIONS: {NO_MODULE} (got "nowhere.Bell")',
                f'spider: {NO_MODULE} (got "nowhere:Spider")',
                "scope.exclude_urls: not an RE2 expression: missing ): ( (got 're:(')",
            ],
        ),
        # What follows from a broken value is not said beside it.
        (
            THEY_FOLLOW,
            [
                'start.urls: not an http or https URL (got "no URL")',
                "scope.include_hosts: must be a string (got 1)",
                'login.type: must be "basic", "digest", "form", "cookies" or "browser" (got "none of these")',
                'attributes."meta:x": must be at most 64 letters, digits and _.- (ASCII), a letter first (got "a b")',
            ],
        ),
        (
            'colour = 1\n[start]\nurls = "x"\n',
            [
                "colour: unknown key",
                'start.urls: must be a list (got "x")',
                "scope.include_hosts: nothing is included: name hosts or URLs, or set scope.allow_all = true",
            ],
        ),
    ],
)
def test_load_sources_when_values_are_wrong_then_the_others_are_looked_at_as_well(
    root: Path, text: str, lines: list[str]
) -> None:
    assert lines_of(root, text) == [f"sources/demo.toml: {line}" for line in lines]


def test_leave_out_broken_when_a_key_has_several_errors_then_it_alone_is_left_out() -> None:
    tables = {"settings": {"A": 1, "B": 2}, "scope": {"depth": -1}, "login": {"type": "form"}, "spider": "x"}
    keys = ("settings.A", "settings.A.inner", "scope.depth", "scope.missing", "spider")

    sound, broken = leave_out_broken(tables, [ConfigurationError("f", key, "wrong") for key in keys])

    assert sound == {"settings": {"B": 2}, "login": {"type": "form"}}
    asked = ("settings.A", "settings.B", "scope.other", "login.type", "spider")
    assert [is_about(key, broken) for key in asked] == [True, False, True, False, True]
