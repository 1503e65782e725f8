"""An nginx of its own on loopback: own configuration, own process, own request log."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import requests

from tests.solr_server import free_port

CONFIGURATION = """\
daemon off;
{user}
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 512; }}
http {{
    types {{ {types} }}
    default_type application/octet-stream;
    log_format bench escape=json '{{"status":$status,"bytes":$body_bytes_sent,"method":"$request_method","host":"$host",'
        '"uri":"$request_uri","type":"$sent_http_content_type"}}';
    access_log {folder}/access.log bench;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
    sendfile on; tcp_nopush on; etag on; keepalive_timeout 65; keepalive_requests 1000000;
    server {{ listen 127.0.0.1:{port}; server_name _; root {root}; index index.html; absolute_redirect off; }}
}}
"""
_TYPES = (
    "text/html html; text/css css; text/plain txt; application/javascript js;"
    " image/png png; image/svg+xml svg; image/x-icon ico;"
)
#: For sites that have more than pages and pictures.
_MORE_TYPES = (
    f"{_TYPES} text/html htm; application/xhtml+xml xhtml; text/xml xml; image/gif gif; image/jpeg jpg jpeg;"
    " application/pdf pdf; font/woff woff; font/woff2 woff2; application/gzip gz; application/zip zip; audio/midi mid midi;"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One answered request: ``uri`` as sent (path and query), ``body_bytes`` of the answer."""

    uri: str
    method: str
    status: int
    body_bytes: int
    mime_type: str
    host: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A running web server; ``root_url`` ends in a slash."""

    root_url: str
    log: Path

    @property
    def port(self) -> int:
        """The port of 127.0.0.1."""
        return int(self.root_url.rstrip("/").rpartition(":")[2])

    def mark(self) -> int:
        """Where the log ends now, for ``asked_since``."""
        return self.log.stat().st_size

    def asked_since(self, mark: int) -> list[Asked]:
        """The requests answered since ``mark``, in order."""
        with self.log.open("rb") as file:
            file.seek(mark)
            rows = [json.loads(line) for line in file]
        return [
            Asked(
                uri=row["uri"],
                method=row["method"],
                status=row["status"],
                body_bytes=row["bytes"],
                mime_type=row["type"].partition(";")[0],
                host=row["host"],
            )
            for row in rows
        ]


@contextmanager
def serving(site: Path, folder: Path, *, by_host: bool = False) -> Iterator[Site]:
    """Serves ``site`` while the block runs; configuration and logs are in ``folder``.

    With ``by_host`` each host name has its pages in the folder of its name in ``site``.
    """
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port()
    user = "user root;" if os.geteuid() == 0 else ""
    configuration = folder / "nginx.conf"
    configuration.write_text(
        CONFIGURATION.format(
            user=user,
            folder=folder,
            root=site / "$host" if by_host else site,
            port=port,
            types=_MORE_TYPES if by_host else _TYPES,
        ),
        encoding="utf-8",
    )
    log = folder / "access.log"
    log.unlink(missing_ok=True)
    program = shutil.which("nginx") or "/usr/sbin/nginx"
    command = [program, "-p", str(folder), "-c", str(configuration), "-e", str(folder / "error.log")]
    process = subprocess.Popen(command)
    try:
        served = Site(root_url=f"http://127.0.0.1:{port}/", log=log)
        _wait_until_answering(served.root_url, process)
        yield served
    finally:
        process.terminate()
        process.wait(timeout=10)


def _wait_until_answering(url: str, process: subprocess.Popen[bytes]) -> None:
    for _ in range(100):
        if process.poll() is not None:
            raise SystemExit(f"bench: nginx ended with {process.returncode}; see its error.log")
        try:
            requests.get(url, timeout=5).raise_for_status()
        except requests.ConnectionError:
            time.sleep(0.05)
        else:
            return
    raise SystemExit("bench: nginx does not answer")
