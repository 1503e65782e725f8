"""Files of any size, and the memory of a command with all processes that it starts."""

from __future__ import annotations

import base64
import random
import threading
import zipfile
from pathlib import Path
from typing import Final

from tests.crawl_forks import PAUSE, Forks
from tests.site.pdf import make_pdf
from tests.workers import list_workers

MB: Final = 1 << 20
#: So much more a process may take for a body of 200 MB than for one of 1 MB.
MOST_MORE_MEGABYTES: Final = 40
_NOISE: Final = random.Random(8).randbytes(MB)


def large_pdf(words: str, megabytes: int) -> bytes:
    """A PDF file with a page of words, and so much more that no page shows."""
    return make_pdf(words, attached=_NOISE * megabytes)


def write_large_zip(path: Path, words: str, megabytes: int) -> None:
    """An archive of a text, and so much that is none."""
    with zipfile.ZipFile(path, "w") as archive:
        with archive.open(zipfile.ZipInfo("noise.bin"), "w") as member:
            for _ in range(megabytes):
                member.write(_NOISE)
        archive.writestr("inner.txt", words)


def write_large_text(path: Path, words: str, megabytes: int) -> None:
    """A text of lines."""
    line = words.encode() + b"\n"
    with path.open("wb") as file:
        for _ in range(megabytes):
            file.write(line * (MB // len(line) + 1))


def large_page(words: str, megabytes: int, *links: str) -> bytes:
    """A page that has a picture in it."""
    head = f"<!doctype html><title>Large</title><p>{words} {''.join(f'<a href={link!r}>x</a>' for link in links)}"
    return (
        head.encode()
        + b'<img src="data:image/png;base64,'
        + base64.b64encode(_NOISE)[:MB] * megabytes
        + b'"><p>the end of it'
    )


def run_measured(forks: Forks, folder: Path, *arguments: str, code: int = 0, **variables: str) -> dict[str, int]:
    """The most megabytes that a command had itself (``own``), and that one of its worker processes had (``worker``)."""
    running = forks.start(folder, *arguments, **{PAUSE: "0.01", **variables})
    peaks = {"own": 0, "worker": 0}
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.02):
            peaks["own"] = max(peaks["own"], _read_peak(running.pid))
            # Not one that was forked and is not yet a program of its own.
            for child in list_workers(running.pid):
                peaks["worker"] = max(peaks["worker"], _read_peak(child))

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        assert running.wait() == code, running.output.read_text("utf-8")
    finally:
        over.set()
        watching.join()
    return peaks


def _read_peak(process: int) -> int:
    try:
        lines = Path(f"/proc/{process}/status").read_text("ascii", "replace").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM:")), 0)
