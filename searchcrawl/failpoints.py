"""Named places where a test may end, fail or delay the process.

``SEARCHCRAWL_FAILPOINT=name[:n][:kill|stop|raise|enospc|sleep]`` acts when ``name`` is reached the n-th time
(default 1), by SIGKILL unless another way is named (``stop``: SIGSTOP); the name ``any`` stands for all of them, counted together.
``SEARCHCRAWL_FAILPOINT_COUNT=PATH`` writes how often each name was reached, as JSON, when the process ends by itself.
Without both variables it costs one comparison.
"""

from __future__ import annotations

import atexit
import errno
import json
import os
import signal
import threading
import time
from pathlib import Path
from typing import Final

#: Any of the names below.
ANY: Final = "any"
#: The steps of ``plan`` and ``apply``, which no crawl takes.
OF_PLANS = ("plan.written", "apply.begun", "apply.processed")
#: The steps of ``verify --repair`` alone.
OF_REPAIRS = ("repair.adopted", "repair.sealed", "repair.removed")
#: The steps of ``tick``, ``run``, ``stop`` and ``submit``, which no crawl takes.
OF_TICKS = ("job.chosen", "job.launched", "job.stopped", "url.submitted")
#: The steps of looking up a host name, which a crawl takes where the source file does not name the address.
OF_NAMES = ("name.claimed", "name.told")
#: The steps of feeds, which only sources with ``[feeds]`` take.
OF_FEEDS = ("feed.written", "feed.noted", "feed.named")
#: The steps of receivers besides the index, which only projects with ``[receivers.NAME]`` take.
OF_RECEIVERS = ("receiver.sent", "receiver.moved", "receiver.swept")
#: The steps of listing, which only kinds that are listed take.
OF_LISTINGS = ("listing.mid", "listing.end")
#: The steps of bodies that do not fit into memory, which most crawls do not take.
OF_LARGE_BODIES = ("body.spooled",)
#: Every step that makes something durable; a test checks that each is reached.
NAMES = (
    "lease.taken",
    "lease.renew",
    "fetch.sent",
    "fetch.headers",
    "segment.append",
    "segment.append.mid",
    "segment.synced",
    "row.updated",
    "links.mid",
    "links.committed",
    "batch.sealed",
    "batch.post.begin",
    "batch.post.mid",
    "index.acked",
    "batch.marked",
    "commit.sent",
    "segment.copied",
    "segment.moved",
    "cache.freed",
    "delete.selected",
    "delete.sent",
    "delete.marked",
    "shutdown.begin",
    "shutdown.drain",
    "tables.mid",
    "forget.listed",
    "forget.emptied",
    "forget.done",
    "source.sealed",
    "source.uncached",
    "source.rows",
    "recrawl.marked",
    "closing.step",
    "near.signed",
    "near.resolved",
    "blocks.frozen",
    "blocks.marked",
    "languages.frozen",
    "languages.marked",
    "titles.frozen",
    "titles.marked",
    "anchors.frozen",
    "shared.resolved",
    "shared.listed",
    *OF_REPAIRS,
    *OF_PLANS,
    *OF_TICKS,
    *OF_NAMES,
    *OF_FEEDS,
    *OF_RECEIVERS,
    *OF_LISTINGS,
    *OF_LARGE_BODIES,
)


class FailpointReached(Exception):
    """Raised at a failpoint in ``raise`` mode."""


def _parse(text: str) -> tuple[str, int, str]:
    name, *rest = text.split(":")
    nth, mode = 1, "kill"
    for part in rest:
        if part.isdigit():
            nth = int(part)
        else:
            mode = part
    if name not in {ANY, *NAMES} or mode not in {"kill", "stop", "raise", "enospc", "sleep"}:
        raise SystemExit(f"SEARCHCRAWL_FAILPOINT: unknown failpoint or mode (got {text!r})")
    return name, nth, mode


_wanted = _parse(os.environ["SEARCHCRAWL_FAILPOINT"]) if "SEARCHCRAWL_FAILPOINT" in os.environ else None
_count_path = os.environ.get("SEARCHCRAWL_FAILPOINT_COUNT")
_active = _wanted is not None or _count_path is not None
_reached: dict[str, int] = {}
_lock = threading.Lock()


def reach(name: str) -> None:
    """Called at the failpoint ``name``; does what the environment asks for when it is reached the n-th time."""
    if not _active:
        return
    with _lock:
        _reached[name] = nth = _reached.get(name, 0) + 1
        if _wanted is not None and _wanted[0] == ANY:
            nth = sum(_reached.values())
    if _wanted is None or _wanted[0] not in {name, ANY}:
        return
    if _wanted[2] == "enospc":
        # Once it is full, a disk stays full.
        if nth >= _wanted[1]:
            raise OSError(errno.ENOSPC, f"failpoint {name}")
    elif nth == _wanted[1]:
        _act(name, _wanted[2])


def _act(name: str, mode: str) -> None:
    if mode in {"kill", "stop"}:
        os.kill(os.getpid(), signal.SIGKILL if mode == "kill" else signal.SIGSTOP)
    elif mode == "raise":
        raise FailpointReached(name)
    else:
        time.sleep(10)


def _write_counts(path: str) -> None:
    Path(path).write_text(json.dumps(_reached, sort_keys=True), encoding="utf-8")


if _count_path:
    atexit.register(_write_counts, _count_path)
