"""A real server of S3 (moto), and a relay before it that checks signatures, which moto does not, and breaks what tests ask for."""

from __future__ import annotations

import hashlib
import hmac
import http.client
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any, Final, Self
from urllib.parse import parse_qsl, urlencode, urlsplit

from botocore.config import Config
from botocore.session import Session

KEY_ID: Final = "AKIAQUINCES"
SECRET: Final = "secret-of-the-bucket"
REGION: Final = "us-east-1"
_HOST: Final = "127.0.0.1"
_RUNNING: Final = re.compile(rb"Running on http://127\.0\.0\.1:([0-9]+)")
_SCOPE: Final = re.compile(
    r"AWS4-HMAC-SHA256 Credential=([^/]+)/([0-9]{8})/([^/]+)/s3/aws4_request, ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})"
)
_ENTRY: Final = re.compile(rb"<Contents>.*?</Contents>", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that came to the relay: ``query`` is decoded."""

    method: str
    path: str
    query: dict[str, str]
    #: by which it is signed
    region: str = ""

    @property
    def is_listing(self) -> bool:
        return "list-type" in self.query

    @property
    def is_reading(self) -> bool:
        return self.method == "GET" and not self.query


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer in the place of the server's, or the server's itself as a test changes it."""

    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)
    #: so many bytes more are announced, and do not come
    missing: int = 0


def build_error(status: int, code: str, message: str = "so it is", **headers: str) -> Answer:
    """An error as S3 words one."""
    body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{message}</Message></Error>"
    return Answer(status, body.encode(), {"Content-Type": "application/xml", **headers})


