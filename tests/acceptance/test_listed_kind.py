"""A kind of source that is listed, as its guide has it (``docs/how-to/add-kind.md``): what is new, differs, leaves and fails."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from tests.acceptance.support_rooms import Extended
from tests.acceptance.test_guides import LINES

Notes = dict[str, dict[str, str] | None]


class Shelves(Extended):
    """A project with a source of the guide's kind, and the file that it reads."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "shelves.json"
        super().__init__(folder, "docs/how-to/add-kind.md", LINES, **{"shelves.json": str(self.file)})
        (folder / "scrapy.cfg").write_text("[settings]\ndefault = searchcrawl.settings\n", "utf-8")
        (folder / "searchcrawl.toml").write_text('contact = "https://example.com/"\n', "utf-8")

    def put(self, notes: Notes) -> None:
        self.file.write_text(json.dumps(notes), "utf-8")

    def edit(self, lines: str) -> None:
        path = self.folder / "sources" / "shelves.toml"
        path.write_text(f"{path.read_text('utf-8')}\n{lines}\n", "utf-8")

    def names(self) -> list[str]:
        """The notes that a search finds, by shelf and name."""
        found = self.command("search", "*", "--source", "shelves", "--rows", "100", "--json")
        return sorted(hit["url"].removeprefix("shelf://notes/") for hit in json.loads(found.stdout)["hits"])


NOTES: Notes = {"fruit": {"apples": "apples are red", "pears": "pears are green"}, "trees": {"oak": "oaks are old"}}
ALL = ["fruit/apples", "fruit/pears", "trees/oak"]


@pytest.fixture
def shelves(tmp_path: Path) -> Shelves:
    found = Shelves(tmp_path)
    found.put(NOTES)
    return found


def test_listed_when_nothing_has_changed_then_nothing_is_read(shelves: Shelves) -> None:
    first, counts = shelves.crawl("shelves")
    explained = shelves.command("explain", "shelf://notes/fruit/pears")
    again, unchanged = shelves.crawl("shelves")
    status = json.loads(shelves.command("status", "shelves", "--json").stdout)

    assert (first, counts["new"], counts["fetched"]) == (0, 3, 3)
    assert shelves.names() == ALL
    assert explained.returncode == 0, explained.stderr
    assert "in shelf://notes/fruit/" in explained.stdout
    assert "once shelf://notes/fruit/ lists another version of it" in explained.stdout
    assert (again, unchanged["discovered"]) == (0, 0)
    assert status["listings"] == {"known": 3, "failed": 0}
    fruit = json.loads(shelves.command("search", "*", "--filter", "shelf:fruit", "--json").stdout)["hits"]
    assert sorted(hit["title"] for hit in fruit) == ["apples", "pears"]
    shelves.file.unlink()
    checked = shelves.command("sources", "check")
    assert "warning: sources/shelves.toml: shelf.file: cannot be read" in checked.stderr


def test_listed_when_things_change_come_and_go_then_these_alone_are_read(shelves: Shelves) -> None:
    shelves.crawl("shelves")
    fruit = {"pears": "pears are yellow", "plums": "plums are blue"}
    shelves.put({**NOTES, "fruit": fruit})
    ended, counts = shelves.crawl("shelves")
    gone = json.loads(shelves.command("urls", "shelves", "--code", "967", "--json").stdout)
    shelves.put({**NOTES, "fruit": {**fruit, "apples": "apples are red"}})
    back, again = shelves.crawl("shelves")

    # What is gone was looked for once more.
    assert (ended, counts["new"], counts["changed"], counts["deleted"], counts["fetched"]) == (0, 1, 1, 1, 3)
    assert gone["url"] == "shelf://notes/fruit/apples"
    assert (back, again["fetched"]) == (0, 1)
    assert shelves.names() == sorted([*ALL, "fruit/plums"])


def test_listed_when_a_container_is_gone_then_so_is_all_in_it(shelves: Shelves) -> None:
    shelves.crawl("shelves")
    shelves.put({"trees": NOTES["trees"]})
    ended, counts = shelves.crawl("shelves")
    quiet, after = shelves.crawl("shelves")

    assert (ended, counts["deleted"]) == (0, 2)
    assert (quiet, after["discovered"]) == (0, 0)
    assert shelves.names() == ["trees/oak"]


def test_listed_when_a_container_cannot_be_read_then_nothing_of_it_leaves_and_the_run_says_so(shelves: Shelves) -> None:
    shelves.crawl("shelves")
    shelves.put({"fruit": None, "trees": {"elm": "elms are tall"}})
    ended, counts = shelves.crawl("shelves")
    status = shelves.command("status", "shelves").stdout
    shelves.put(NOTES)
    after, restored = shelves.crawl("shelves")

    assert (ended, counts["deleted"], counts["new"]) == (3, 1, 1)
    assert "shelf://notes/fruit/ could not be listed" in status
    assert "it is locked" in status
    assert (after, restored["fetched"], restored["deleted"]) == (0, 2, 1)
    assert shelves.names() == ALL


