"""The text of the progress line, and where it is drawn."""

from __future__ import annotations

import io
import time
from types import SimpleNamespace

import pytest

from searchcrawl.exceptions import IndexUnavailable
from searchcrawl.extensions.progress_extension import Meter, ProgressExtension, describe_wait, shorten_line


def counts(fetched: int, failures: int = 0) -> dict[str, int]:
    return {"fetched": fetched, "fetch_failures": failures, "conversion_failures": 0}


@pytest.mark.parametrize(
    ("lines", "last"),
    [
        ([(counts(5), 7, 100.0)], "5 pages, 0.0 pages/s, 7 in the queue, 0 errors"),
        ([(counts(0), 9, 100.0), (counts(8, failures=2), 3, 104.0)], "10 pages, 2.5 pages/s, 3 in the queue, 2 errors"),
        (
            [(counts(0), 0, 100.0), (counts(1000), 0, 101.0), (counts(1000), 0, 110.0), (counts(1010), 0, 112.0)],
            "1010 pages, 5.0 pages/s, 0 in the queue, 0 errors",
        ),
        ([(counts(0), 0, 100.0), (counts(120), 0, 160.0)], "120 pages, 2.0 pages/s, 0 in the queue, 0 errors"),
        (
            [({**counts(5), "to_fetch": 1}, 0, 100.0)],
            "5 pages, 0.0 pages/s, 0 in the queue, 1 under way or to be tried again, 0 errors",
        ),
    ],
    ids=["no rate is known", "the rate is theirs", "old pages count no more", "since the one before", "tried again"],
)
def test_line_when_it_is_made_then_it_has_the_rate_of_the_last_lines_and_what_waits(
    lines: list[tuple[dict[str, int], int, float]], last: str
) -> None:
    meter = Meter()

    assert [meter.line(*each) for each in lines][-1] == last


def test_line_when_it_is_too_wide_then_whole_parts_are_left_out() -> None:
    assert shorten_line("a name: 1 pages, 2.0 pages/s, 3 errors", 30) == "a name: 1 pages, 2.0 pages/s"
    assert shorten_line("a name: 1 pages", 4) == "a name: 1 pages"


@pytest.mark.parametrize(
    ("under_way", "outage", "text"),
    [
        (1, None, "waits for 1 request under way"),
        (3, IndexUnavailable("refused"), "waits for 3 requests under way"),
        (0, IndexUnavailable("refused"), "waits for the index, which cannot be reached (refused)"),
        (0, None, "sends what was fetched to the index"),
    ],
)
def test_stop_when_something_is_waited_for_then_it_is_named(
    under_way: int, outage: Exception | None, text: str
) -> None:
    assert describe_wait(under_way, outage) == text


def test_progress_when_there_is_no_terminal_then_the_log_has_a_line_each_interval(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr", io.StringIO())
    run = SimpleNamespace(
        source=SimpleNamespace(name="demo"), database=SimpleNamespace(outage_retry=SimpleNamespace(away=True))
    )
    extension = ProgressExtension(run, log_seconds=0.01)  # type: ignore[arg-type]  # as much of a run as it asks
    caplog.set_level("INFO")

    extension._thread.start()
    deadline = time.monotonic() + 10
    while len(caplog.messages) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    extension.stop("finished")

    assert set(caplog.messages) == {"demo: waiting for the store"}
    assert not extension._thread.is_alive()