class S3Server:
    """Moto in a process of its own, and the relay at ``url``.

    ``before`` answers a request in the place of the server (None: it does not), ``after`` changes an answer; a request that
    either raises ConnectionAbortedError for gets none. ``seen`` has all requests. A listing has at most ``page`` names a page, and
    ``software`` is what it says of itself. Where it ``is_open``, requests without a signature are answered.
    """

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "moto.server", "-H", _HOST, "-p", "0"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        self.moto_port = self._find_port()
        self._drain = Thread(target=self._process.stderr.read, daemon=True)  # type: ignore[union-attr]
        self._drain.start()
        self._server = ThreadingHTTPServer((_HOST, 0), _build_handler(self))
        self._server.daemon_threads = True
        self.url = f"http://{_HOST}:{self._server.server_address[1]}"
        self._thread = Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()
        self._lock = Lock()
        self._owner = Session().create_client(
            "s3",
            region_name=REGION,
            endpoint_url=f"http://{_HOST}:{self.moto_port}",
            aws_access_key_id="owner",
            aws_secret_access_key="owner",
            config=Config(retries={"total_max_attempts": 1}),
        )
        self.restore()

    def restore(self) -> None:
        """Has everything answered as the server does, and forgets what was seen."""
        self.before: Callable[[Asked], Answer | None] = lambda asked: None
        self.after: Callable[[Asked, Answer], Answer] = lambda asked, answer: answer
        self.page = 1000
        self.software = "moto"
        self.is_open = False
        self.seen: list[Asked] = []

    @property
    def owner(self) -> Any:
        """A client of who may write."""
        return self._owner

    def fill(self, bucket: str, objects: dict[str, bytes], **options: Any) -> None:
        """Writes objects into a bucket, which is made where it is not there."""
        self._owner.create_bucket(Bucket=bucket)
        for key, body in objects.items():
            self._owner.put_object(Bucket=bucket, Key=key, Body=body, **options)

    def list_seen(self, select: Callable[[Asked], bool]) -> list[str]:
        """The paths of the requests that were seen, as far as they are selected."""
        with self._lock:
            return [asked.path for asked in self.seen if select(asked)]

    def answer(self, asked: Asked, headers: dict[str, str], raw_query: str) -> Answer:
        """The answer to a request."""
        with self._lock:
            self.seen.append(asked)
        is_signed = "authorization" in {name.lower() for name in headers}
        found = _check(asked, headers, raw_query) if is_signed or not self.is_open else None
        found = found or self.before(asked)
        return found or self.after(asked, self._forward(asked, headers))

    def _forward(self, asked: Asked, headers: dict[str, str]) -> Answer:
        query = dict(asked.query)
        if asked.is_listing and int(query.get("max-keys", "1000")) > self.page:
            query["max-keys"] = str(self.page)
        raw_query = urlencode(query)
        connection = http.client.HTTPConnection(_HOST, self.moto_port, timeout=30)
        try:
            connection.request(asked.method, f"{asked.path}?{raw_query}" if raw_query else asked.path, headers=headers)
            answer = connection.getresponse()
            return Answer(answer.status, answer.read(), dict(answer.getheaders()))
        finally:
            connection.close()

    def _find_port(self) -> int:
        said = b""
        for line in self._process.stderr or ():
            said += line
            found = _RUNNING.search(line)
            if found is not None:
                return int(found[1])
        raise RuntimeError(f"moto did not start: {said.decode(errors='replace')[-2000:]}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        self._owner.close()
        self._process.kill()
        self._process.wait()
        self._drain.join()
        if self._process.stderr is not None:
            self._process.stderr.close()


def turn_entries(body: bytes) -> bytes:
    """A page of a listing with its objects in the opposite order."""
    entries: Iterator[bytes] = iter(_ENTRY.findall(body)[::-1])
    return _ENTRY.sub(lambda _: next(entries), body)


def _check(asked: Asked, headers: dict[str, str], raw_query: str) -> Answer | None:
    """The refusal of a request that is not signed with the key (AWS Signature Version 4); None for one that is."""
    lower = {name.lower(): value for name, value in headers.items()}
    if lower.get("x-amz-security-token") == "expired":
        return build_error(400, "ExpiredToken", "The provided token has expired.")
    found = _SCOPE.fullmatch(lower.get("authorization", ""))
    if found is None:
        return build_error(403, "AccessDenied", "Access Denied")
    key_id, day, region, names, signature = found.groups()
    if key_id != KEY_ID:
        return build_error(
            403, "InvalidAccessKeyId", "The AWS Access Key Id you provided does not exist in our records."
        )
    query = "&".join(sorted(part if "=" in part else f"{part}=" for part in raw_query.split("&"))) if raw_query else ""
    signed = "".join(f"{name}:{' '.join(lower.get(name, '').split())}\n" for name in names.split(";"))
    request = "\n".join([asked.method, asked.path, query, signed, names, lower.get("x-amz-content-sha256", "")])
    scope = f"{day}/{region}/s3/aws4_request"
    digest = hashlib.sha256(request.encode("latin-1")).hexdigest()
    text = "\n".join(["AWS4-HMAC-SHA256", lower.get("x-amz-date", ""), scope, digest])
    key = f"AWS4{SECRET}".encode()
    for part in (day, region, "s3", "aws4_request"):
        key = hmac.new(key, part.encode(), "sha256").digest()
    if hmac.new(key, text.encode(), "sha256").hexdigest() != signature:
        return build_error(403, "SignatureDoesNotMatch", "The request signature we calculated does not match.")
    return None


def _build_handler(server: S3Server) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            # The path as it came: the library makes one slash of several at its beginning.
            target = self.requestline.split(" ")[1]
            path, _, query = target.partition("?")
            region = _SCOPE.fullmatch(self.headers.get("Authorization", ""))
            asked = Asked(
                self.command,
                urlsplit(path).path,
                dict(parse_qsl(query, keep_blank_values=True)),
                "" if region is None else region[3],
            )
            try:
                answer = server.answer(asked, dict(self.headers.items()), query)
                self._send(answer)
            except ConnectionAbortedError:
                self.close_connection = True

        do_HEAD = do_GET

        def _send(self, answer: Answer) -> None:
            self.send_response(answer.status)
            headers = {name.lower(): value for name, value in answer.headers.items()}
            length = headers.pop("content-length", "0") if self.command == "HEAD" else len(answer.body) + answer.missing
            for name, value in headers.items():
                if name not in {"connection", "content-length", "date", "server", "transfer-encoding"}:
                    self.send_header(name, value)
            self.send_header("Content-Length", str(length))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(answer.body)
                self.close_connection = self.close_connection or answer.missing > 0

        def version_string(self) -> str:
            return server.software

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    return Handler
