"""Schedules are read and checked, though a later release runs them (H1)."""

from __future__ import annotations

from pathlib import Path

import pytest

from searchcrawl.sources.loading import load_project
from tests.source_files import CONTACT, find_error_of_project, write_project, write_source


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("intranet", "wiki"):
        write_source(tmp_path, name=name)
    return tmp_path


def test_load_project_when_schedules_are_good_then_they_are_there(root: Path) -> None:
    write_project(
        root,
        CONTACT + '[schedules.nightly]\nsources = ["intranet"]\ncron = "30 2 * * mon-fri"\nmode = "accept"\n'
        'window = {days = "mon-fri", from = "01:00", to = "05:30"}\n'
        '[schedules.often]\nsources = ["wiki"]\nevery_minutes = 5\n',
    )

    schedules = load_project(root).schedules

    assert schedules["nightly"].cron == "30 2 * * mon-fri"
    assert schedules["nightly"].window is not None
    assert schedules["nightly"].window.from_ == "01:00"
    assert schedules["often"].every_minutes == 5


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("every_minutes = 5", "schedules.a.sources: is required"),
        ("sources = []\nevery_minutes = 5", "schedules.a.sources: must not be empty (got [])"),
        ('sources = ["wiki", "wiki"]\nevery_minutes = 5', "schedules.a.sources: names a value twice (got "),
        ('sources = ["wkii"]\nevery_minutes = 5', 'schedules.a.sources: no such source (did you mean wiki?) (got "wkii")'),
        ('sources = ["wiki"]', "schedules.a.cron: is required, or every_minutes"),
        ('sources = ["wiki"]\ncron = "0 1 * * *"\nevery_minutes = 5', "schedules.a.cron: not together with every_minutes "),
        ('sources = ["wiki"]\nevery_minutes = 0', "schedules.a.every_minutes: must be more than 0 (got 0)"),
        ('sources = ["wiki"]\ncron = "0 25 * * *"', 'schedules.a.cron: not a cron expression, as "30 2 * * mon-fri" (got '),
        ('sources = ["wiki"]\ncron = "0 0 31 2 *"', "schedules.a.cron: "),
        ('sources = ["wiki"]\ncron = "daily"', "schedules.a.cron: not a cron expression"),
        ('sources = ["wiki"]\nevery_minutes = 5\nmode = "x"', 'schedules.a.mode: must be "accept", "examine" or "index_only" (got "x")'),
        ('sources = ["wiki"]\nevery_minutes = 5\nwindow = {from = "8:00", to = "18:00"}', "schedules.a.window.from: not a "),
        ('sources = ["wiki"]\nevery_minutes = 5\nwindow = {from = "08:00"}', "schedules.a.window.to: is required"),
        ('sources = ["wiki"]\nevery_minutes = 5\nwindow = {from = "08:00", to = "09:00", days = "mo"}', "schedules.a.window.days: "),
        ('sources = ["wiki"]\ncron = "0 0 1 * * *"', "schedules.a.cron: not a cron expression"),
        ('sources = ["wiki"]\nevery_minutes = 5\ntimezone = "Mars"', 'schedules.a.timezone: not a time zone of IANA, as "Europe/Berlin" (got "Mars")'),
        ('sources = ["wiki"]\nevery_minutes = 5\nmisfire = "x"', 'schedules.a.misfire: must be "run_once" or "skip" (got "x")'),
        ('sources = ["wiki"]\nevery_minutes = 5\nenabled = 1', "schedules.a.enabled: "),
        ('sources = ["wiki"]\nevery_minutes = 5\nscrapyd = ["127.0.0.1:6800"]', "schedules.a.scrapyd: not an http or https URL"),
        ('sources = ["wiki"]\nevery_minutes = 5\nscrapyd = ["http://u:p4ssw0rd@h/x"]', "schedules.a.scrapyd: must be the address of a scrapyd, as http://USER:PASSWORD@127.0.0.1:6800 (got "),
        ('sources = ["wiki"]\nevery_minute = 5', "schedules.a.every_minute: unknown key (did you mean every_minutes?)"),
    ],
)  # fmt: skip
def test_load_project_when_a_schedule_is_wrong_then_the_first_line_says_so(root: Path, text: str, line: str) -> None:
    write_project(root, f"{CONTACT}[schedules.a]\n{text}\n")

    assert str(find_error_of_project(root)).startswith(f"searchcrawl.toml: {line}")


def test_load_project_when_a_source_is_in_two_schedules_then_refused(root: Path) -> None:
    write_project(
        root,
        CONTACT + '[schedules.a]\nsources = ["wiki"]\nevery_minutes = 5\n'
        '[schedules.b]\nsources = ["intranet", "wiki"]\nevery_minutes = 9\n',
    )

    assert str(find_error_of_project(root)).startswith(
        "searchcrawl.toml: schedules.b: wiki is in schedules.a already: a source has one schedule"
    )
