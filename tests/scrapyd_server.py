"""A real scrapyd for a project, with the configuration of deploy/, on a free port of this machine."""

from __future__ import annotations

import base64
import http.client
import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import urlencode

from tests.acceptance.support_project import environment
from tests.site.client import ADDRESS, ROOT
from tests.solr_server import free_port

START_SECONDS: Final = 60.0
JOB_SECONDS: Final = 180.0
USER: Final = "crawler"
PASSWORD: Final = "s3cret-of-scrapyd"
_POLL_SECONDS: Final = 0.1
_TRIES: Final = 3


class ScrapydNotStarted(Exception):
    """scrapyd ended before it answered; the text is what it wrote."""


class ScrapydProcess:
    """A running scrapyd in ``folder``; what it writes is in ``log``. It ends on exit, and its jobs with it.

    ``project`` is that of the folder, or another one, as for a second scrapyd of the same project.
    """

    def __init__(self, folder: Path, *, project: Path | None = None) -> None:
        self.folder = folder
        self._variables = {} if project is None else {"SEARCHCRAWL_PROJECT": str(project)}
        self.log = folder / "scrapyd.out"
        self.port = 0
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        shutil.copyfile(ROOT / "deploy" / "scrapyd.conf", self.folder / "scrapyd.conf")
        for last in reversed(range(_TRIES)):
            try:
                self._start()
                return self
            except ScrapydNotStarted:
                # Somebody else may have taken the port.
                if not last:
                    raise
        raise AssertionError("unreachable")

    def __exit__(self, *_: object) -> None:
        if self._process is not None and self._process.poll() is None:
            for job in self.get("listjobs.json", project="default")["running"]:
                self.post("cancel.json", project="default", job=job["id"], signal="KILL")
                self.wait(lambda job=job: self.state(job["id"]) == "finished")
        self._stop()

    def request(
        self, method: str, path: str, *, user: str | None = USER, body: str | None = None, **headers: str
    ) -> tuple[int, bytes]:
        """Status and body of the answer; without ``user`` nobody says who asks."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if user is not None:
            sent["Authorization"] = "Basic " + base64.b64encode(f"{user}:{PASSWORD}".encode()).decode()
        if body is not None:
            sent["Content-Type"] = "application/x-www-form-urlencoded"
        connection = http.client.HTTPConnection(ADDRESS, self.port, timeout=30)
        try:
            connection.request(method, f"/{path}", body, sent)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def get(self, service: str, **fields: str) -> dict[str, Any]:
        """The JSON that a service answers."""
        return self._json(self.request("GET", f"{service}?{urlencode(fields)}"))

    def post(self, service: str, **fields: str) -> dict[str, Any]:
        """The JSON that a service answers to a form."""
        return self._json(self.request("POST", service, body=urlencode(fields)))

    @property
    def url(self) -> str:
        """Its address with user and password, as a schedule names it."""
        return f"http://{USER}:{PASSWORD}@{ADDRESS}:{self.port}"

    def kill(self) -> None:
        """Ends it by SIGKILL: its jobs know nothing of it."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def start_again(self) -> None:
        """Starts it again on the same port."""
        self._launch()

    def state(self, job: str) -> str | None:
        """pending, running or finished."""
        state: str | None = self.get("status.json", project="default", job=job)["currstate"]
        return state

    def wait(self, come: Callable[[], bool], *, seconds: float = JOB_SECONDS) -> None:
        """Waits until something has come; raises AssertionError where it does not in time."""
        end = time.monotonic() + seconds
        while not come():
            assert time.monotonic() < end, self.log.read_text("utf-8", "replace")
            time.sleep(_POLL_SECONDS)

    def _start(self) -> None:
        self.port = free_port()
        self._launch()

    def _launch(self) -> None:
        variables = self._variables | {"SCRAPYD_HTTP_PORT": str(self.port)}
        variables |= {"SCRAPYD_USERNAME": USER, "SCRAPYD_PASSWORD": PASSWORD}
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-W", "ignore", "-m", "scrapyd", "--pidfile="],
                cwd=self.folder,
                env=environment(**variables),
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self.wait(self._answers, seconds=START_SECONDS)

    def _answers(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            raise ScrapydNotStarted(self.log.read_text("utf-8", "replace"))
        try:
            return self.request("GET", "daemonstatus.json")[0] == http.client.OK
        except OSError:
            return False

    def _stop(self) -> None:
        if self._process is None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    @staticmethod
    def _json(answer: tuple[int, bytes]) -> dict[str, Any]:
        status, body = answer
        assert status == http.client.OK, body
        found: dict[str, Any] = json.loads(body)
        return found
