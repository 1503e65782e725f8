"""A log that cannot be written is told of once, and never again (X-S5)."""

from __future__ import annotations

import logging
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from searchcrawl.exceptions import LogError
from searchcrawl.extensions.run_log import _FORMAT, LogFile, _WithId
from searchcrawl.messages import list_messages
from tests.site.client import ROOT


def record(message: str, *args: object) -> logging.LogRecord:
    return logging.LogRecord("searchcrawl", logging.INFO, __file__, 1, message, args, None)


def test_log_when_its_disk_is_full_then_told_once_without_a_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "demo.log"
    path.symlink_to("/dev/full")
    log, told = LogFile(path, max_bytes=100), []
    log.on_failure(told.append)

    for number in range(5):
        log.handle(record("line %d", number))
    log.close()

    assert [str(error) for error in told] == [f"log {path}: No space left on device"]
    assert capsys.readouterr().err == ""


def test_log_when_it_failed_before_anybody_listened_then_told_at_once(tmp_path: Path) -> None:
    path, told = tmp_path / "demo.log", []
    path.symlink_to("/dev/full")
    log = LogFile(path)

    log.handle(record("line"))
    log.on_failure(told.append)
    log.close()

    assert len(told) == 1


def test_log_when_a_new_file_cannot_be_begun_then_told(tmp_path: Path) -> None:
    folder, told = tmp_path / "log", []
    log = LogFile(folder / "demo.log", max_bytes=10, backups=1)
    log.on_failure(told.append)

    log.handle(record("a line"))
    shutil.rmtree(folder)
    folder.touch()
    log.handle(record("another line"))
    log.close()

    assert [str(error) for error in told] == [f"log {folder / 'demo.log'}: Not a directory"]


@pytest.mark.parametrize(
    "lose", [Path.unlink, lambda path: path.rename(f"{path}.old"), lambda path: shutil.rmtree(path.parent)]
)
def test_log_when_somebody_takes_its_file_away_then_it_is_begun_anew(
    tmp_path: Path, lose: Callable[[Path], object]
) -> None:
    path = tmp_path / "log" / "demo.log"
    log, told = LogFile(path, max_bytes=1000, backups=1), []
    log.on_failure(told.append)

    log.handle(record("first"))
    lose(path)
    log.handle(record("second"))
    log.handle(record("third"))
    log.close()

    assert (path.read_text(), told) == ("second\nthird\n", [])


def test_run_log_when_there_are_many_errors_of_one_kind_then_standard_error_has_some_and_the_log_all(
    tmp_path: Path,
) -> None:
    (tmp_path / "searchcrawl.toml").write_text('contact = "crawler@example.org"\n')
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources" / "demo.toml").write_text('start.urls = ["https://a.test/"]\nscope.allow_all = true\n')
    code = f"""
import logging
from pathlib import Path
from searchcrawl.extensions.run_log import install_run_log
from searchcrawl.sources.loading import load_project, load_source
project = load_project(Path({str(tmp_path)!r}))
install_run_log(project, load_source(project, "demo"))
for number in range(500):
    logging.getLogger("searchcrawl").error("page %d is gone", number)
logging.getLogger("searchcrawl").error("something else")
"""

    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)

    shown = [f"ERROR: page {number} is gone" for number in range(10)]
    assert ended.stderr.splitlines() == [
        *shown,
        "more errors of this kind are in the log alone",
        "ERROR: something else",
    ]
    assert (tmp_path / "var" / "log" / "demo.log").read_text().count("is gone") == 500


def test_log_when_it_cannot_be_opened_then_log_error(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("no folder", "utf-8")

    with pytest.raises(LogError, match=r"log .*/log/demo\.log: "):
        LogFile(tmp_path / "log" / "demo.log")


def test_log_when_a_record_is_wrong_then_that_is_no_failure_of_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, told = LogFile(tmp_path / "demo.log"), []
    log.on_failure(told.append)

    log.handle(record("line %d", "no number"))
    log.handle(record("line"))
    log.close()

    assert told == []
    assert "Logging error" in capsys.readouterr().err
    assert (tmp_path / "demo.log").read_text("utf-8") == "line\n"


def test_log_when_a_message_is_ours_then_its_line_has_the_id_of_it_and_others_have_none(tmp_path: Path) -> None:
    listed = {(message.module, message.text): message.id for message in list_messages()}
    wanted = listed["extensions.run_end_extension", "most pages failed the login"]
    formatter = _WithId(_FORMAT)

    def line(name: str, text: str, path: str = "x.py") -> str:
        return formatter.format(logging.LogRecord(name, logging.INFO, path, 1, text, (), None))

    assert f"searchcrawl.extensions.run_end_extension [{wanted}]: most pages failed the login" in line(
        "searchcrawl.extensions.run_end_extension", "most pages failed the login"
    )
    # A spider logs under its own name.
    assert f"demo [{listed['spiders.base_spider', 'unexpected failure of %s']}]: " in line(
        "demo", "unexpected failure of %s", "/a/searchcrawl/spiders/base_spider.py"
    )
    assert " demo: unexpected failure of %s" in line("demo", "unexpected failure of %s", "/mine.py")
    assert " scrapy.core.engine: Spider opened" in line("scrapy.core.engine", "Spider opened")
    assert " mine: %s" in line("mine", "%s")
