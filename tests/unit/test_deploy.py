"""The units of systemd in deploy/ end whole, are limited, and call commands that there are."""

from __future__ import annotations

import configparser
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from searchcrawl.cli import commands
from tests.test_layout import ROOT

DEPLOY = ROOT / "deploy"
SERVICES = sorted(path.name for path in DEPLOY.glob("*.service"))
UNITS = [*SERVICES, *sorted(path.name for path in DEPLOY.glob("*.timer"))]


def read(name: str) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None, strict=True)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string((DEPLOY / name).read_text("utf-8"))
    return parser


@pytest.mark.parametrize("name", SERVICES)
def test_service_when_read_then_it_leaves_no_process_is_limited_and_runs_as_a_user_of_its_own(name: str) -> None:
    service = read(name)["Service"]

    assert service["KillMode"] == "control-group"
    assert re.fullmatch(r"\d+[MG]", service["MemoryMax"])
    assert (service["User"], service["NoNewPrivileges"], service["ProtectSystem"]) == ("searchcrawl", "yes", "strict")
    assert service["ReadWritePaths"] == "/srv/searchcrawl/var"
    called = service["ExecStart"].removeprefix("/srv/searchcrawl/.venv/bin/").split()
    assert called[0] == "scrapyd" or called[1] in commands.list_names()


def test_timer_when_read_then_its_service_is_there() -> None:
    timer = read("searchcrawl-tick.timer")["Timer"]

    assert timer["OnCalendar"] == "minutely"
    assert "searchcrawl-tick.service" in SERVICES


@pytest.mark.parametrize("name", UNITS)
def test_unit_when_systemd_looks_at_it_then_it_knows_every_key(name: str, tmp_path: Path) -> None:
    verify = shutil.which("systemd-analyze")
    if verify is None:
        pytest.skip("systemd-analyze is not there")
    for unit in UNITS:
        text = (DEPLOY / unit).read_text("utf-8")
        text = re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", text, flags=re.MULTILINE)
        (tmp_path / unit).write_text(text.replace("User=searchcrawl", "User=daemon"), "utf-8")

    done = subprocess.run(
        [verify, "verify", str(tmp_path / name)], capture_output=True, text=True, timeout=60, check=False
    )

    about_it = [line for line in done.stderr.splitlines() if name in line]
    assert about_it == []
