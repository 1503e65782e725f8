from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from searchcrawl.codes import Code
from searchcrawl.convert.conversion_pool import ConversionPool
from searchcrawl.convert.html_converter import HTML
from searchcrawl.convert.pdf_converter import PDF
from searchcrawl.exceptions import ConversionFailed, NoConverter
from searchcrawl.html.context import ConversionContext
from searchcrawl.items import Link, Page
from searchcrawl.worker_pool import WorkerPool
from tests.site.client import ROOT
from tests.site.pdf import make_pdf

#: Starts a pool, tells the id of its process and waits to be killed.
ORPHAN = """
import os, time
from searchcrawl.worker_pool import WorkerPool

if __name__ == "__main__":
    pool = WorkerPool()
    print(pool.submit(os.getpid).result(), flush=True)
    pool.submit(time.sleep, 300)
    time.sleep(300)
"""


@pytest.fixture
def pool() -> Iterator[WorkerPool]:
    pool = WorkerPool(max_memory_bytes=1 << 30, timeout_seconds=60)
    yield pool
    pool.close()


def refuse(code: int) -> None:
    raise NoConverter("no", code=code)


def code_of(pool: WorkerPool, function: object, *args: object) -> int:
    with pytest.raises(ConversionFailed) as caught:
        pool.submit(function, *args).result(120)  # type: ignore[arg-type]
    return caught.value.code


def test_conversion_pool_when_given_a_pdf_then_gives_its_page() -> None:
    pool = ConversionPool()
    context = ConversionContext(url="http://example.com/a.pdf")

    good = pool.submit(PDF, make_pdf("Hello PDF"), context)
    broken = pool.submit(PDF, b"%PDF-", context)

    assert (good.result(60).title, good.result().text) == ("a.pdf", "Hello PDF")
    with pytest.raises(ConversionFailed, match="PDF") as caught:
        broken.result(60)
    assert caught.value.code == Code.CONVERSION_FAILED
    pool.close()


def test_conversion_pool_when_its_processes_load_what_they_run_then_no_library_of_a_crawl_is_loaded() -> None:
    names = (
        "conversion_pool",
        "html_converter",
        "pdf_converter",
        "document_converter",
        "xml_converter",
        "archive_reader",
    )
    loads = "; ".join(f"import searchcrawl.convert.{name}" for name in names)
    asked = f"import sys; {loads}; print([name for name in ('scrapy', 'sqlalchemy', 'twisted') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, check=True, text=True, timeout=60)

    assert done.stdout == "[]\n"


def test_conversion_pool_when_given_a_long_page_then_gives_all_its_links() -> None:
    pool = ConversionPool()
    divs = "".join(f"<div><a href={number}>x</a>" for number in range(200_000))
    body = f"<meta name=version content=2>{divs}".encode()

    context = ConversionContext(url="http://example.com/", attribute_origins=frozenset({"meta:version"}))

    page = pool.submit(HTML, body, context).result(120)

    assert len(page.links) == 200_000
    assert page.found == (("meta:version", ("2",)),)
    pool.close()


class Unreadable(str):
    """It can be sent, and not be read again."""

    __slots__ = ()

    def __reduce__(self) -> Any:
        return int, ("no number",)


LINK = Link("http://example.com/\nsecond line")


def convert_to_what_nobody_can_read(body: bytes, context: ConversionContext) -> Page:
    return Page(title=Unreadable("title"))


def convert_to_a_link_of_two_lines(body: bytes, context: ConversionContext) -> Page:
    return Page(links=(LINK,))


def test_conversion_pool_when_a_page_is_odd_then_it_comes_as_it_was_or_fails() -> None:
    pool = ConversionPool()
    context = ConversionContext(url="http://example.com/")

    unreadable, two_lines = (
        pool.submit(replace(PDF, convert=convert), b"", context)
        for convert in (convert_to_what_nobody_can_read, convert_to_a_link_of_two_lines)
    )

    assert "no number" in str(unreadable.exception(60))
    assert two_lines.result(60).links == (LINK,)
    pool.close()


def test_pool_when_document_error_is_raised_then_future_fails_with_it(pool: WorkerPool) -> None:
    future = pool.submit(refuse, 908)

    with pytest.raises(NoConverter, match="no") as caught:
        future.result(60)
    assert caught.value.code == 908


def test_pool_when_tasks_pass_limits_or_die_then_fail_alone(pool: WorkerPool) -> None:
    codes = [
        code_of(pool, bytearray, 2 << 30),
        code_of(pool, os._exit, 3),
        code_of(pool, os.kill, 0, "not a signal"),
    ]

    assert codes == [Code.CONVERSION_LIMIT, Code.CONVERSION_LIMIT, Code.CONVERSION_FAILED]
    assert pool.submit(len, "still alive").result(60) == 11


def test_pool_when_closed_then_tasks_under_way_fail(pool: WorkerPool) -> None:
    pool.submit(len, "").result(60)
    future = pool.submit(time.sleep, 300)

    pool.close()

    with pytest.raises(ConversionFailed) as caught:
        future.result(60)
    assert caught.value.code == Code.CONVERSION_LIMIT


def test_pool_when_never_used_then_close_does_nothing() -> None:
    pool = WorkerPool()

    pool.close()

    assert pool.submit(len, "ab").result(60) == 2
    pool.close()


def test_pool_when_its_owner_is_killed_then_leaves_no_process(tmp_path: Path) -> None:
    script = tmp_path / "orphan.py"
    script.write_text(ORPHAN, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, env=environment) as owner:
        assert owner.stdout is not None
        worker = int(owner.stdout.readline())

        owner.send_signal(signal.SIGKILL)
        owner.wait()

    deadline = time.monotonic() + 30
    while Path(f"/proc/{worker}").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(f"/proc/{worker}").exists()


@pytest.mark.parametrize(("ahead_seconds", "limit_seconds", "code"), [(86_400, 30.0, 0), (-86_400, 1.0, 904)])
def test_worker_pool_when_the_clock_is_set_while_a_task_runs_then_its_limit_counts_as_before(
    monkeypatch: pytest.MonkeyPatch, ahead_seconds: int, limit_seconds: float, code: int
) -> None:
    pool = WorkerPool(timeout_seconds=limit_seconds)
    try:
        pool.submit(os.getpid).result(60)
        task, now = pool.submit(time.sleep, 4), time.time
        time.sleep(0.5)
        monkeypatch.setattr(time, "time", lambda: now() + ahead_seconds)
        error = task.exception(60)
    finally:
        monkeypatch.undo()
        pool.close()

    assert (error.code if isinstance(error, ConversionFailed) else 0) == code
