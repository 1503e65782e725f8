"""What is stored is its owner's, unless ``umask`` lets others read it."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_stories import page, pages, source
from tests.site.client import SiteProcess, configure

HOST = "modes.acme.test"
WIDE = {"folders": 0o755, "files": 0o644}
OWN = {"folders": 0o700, "files": 0o600}
GROUP = {"folders": 0o750, "files": 0o640}


@pytest.fixture
def project(clean_site: SiteProcess, tmp_path: Path) -> CrawlProject:
    pages(clean_site, HOST, one=page("text of one"))
    return new_project(tmp_path, clean_site, **source(clean_site, HOST))


def modes(folder: Path) -> dict[str, set[int]]:
    """Those of all folders, and those of all files."""
    found: dict[str, set[int]] = {"folders": set(), "files": set()}
    for path in folder.rglob("*"):
        found["folders" if path.is_dir() else "files"].add(stat.S_IMODE(path.stat().st_mode))
    return found


def only(expected: dict[str, int]) -> dict[str, set[int]]:
    return {kind: {mode} for kind, mode in expected.items()}


def widen(folder: Path) -> None:
    for path in folder.rglob("*"):
        path.chmod(WIDE["folders" if path.is_dir() else "files"])


@pytest.mark.few(2)
@pytest.mark.parametrize(("umask", "expected"), [(None, OWN), ("077", OWN), ("027", GROUP), ("0022", WIDE)])
def test_files_when_a_crawl_stores_them_then_they_have_the_modes_that_umask_leaves(
    project: CrawlProject, umask: str | None, expected: dict[str, int]
) -> None:
    configure(project.folder, **({"umask": umask} if umask else {}))
    before = modes(project.folder / "sources")

    code = project.crawl().exit_code
    project.command("search", "text")

    stored = project.folder / "var"
    assert (code, modes(stored)) == (0, only(expected))
    assert {path.name for path in stored.iterdir()} >= {"cache", "index", "log", "searchcrawl.db"}
    # What an operator writes is the operator's.
    assert modes(project.folder / "sources") == before


@pytest.mark.few(2)
@pytest.mark.parametrize("command", [("status",), ("crawl", "demo")], ids=" ".join)
@pytest.mark.parametrize("umask", ["077", "027"])
def test_files_when_they_were_stored_with_others_then_are_brought_to_what_is_asked_for(
    project: CrawlProject, umask: str, command: tuple[str, ...]
) -> None:
    project.crawl()
    widen(project.folder / "var")
    configure(project.folder, umask=umask)

    project.command(*command)

    assert modes(project.folder / "var") == only(GROUP if umask == "027" else OWN)


def test_files_when_they_are_not_in_the_folder_of_the_project_then_only_new_ones_follow(
    project: CrawlProject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    other = elsewhere / "of others"
    other.write_text("", "utf-8")
    # Also where a link in the project leads there.
    (project.folder / "var").mkdir()
    (project.folder / "var" / "linked").symlink_to(elsewhere)
    other.chmod(0o644)
    elsewhere.chmod(0o755)
    configure(project.folder, logs={"dir": str(elsewhere)}, cache={"dir": "var/linked"})

    project.crawl()

    assert [stat.S_IMODE(path.stat().st_mode) for path in (elsewhere, other)] == [0o755, 0o644]
    assert stat.S_IMODE((elsewhere / "demo.log").stat().st_mode) == 0o600


@pytest.mark.parametrize("umask", ['"777"', '"099"', '"27"', '"00000"', "63", '"rwx"', '"100"'])
def test_umask_when_it_is_wrong_then_exit_4_and_file_key_and_value_are_named(project: CrawlProject, umask: str) -> None:
    file = project.folder / "searchcrawl.toml"
    file.write_text(f"umask = {umask}\n" + file.read_text("utf-8"), "utf-8")
    shown = umask.strip('"')

    ended = project.command("status")

    assert ended.returncode == 4
    assert "searchcrawl.toml: umask: " in ended.stderr
    assert f"(got {shown})" in ended.stderr or f'(got "{shown}")' in ended.stderr
