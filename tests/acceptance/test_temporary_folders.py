"""What others leave among the temporary files, by names that a crawl looks for: it waits for nothing, and deletes nothing."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.acceptance.support_project import new_project, run_apart
from tests.acceptance.support_stories import page, source
from tests.left_folders import LEAVE, NOBODY, files, read_tree
from tests.office_files import make_zip
from tests.page_wall import need_browser
from tests.site.client import SiteProcess

HOST: Final = "temporary.acme.test"
_SCRIPT: Final = "<title>App</title><body><script>document.body.append('saf' + 'fron in many words')</script></body>"


@pytest.fixture
def temporary() -> Iterator[Path]:
    """A folder that all users may write to, as the one for temporary files is."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o1777)
    yield folder
    shutil.rmtree(folder)


def fill(folder: Path, kind: str) -> None:
    """Leaves all that others could leave, by names of one kind; as root once more, as another user."""
    kept = folder / "kept"
    files(kept, kept)
    for leave in LEAVE:
        leave(folder / f"searchcrawl-{kind}-{leave.__name__}", kept)
    if os.geteuid() == 0:
        for leave in (*LEAVE, files):
            foreign = folder / f"searchcrawl-{kind}-foreign-{leave.__name__}"
            leave(foreign, kept)
            for path in (foreign, *foreign.rglob("*")):
                os.chown(path, NOBODY, NOBODY, follow_symlinks=False)


@pytest.mark.parametrize(("kind", "word"), [("archives", "tarragon"), ("browser", "saffron")])
def test_crawl_when_others_left_folders_by_its_names_then_waits_for_nothing_and_leaves_them(
    site: SiteProcess, temporary: Path, tmp_path: Path, kind: str, word: str
) -> None:
    site.set_page(HOST, "/words.zip", make_zip({"a.txt": b"tarragon"}), content_type="application/zip")
    tables: dict[str, Any] = source(site, HOST)
    if kind == "browser":
        need_browser()
        tables["render"] = {"mode": "always"}
    site.set_page(HOST, "/", page("start", "/words.zip") if kind == "archives" else _SCRIPT)
    project = new_project(tmp_path, site, **tables)
    fill(temporary, kind)
    before = read_tree(temporary)

    command = (sys.executable, "-m", "searchcrawl", "crawl", project.name, "--json")
    ended = run_apart(project.folder, *command, TMPDIR=str(temporary))

    assert (ended.returncode, ended.stderr) == (0, "")
    assert [each["code"] for each in json.loads(ended.stdout)["warnings"] if each["code"] != "rendered_empty"] == []
    assert len(project.found(word)) == 1
    assert read_tree(temporary) == before
