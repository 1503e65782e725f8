"""Asks a scrapyd over HTTP to run a crawl. It may be gone, slow, or another program: each answer is judged."""

from __future__ import annotations

import json
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import requests

from searchcrawl import clock
from searchcrawl.exceptions import SearchcrawlError

#: The project of scrapyd: the name in scrapy.cfg.
_PROJECT: Final = "default"
_CONNECT_SECONDS: Final = 5.0
#: The first order of a scrapyd waits for a process that lists the sources.
ANSWER_SECONDS: Final = 60.0
_MAX_BYTES: Final = 1 << 20
_CHUNK: Final = 1 << 16
_STATES: Final = frozenset({"pending", "running", "finished"})


class ScrapydRefused(SearchcrawlError):
    """A scrapyd did not take an order: it cannot be reached, or says no, or is none."""


class AnswerLost(SearchcrawlError):
    """A scrapyd was asked, and did not answer in time: it may have taken the order."""


class ScrapydClient:
    """One scrapyd, at a URL with or without user and password. No message shows the password."""

    def __init__(self, url: str) -> None:
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
        if state is not None and state not in _STATES:
            raise ScrapydRefused(f"scrapyd {self.name}: its answer is not that of a scrapyd")
        return state or ""

    def cancel(self, token: str) -> None:
        """Takes an order back, or ends its crawl cleanly; raises as ``schedule``."""
        self._ask("POST", "cancel.json", project=_PROJECT, job=token, signal="TERM")

    def close(self) -> None:
        """Closes its connections."""
        self._session.close()

    def _ask(self, method: str, service: str, **fields: str) -> dict[str, Any]:
        """The answer of a service, which says that it is well."""
        given = {"data" if method == "POST" else "params": fields}
        deadline = clock.monotonic() + ANSWER_SECONDS
        try:
            with self._session.request(
                method,
                f"{self.name}/{service}",
                timeout=(_CONNECT_SECONDS, ANSWER_SECONDS),
                allow_redirects=False,
                stream=True,
                **given,  # type: ignore[arg-type]
            ) as response:
                body = b""
                for chunk in response.iter_content(_CHUNK):
                    body += chunk
                    if clock.monotonic() > deadline:
                        raise AnswerLost(f"scrapyd {self.name}: did not answer in {ANSWER_SECONDS:.0f} seconds")
                    if len(body) > _MAX_BYTES:
                        raise ScrapydRefused(f"scrapyd {self.name}: its answer is not that of a scrapyd")
        except (requests.ConnectTimeout, requests.exceptions.SSLError) as error:
            raise ScrapydRefused(f"scrapyd {self.name}: cannot be reached") from error
        except requests.ConnectionError as error:
            if "NewConnectionError" in repr(error):
                raise ScrapydRefused(f"scrapyd {self.name}: cannot be reached") from error
            raise AnswerLost(f"scrapyd {self.name}: broke the connection") from error
        except requests.RequestException as error:
            raise AnswerLost(f"scrapyd {self.name}: did not answer") from error
        return self._judge(response.status_code, body)

    def _judge(self, status: int, body: bytes) -> dict[str, Any]:
        if status in {401, 403}:
            raise ScrapydRefused(f"scrapyd {self.name}: refuses user or password, or this host ({status})")
        if status != requests.codes.ok:
            raise ScrapydRefused(f"scrapyd {self.name}: answers with status {status}")
        try:
            answer = json.loads(body)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict) or answer.get("status") not in {"ok", "error"}:
            raise ScrapydRefused(f"scrapyd {self.name}: its answer is not that of a scrapyd")
        if answer["status"] == "error":
            raise ScrapydRefused(f"scrapyd {self.name}: {answer.get('message') or 'says no'}")
        return answer


def name_of(url: str) -> str:
    """The URL of a scrapyd without user and password, as the store keeps it."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
