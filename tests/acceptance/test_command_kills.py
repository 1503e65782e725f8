"""Each command that writes is killed at each failpoint that it passes, and once more while the next call recovers (X-S1).

The call after that ends as if undisturbed: table, index and cache are the same, ``verify`` finds no difference, and the
crawl that follows leaves the same, too.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.support_command_kills import OF_COMMANDS, SCENARIOS, CommandKills
from tests.site.client import SiteProcess

pytestmark = pytest.mark.extended

#: Tests that share the kills of a command.
_PIECES = 3


def kills_of(name: str, site: SiteProcess, folder: Path) -> CommandKills:
    kills = CommandKills(SCENARIOS[name], site, folder)
    kills.reference(name)
    return kills


@pytest.mark.matrix
@pytest.mark.parametrize(
    "name", ["apply", "delete", "flush", "forget", "resend", "restore", "undelete", "verify --repair"]
)
def test_command_when_killed_at_a_few_failpoints_and_again_then_ends_as_if_undisturbed(
    site: SiteProcess, tmp_path: Path, name: str
) -> None:
    kills = kills_of(name, site, tmp_path)
    some = kills.choose(twice=True)

    assert kills.rounds(some[:: -max(1, (len(some) - 1) // 2)]) == []


@pytest.mark.soak
@pytest.mark.pairs
@pytest.mark.parametrize("piece", range(_PIECES))
@pytest.mark.parametrize("twice", [False, True], ids=["once", "during recovery"])
@pytest.mark.parametrize("name", SCENARIOS)
def test_command_when_killed_at_each_failpoint_and_again_then_ends_as_if_undisturbed(
    site: SiteProcess, tmp_path: Path, name: str, twice: bool, piece: int
) -> None:
    kills = kills_of(name, site, tmp_path)

    assert kills.rounds(kills.choose(twice=twice, seed=piece)[piece::_PIECES]) == []


@pytest.mark.soak
def test_failpoints_of_commands_when_counted_then_each_is_passed(site: SiteProcess, tmp_path: Path) -> None:
    passed: set[str] = set()
    for name in ("plan", "apply", "forget", "delete", "recrawl", "verify --repair"):
        passed |= kills_of(name, site, tmp_path / name).passed.keys()

    assert passed >= OF_COMMANDS
