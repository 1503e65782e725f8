"""The built wheel in an environment that has nothing else: all that a user needs is in it, or in what it depends on.

What it depends on comes from the lock file, once: the environment is kept in ``var``, and gets the wheel anew.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Final

import pytest

from tests.acceptance.support_stories import page, pages, source
from tests.site.client import SiteProcess, write_project
from tests.test_layout import ROOT

pytestmark = pytest.mark.extended

HOST: Final = "wheel.acme.test"
LOCK: Final = ROOT / "requirements" / "run.txt"
OURS: Final = f"{sys.version_info.major}.{sys.version_info.minor}"
VERSIONS: Final = tuple(
    pytest.param(version, marks=() if version == OURS else pytest.mark.soak) for version in ("3.11", "3.12", "3.13")
)
CONTAINERFILE: Final = ROOT / "deploy" / "Containerfile"


def find_python(version: str) -> str:
    """An interpreter of this version; skips where there is none."""
    if version == OURS:
        return sys.executable
    on_path = shutil.which(f"python{version}")
    # What is on the path may be a shim of a version manager, which has interpreters side by side.
    managed = Path(sys.base_prefix).parent.glob(f"{version}.*/bin/python")
    for found in map(str, filter(None, (on_path, *managed))):
        if subprocess.run([found, "-c", "import ensurepip"], capture_output=True, check=False).returncode == 0:
            return found
    pytest.skip(f"there is no Python {version}")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    [found] = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module", params=VERSIONS)
def programs(request: pytest.FixtureRequest, wheel: Path) -> Path:
    """The folder of programs of an environment with the wheel and what it depends on."""
    python = find_python(request.param)
    digest = hashlib.sha256(LOCK.read_bytes() + python.encode()).hexdigest()[:16]
    folder = ROOT / "var" / "wheel" / f"{request.param}-{digest}"
    found = folder / "bin"
    if not (folder / "complete").exists():
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([python, "-m", "venv", folder], check=True)
        install(found, "--require-hashes", "-r", str(LOCK))
        (folder / "complete").touch()
    install(found, "--no-deps", "--force-reinstall", str(wheel))
    return found


def install(programs: Path, *what: str) -> None:
    command = [str(programs / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *what]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode and re.search("No matching distribution|Connection|Max retries", done.stderr):
        message = f"no package registry can be reached: {done.stderr[-500:]}"
        pytest.fail(message) if os.environ.get("CI") == "true" else pytest.skip(message)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def site(site: SiteProcess) -> SiteProcess:
    pages(site, HOST, kettle=page("kettle"))
    return site


def call(programs: Path, folder: Path, *arguments: str, within: tuple[str, ...] = ()) -> str:
    """What a command of the wheel prints; the checkout is out of reach."""
    environment = {"PATH": f"{programs}:/usr/bin:/bin", "HOME": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    ended = subprocess.run(
        [*within, str(programs / "searchcrawl"), *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, (arguments, ended.stderr)
    return ended.stdout


def test_wheel_when_it_is_all_there_is_then_a_project_is_made_crawled_searched_and_verified(
    programs: Path, site: SiteProcess, tmp_path: Path
) -> None:
    call(programs, tmp_path, "init", "made")
    checked = call(programs, tmp_path / "made", "sources", "check")
    call(programs, tmp_path, "solr", "configset", "conf")
    project = write_project(tmp_path / "p", site, **source(site, HOST))
    # The store gets its tables, the index its schema.
    crawled = json.loads(call(programs, project, "crawl", "demo", "--json"))
    found = json.loads(call(programs, project, "search", "kettle", "--json"))
    where = subprocess.run(
        [programs / "python", "-c", "import searchcrawl; print(searchcrawl.__file__, searchcrawl.open_project().root)"],
        cwd=project,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()

    assert checked.startswith("1 source, no errors\n")
    files = {path.relative_to(tmp_path / "conf").as_posix(): path for path in (tmp_path / "conf").rglob("*.*")}
    assert {name: path.read_bytes() for name, path in files.items()} == {
        name: (ROOT / "solr" / "configset" / name).read_bytes()
        for name in ("schema.xml", "solrconfig.xml", "lang/folding.txt", "lang/stopwords_en.txt")
    }
    assert (crawled["documents"], found["total"]) == (2, 2)
    assert json.loads(call(programs, project, "verify", "--json"))["ok"]
    assert "_python_argcomplete" in call(programs, project, "completion", "bash")
    assert Path(where[0]).is_relative_to(programs.parent)
    assert where[1] == str(project)


def test_wheel_when_the_root_file_system_is_read_only_then_it_crawls_all_the_same(
    programs: Path, site: SiteProcess, tmp_path: Path
) -> None:
    read_only = (
        "unshare", "--mount", "sh", "-c",
        'mount --make-rprivate / && mount --bind "$0" "$0" && mount -o remount,bind,ro / && exec "$@"', str(tmp_path),
    )  # fmt: skip
    if subprocess.run([*read_only, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted read-only here")
    project = write_project(tmp_path / "p", site, **source(site, HOST))

    refused = subprocess.run([*read_only, "touch", programs / "file"], capture_output=True, text=True, check=False)
    crawled = json.loads(call(programs, project, "crawl", "demo", "--json", within=read_only))
    status = json.loads(call(programs, project, "status", "--json", within=read_only))

    assert "Read-only file system" in refused.stderr
    assert crawled["documents"] == 2
    assert [each["source"] for each in status["sources"]] == ["demo"]


def test_wheel_when_it_is_opened_then_it_has_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        names = opened.namelist()
        metadata = opened.read(next(name for name in names if name.endswith("METADATA"))).decode()

    assert {name.split("/")[0].partition("-")[0] for name in names} == {"searchcrawl"}
    assert {"searchcrawl/py.typed", "searchcrawl/__init__.pyi"} <= set(names)
    assert {"searchcrawl/index/solr/configset_files/schema.xml"} <= set(names)
    assert {"parquet", "postgresql", "playwright", "scrapyd"} <= set(
        re.findall(r"^Provides-Extra: (\S+)$", metadata, re.MULTILINE)
    )


def test_container_file_when_it_is_linted_then_nothing_is_wrong() -> None:
    program = Path(sys.executable).with_name("hadolint")
    if not program.exists():
        pytest.skip("there is no hadolint for this platform")

    linted = subprocess.run([program, CONTAINERFILE], capture_output=True, text=True, check=False)

    assert (linted.returncode, linted.stdout) == (0, "")


def test_container_file_when_it_is_read_then_it_runs_as_nobody_special_and_says_how_it_is() -> None:
    text = CONTAINERFILE.read_text("utf-8")
    last = text.rpartition("\nFROM ")[2]

    assert re.search(r"^USER [1-9]\d+:[1-9]\d+$", last, re.MULTILINE)
    assert re.search(r"^HEALTHCHECK .*CMD \[", last, re.MULTILINE)
    assert 'ENTRYPOINT ["searchcrawl"]' in last
    # The lock decides about versions, and their hashes are checked.
    assert "--require-hashes -r /build/server.txt" in text
