"""Tells people of what they have to see to: by a command, a webhook or a mail, once for each time that it happens.

What was told of a source stands in a file beside its store, until it is over: then the next time is told again.
"""

from __future__ import annotations

import json
import logging
import os
import shlex
import signal
import smtplib
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from email.message import EmailMessage
from pathlib import Path
from typing import Any, Final

import requests

from searchcrawl import clock
from searchcrawl.durable import write_whole
from searchcrawl.sources.project import EVENTS, Event, Notify, Project
from searchcrawl.sources.secrets import redact
from searchcrawl.terminal import to_one_line

logger = logging.getLogger(__name__)

#: What takes longer is ended.
_LIMIT_SECONDS: Final = 30.0
_CONNECT_SECONDS: Final = 10.0


def notify(
    project: Project,
    name: str,
    events: Mapping[Event, str],
    *,
    judged: Iterable[Event] = EVENTS,
    by: str = "run",
    limit_seconds: float = _LIMIT_SECONDS,
) -> None:
    """Tells of ``events`` of a source, each with its message, those that were told already left out.

    Of the ``judged`` ones those that are no event are over: they are told again when they come back. ``by`` is what found
    them, a run or a command, which do not know of each other. Nothing is raised: what cannot be told is logged, and tried
    again the next time.
    """
    table = project.notify
    if not table.in_use:
        return
    told = _load(project.told_file(name))
    over = {f"{event}:{by}" for event in judged} - {f"{event}:{by}" for event in events if event in table.on}
    still_told = [key for key in told if key not in over]
    for event in (event for event in events if event in table.on):
        key = f"{event}:{by}"
        if key not in told and _tell(table, _describe(name, event, events[event]), limit_seconds):
            still_told.append(key)
    if still_told != told:
        _save(project.told_file(name), still_told)


def _describe(name: str, event: Event, message: str) -> dict[str, str]:
    at = clock.iso(clock.now_ms())
    return {"event": event, "source": name, "message": to_one_line(redact(message)), "at": at or ""}


def _tell(table: Notify, event: Mapping[str, str], limit_seconds: float) -> bool:
    """Tells everybody; whether anybody was told."""
    told = False
    for way, send in _list_ways(table, limit_seconds):
        try:
            send(event)
        except requests.RequestException as error:
            # It quotes the URL, which is a secret as a rule.
            _log_untold(event, way, type(error).__name__)
        except (OSError, smtplib.SMTPException, ValueError) as error:
            _log_untold(event, way, redact(str(error)))
        else:
            told = True
    return told


def _log_untold(event: Mapping[str, str], way: str, reason: str) -> None:
    logger.warning("%s of %s could not be told by %s: %s", event["event"], event["source"], way, reason)


def _list_ways(table: Notify, limit_seconds: float) -> Iterator[tuple[str, Callable[[Mapping[str, str]], None]]]:
    if (command := table.command) is not None:
        yield "notify.command", lambda event: _call(command, event, limit_seconds)
    if (webhook := table.webhook) is not None:
        yield "notify.webhook", lambda event: _post(webhook, event, limit_seconds)
    if (mail := table.mail) is not None:
        yield "notify.mail", lambda event: _mail(mail, table.mail_server, event)


def _call(command: str, event: Mapping[str, str], limit_seconds: float) -> None:
    """Runs the command; one that hangs is ended, with all that it started."""
    # A file and no pipe: whether the command reads it is its own affair.
    with tempfile.TemporaryFile() as told:
        told.write(json.dumps(event).encode() + b"\n")
        told.seek(0)
        process = subprocess.Popen(  # noqa: S603  # the owner wrote it
            shlex.split(command),
            env={**os.environ, "SEARCHCRAWL_EVENT": event["event"], "SEARCHCRAWL_SOURCE": event["source"]},
            stdin=told,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    try:
        code = process.wait(limit_seconds)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise TimeoutError(f"it was ended after {limit_seconds:g} seconds") from None
    if code:
        raise ChildProcessError(f"it ended with exit code {code}")


def _post(url: str, event: Mapping[str, str], limit_seconds: float) -> None:
    times = (_CONNECT_SECONDS, limit_seconds)
    # The body of the answer is not read, so it cannot last.
    with requests.post(url, json=dict(event), timeout=times, allow_redirects=False, stream=True) as answer:
        if not answer.ok or answer.is_redirect:
            raise ValueError(f"it answered {answer.status_code}")


def _mail(address: str, server: str, event: Mapping[str, str]) -> None:
    host, _, port = server.partition(":")
    message = EmailMessage()
    message["Subject"] = f"searchcrawl: {event['source']}: {event['event']}"
    message["From"] = message["To"] = address
    message.set_content(f"{event['message']}\n\n{event['at']}\n")
    with smtplib.SMTP(host, int(port or 25), timeout=_CONNECT_SECONDS) as connection:
        connection.send_message(message)


def _load(path: Path) -> list[str]:
    try:
        found: Any = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        logger.warning("what was told cannot be read, and is told again: %s", error)
        return []
    return [event for event in found if isinstance(event, str)] if isinstance(found, list) else []


def _save(path: Path, told: list[str]) -> None:
    try:
        write_whole(path, json.dumps(told).encode())
    except OSError as error:
        logger.warning("what was told cannot be noted, and is told again: %s", error)
