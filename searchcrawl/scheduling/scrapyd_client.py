"""Asks a scrapyd over HTTP to run a crawl. It may be gone, slow, or another program: each answer is judged."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import requests
from urllib3.exceptions import HTTPError, LocationValueError

from searchcrawl import clock
from searchcrawl.scheduling.launching import AnswerLost, ScrapydAway, ScrapydRefused, name_of
from searchcrawl.terminal import to_one_line

#: The project of scrapyd: the name in scrapy.cfg.
_PROJECT: Final = "default"
_CONNECT_SECONDS: Final = 5.0
#: The first order of a scrapyd waits for a process that lists the sources.
ANSWER_SECONDS: Final = 60.0
#: What became of an order it knows at once.
_STATE_SECONDS: Final = 10.0
_POLL_SECONDS: Final = 0.2
#: The longest answer that is read.
MAX_BYTES: Final = 1 << 20
_CHUNK: Final = 1 << 16
_MAX_MESSAGE: Final = 300
_STATES: Final = frozenset({"pending", "running", "finished"})


class ScrapydClient:
    """One scrapyd, at a URL with or without user and password. No message shows the password.

    ``is_stopped`` ends the waiting for an answer, which is lost then.
    """

    def __init__(self, url: str, *, is_stopped: Callable[[], bool] = lambda: False) -> None:
        self._is_stopped = is_stopped
        parts = urlsplit(url)
        self.name = name_of(url)
        self._session = requests.Session()
        # Proxies and passwords of the environment are not for it.
        self._session.trust_env = False
        if parts.username is not None:
            self._session.auth = (unquote(parts.username), unquote(parts.password or ""))

    def schedule(self, name: str, token: str) -> None:
        """Orders a crawl; raises ScrapydRefused or AnswerLost."""
        answer = self._ask("POST", "schedule.json", project=_PROJECT, spider=name, jobid=token)
        if answer.get("jobid") != token:
            raise ScrapydRefused(f"scrapyd {self.name}: its answer is about another job")

    def find_state(self, token: str) -> str:
        """``pending``, ``running``, ``finished``, or "" for one that it does not know; raises as ``schedule``."""
        state = self._ask("GET", "status.json", project=_PROJECT, job=token).get("currstate")
        if state is not None and (not isinstance(state, str) or state not in _STATES):
            raise ScrapydRefused(f"scrapyd {self.name}: its answer is not that of a scrapyd")
        return state or ""

    def cancel(self, token: str) -> None:
        """Takes an order back, or ends its crawl cleanly; raises as ``schedule``."""
        self._ask("POST", "cancel.json", project=_PROJECT, job=token, signal="TERM")

    def close(self) -> None:
        """Closes its connections."""
        self._session.close()

    def _ask(self, method: str, service: str, **fields: str) -> dict[str, Any]:
        """The answer of a service, which says that it is well. No server and no resolver keeps it for longer."""
        seconds = ANSWER_SECONDS if method == "POST" else min(ANSWER_SECONDS, _STATE_SECONDS)
        deadline = clock.monotonic() + seconds
        answer: Future[tuple[int, bytes]] = Future()
        arguments = (answer, deadline, method, f"{self.name}/{service}", fields)
        # Headers that come byte by byte have no other limit, and the caller hears of a stop meanwhile.
        threading.Thread(target=self._answer, args=arguments, name="scrapyd", daemon=True).start()
        while clock.monotonic() < deadline and not self._is_stopped():
            if wait([answer], timeout=_POLL_SECONDS).done:
                return read_answer(self.name, *answer.result())
        raise AnswerLost(f"scrapyd {self.name}: did not answer in {seconds:.0f} seconds")

    def _answer(
        self, answer: Future[tuple[int, bytes]], deadline: float, method: str, url: str, fields: dict[str, str]
    ) -> None:
        try:
            answer.set_result(self._fetch(deadline, method, url, fields))
        except Exception as error:  # noqa: BLE001  # it is raised in the thread that waits
            answer.set_exception(error)

    def _fetch(self, deadline: float, method: str, url: str, fields: dict[str, str]) -> tuple[int, bytes]:
        """Status and body of an answer."""
        given = {"data" if method == "POST" else "params": fields}
        try:
            with self._session.request(
                method,
                url,
                timeout=(_CONNECT_SECONDS, ANSWER_SECONDS),
                headers={"Accept-Encoding": "identity"},
                allow_redirects=False,
                stream=True,
                **given,  # type: ignore[arg-type]
            ) as response:
                return response.status_code, self._read(response, deadline)
        except (requests.ConnectTimeout, requests.exceptions.SSLError) as error:
            raise ScrapydAway(f"scrapyd {self.name}: cannot be reached") from error
        except (requests.exceptions.InvalidURL, LocationValueError, UnicodeError) as error:
            raise ScrapydAway(f"scrapyd {self.name}: cannot be reached: this is no address") from error
        except requests.ConnectionError as error:
            if "NewConnectionError" in repr(error) or "NameResolutionError" in repr(error):
                raise ScrapydAway(f"scrapyd {self.name}: cannot be reached") from error
            raise AnswerLost(f"scrapyd {self.name}: broke the connection") from error
        except (requests.RequestException, HTTPError, OSError) as error:
            raise AnswerLost(f"scrapyd {self.name}: did not answer") from error

    def _read(self, response: requests.Response, deadline: float) -> bytes:
        body = bytearray()
        # A piece is what has come: it is not waited for until it is full.
        while chunk := response.raw.read1(_CHUNK):
            body += chunk
            if clock.monotonic() > deadline:
                raise AnswerLost(f"scrapyd {self.name}: did not answer in time")
            if len(body) > MAX_BYTES:
                raise ScrapydRefused(f"scrapyd {self.name}: its answer is not that of a scrapyd")
        return bytes(body)


def read_answer(name: str, status: int, body: bytes) -> dict[str, Any]:
    """The answer of a scrapyd that says that all is well; raises ScrapydRefused for any other."""
    if status in {401, 403}:
        raise ScrapydRefused(f"scrapyd {name}: refuses user or password, or this host ({status})")
    if status != requests.codes.ok:
        raise ScrapydRefused(f"scrapyd {name}: answers with status {status}")
    answer, message = None, ""
    try:
        answer = json.loads(body)
        if isinstance(answer, dict):
            message = str(answer.get("message") or "")
    except (ValueError, RecursionError):
        # It may be nested too deep to be read, or to be shown.
        answer = None
    if not isinstance(answer, dict) or answer.get("status") not in ("ok", "error"):
        raise ScrapydRefused(f"scrapyd {name}: its answer is not that of a scrapyd")
    if answer["status"] == "error":
        # Cut first: the answer of a stranger may be long, and what cannot be printed takes more room.
        raise ScrapydRefused(f"scrapyd {name}: {to_one_line(message[:_MAX_MESSAGE])[:_MAX_MESSAGE] or 'says no'}")
    return answer