def test_listed_when_nothing_can_be_listed_then_nothing_leaves(shelves: Shelves) -> None:
    shelves.crawl("shelves")
    shelves.file.rename(shelves.folder / "elsewhere.json")
    ended, counts = shelves.crawl("shelves")

    assert (ended, counts["deleted"], counts["discovered"]) == (3, 0, 0)
    assert shelves.names() == ALL


def test_listed_when_most_of_it_is_gone_then_the_limits_hold_it(shelves: Shelves) -> None:
    many = {f"note {number}": f"text number {number}" for number in range(40)}
    shelves.put({"fruit": many})
    shelves.crawl("shelves")
    shelves.put({"fruit": dict(list(many.items())[:20])})
    ended, counts = shelves.crawl("shelves")
    held = len(shelves.names())
    approved = shelves.command("quarantine", "approve", "shelves")

    assert (ended, counts["deleted"], held) == (9, 0, 40)
    assert approved.returncode == 0, approved.stderr
    assert len(shelves.names()) == 20


def test_listed_when_a_container_gets_another_name_then_all_in_it_moves_and_no_limit_holds_it(shelves: Shelves) -> None:
    many = {f"note {number}": f"text number {number}" for number in range(40)}
    shelves.put({"fruit": many})
    shelves.crawl("shelves")
    shelves.put({"trees": many})
    ended, counts = shelves.crawl("shelves")
    explained = shelves.command("explain", "shelf://notes/fruit/note%201").stdout

    assert (ended, counts["deleted"], counts["discovered"]) == (0, 0, 80)
    assert shelves.names() == sorted(f"trees/note%20{number}" for number in range(40))
    assert "967, no longer there" in explained


def test_listed_when_a_rule_leaves_some_out_then_they_leave_and_come_back_with_it(shelves: Shelves) -> None:
    shelves.crawl("shelves")
    file = shelves.folder / "sources" / "shelves.toml"
    before = file.read_text("utf-8")
    shelves.edit('[scope]\nexclude_names = ["p*"]')
    ended, counts = shelves.crawl("shelves")
    without = shelves.names()
    why = shelves.command("explain", "shelf://notes/fruit/pears").stdout
    file.write_text(before, "utf-8")
    again, _ = shelves.crawl("shelves")

    assert (ended, counts["deleted"]) == (0, 1)
    assert without == ["fruit/apples", "trees/oak"]
    assert "p* " in why
    assert again == 0
    assert shelves.names() == ALL


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "failpoint", ["links.committed", "listing.mid", "listing.end", "row.updated:2", "batch.sealed"]
)
def test_listed_when_killed_then_the_next_run_ends_as_an_undisturbed_one(shelves: Shelves, failpoint: str) -> None:
    shelves.crawl("shelves")
    shelves.put({"fruit": {"pears": "pears are yellow", "plums": "plums are blue"}})
    killed = shelves.command("crawl", "shelves", SEARCHCRAWL_FAILPOINT=failpoint)
    ended, _ = shelves.crawl("shelves")

    assert killed.returncode == -signal.SIGKILL
    assert ended == 0
    assert shelves.names() == ["fruit/pears", "fruit/plums"]
    assert shelves.found("shelves", "yellow") == ["shelf://notes/fruit/pears"]
    assert shelves.command("verify", "shelves").returncode == 0


def test_listed_when_killed_while_a_container_that_is_back_is_listed_then_it_may_go_again(shelves: Shelves) -> None:
    config, lister = shelves.folder / "searchcrawl.toml", shelves.folder / "shelves" / "shelf.py"
    config.write_text(f"{config.read_text('utf-8')}\n[cache]\nthreshold_mb = 0.000001\n", "utf-8")
    written = lister.read_text("utf-8")
    shelves.crawl("shelves")
    shelves.put({"trees": NOTES["trees"]})
    shelves.crawl("shelves")
    # What was listed of it is read, and sealed, before its end.
    slow = written.replace(
        "entries=tuple(entries), end=",
        "entries=tuple(entries))\n            time.sleep(60)\n            ListedPart(url=url, end=",
    )
    lister.write_text(f"import time\n{slow}", "utf-8")
    shelves.put({**NOTES, "fruit": {"plums": "plums are blue"}})
    killed = shelves.command("crawl", "shelves", SEARCHCRAWL_FAILPOINT="batch.sealed")
    lister.write_text(written, "utf-8")
    shelves.put({"trees": NOTES["trees"]})
    ended, _ = shelves.crawl("shelves")

    assert (killed.returncode, ended) == (-signal.SIGKILL, 0)
    assert shelves.names() == ["trees/oak"]
