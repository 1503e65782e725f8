"""The port of one page: each request of the page comes here, plain or in a tunnel whose TLS ends here (L7, L13).

It is for the browser of the crawl, and for no other user: the kernel says who has opened a connection on loopback. The
certificates are those of an authority of the run, which only its browser trusts.
"""

from __future__ import annotations

import asyncio
import base64
import datetime
import hashlib
import ipaddress
import logging
import re
import ssl
import tempfile
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from functools import partial
from http.client import responses
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from searchcrawl.render.browser_request import BadRequest, BrowserRequest, DecodedAnswer, parse_head

_DAY: Final = datetime.timedelta(days=1)
#: Longer than any run; Chromium takes no certificate of more than 398 days from an authority.
_LIFETIME: Final = 390 * _DAY
#: A common name has 64 characters at most, so the host stands in the alternative names alone.
_NAME: Final = "searchcrawl"
_MAX_CONTEXTS: Final = 500


class Authority:
    """Makes certificates for hosts; its key is never written to a disk.

    The key of the certificates is in a file for as long as Python's ssl needs to read it, in a folder of its own.
    """

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._host_key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"{_NAME} authority of one run")])
        constraints = x509.BasicConstraints(ca=True, path_length=0)
        self._certificate = self._sign(_describe(name, name, self._key.public_key()), constraints)
        self._contexts: OrderedDict[str, ssl.SSLContext] = OrderedDict()

    @property
    def key_digest(self) -> str:
        """What names the authority to Chromium: the SHA-256 of its public key, in Base64."""
        public = self._key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        return base64.b64encode(hashlib.sha256(public).digest()).decode("ascii")

    @property
    def certificate_pem(self) -> str:
        """Its certificate, for others than Chromium."""
        return self._certificate.public_bytes(Encoding.PEM).decode("ascii")

    def build_context(self, host: str) -> ssl.SSLContext:
        """What a server of ``host``, a name or an address without brackets, needs for TLS; raises ValueError for what is none."""
        known = self._contexts.get(host)
        if known is None:
            known = self._contexts[host] = self._make_context(host)
            if len(self._contexts) > _MAX_CONTEXTS:
                self._contexts.popitem(last=False)
        return known

    def _make_context(self, host: str) -> ssl.SSLContext:
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, _NAME)])
        builder = _describe(subject, self._certificate.subject, self._host_key.public_key())
        names = x509.SubjectAlternativeName([_name_host(host)])
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
        certificate = self._sign(builder, x509.BasicConstraints(ca=False, path_length=None), names, usage)
        chain = certificate.public_bytes(Encoding.PEM) + self._certificate.public_bytes(Encoding.PEM)
        key = self._host_key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.set_alpn_protocols(["http/1.1"])
        with tempfile.TemporaryDirectory(prefix="searchcrawl-tls-") as folder:
            file = Path(folder, "chain.pem")
            file.write_bytes(key + chain)
            context.load_cert_chain(file)
        return context

    def _sign(self, builder: x509.CertificateBuilder, *extensions: x509.ExtensionType) -> x509.Certificate:
        for extension in extensions:
            builder = builder.add_extension(extension, critical=isinstance(extension, x509.BasicConstraints))
        return builder.sign(self._key, SHA256())


def _describe(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _DAY)
        .not_valid_after(now + _LIFETIME)
    )


def _name_host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        if ":" in host:
            raise
        return x509.DNSName(host)


logger = logging.getLogger(__name__)

#: Chromium sends no longer heads: URLs have 2 MB at most, and these are cut by the rules.
_MAX_HEAD_BYTES: Final = 256 * 1024
_MAX_BODY_BYTES: Final = 2 << 20
_HEAD_SECONDS: Final = 60.0
_CONNECT: Final = re.compile(r"CONNECT (\[[0-9A-Fa-f:.]{2,45}\]|[^\s:/@\[\]]{1,253}):([0-9]{1,5}) HTTP/1\.[01]")
_OPENED: Final = b"HTTP/1.1 200 OK\r\n\r\n"
_CLOSED: Final = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
#: To Chromium a network error, as where no answer comes; it does not ask again, as it would after a connection that just ended.
_NETWORK_ERROR: Final = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"
#: They are about one connection, or describe the bytes as a server sent them.
_NOT_PASSED_ON: Final = frozenset({
    "alt-svc", "connection", "content-encoding", "content-length", "keep-alive", "proxy-authenticate", "te", "trailer",
    "transfer-encoding", "upgrade",
})  # fmt: skip

#: What becomes of a request: an answer, or None for a network error.
Answering = Callable[[BrowserRequest], Awaitable[DecodedAnswer | None]]


class PagePort:
    """Listens on loopback for the browser, for one page; each request gets what ``answer`` returns, which raises nothing.

    Connections of other users than ``users`` are closed. ``note_refused`` is told in words of a tunnel that was not opened.
    """

    def __init__(
        self,
        authority: Authority,
        answer: Answering,
        *,
        users: Collection[int],
        note_refused: Callable[[str], None],
    ) -> None:
        self._authority = authority
        self._answer = answer
        self._users = frozenset(users)
        self._note_refused = note_refused
        self._server: asyncio.Server | None = None
        self._serving: set[asyncio.Task[None]] = set()

    async def open(self) -> int:
        """Begins to listen; returns the port."""
        self._server = await asyncio.start_server(self._begin, "127.0.0.1", 0, limit=_MAX_HEAD_BYTES)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def close(self) -> None:
        """Ends all connections, whatever is under way."""
        if self._server is not None:
            self._server.close()
        for task in self._serving:
            task.cancel()
        if self._serving:
            await asyncio.wait(self._serving)

    def _begin(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        owner = find_owner(writer.get_extra_info("peername"), writer.get_extra_info("sockname"))
        if owner not in self._users:
            logger.warning("a connection of user %s to the port of a page was closed", owner)
            writer.close()
            return
        if self._server is None or not self._server.is_serving():
            # It was accepted while the port was closed.
            writer.close()
            return
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._serving.add(task)
        task.add_done_callback(partial(self._forget, writer=writer))

    def _forget(self, task: asyncio.Task[None], *, writer: asyncio.StreamWriter) -> None:
        self._serving.discard(task)
        # One that was cancelled before its first step closes nothing itself.
        with suppress(OSError, RuntimeError):
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._serve_requests(reader, writer)
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, BadRequest) as error:
            # The page is gone, or its connection is: whoever waits for it is the browser.
            logger.debug("a connection of a page ended: %s", error)

    async def _serve_requests(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await _read_head(reader)
        origin = None
        if head.startswith(b"CONNECT "):
            origin = await self._open_tunnel(head, writer)
            if origin is None:
                return
            head = await _read_head(reader)
        while True:
            method, url, headers = parse_head(head, origin)
            body = await _read_body(reader, dict(headers))
            answer = await self._answer(BrowserRequest(method, url, headers, body))
            if answer is None:
                writer.write(_NETWORK_ERROR)
                await writer.drain()
                return
            writer.write(_build_head(answer, method))
            if method != "HEAD" and _has_body(answer.status):
                writer.write(answer.body)
            await writer.drain()
            head = await _read_head(reader)

    async def _open_tunnel(self, head: bytes, writer: asyncio.StreamWriter) -> str | None:
        """The origin that a tunnel leads to, once its TLS has begun; None where it is refused."""
        host, port = find_tunnel(head) or ("", 0)
        try:
            context = self._authority.build_context(host.strip("[]")) if port else None
        except ValueError:
            context = None
        if context is None:
            self._note_refused("a tunnel to no host")
            writer.write(_CLOSED)
            await writer.drain()
            return None
        writer.write(_OPENED)
        await writer.drain()
        try:
            await writer.start_tls(context)
        except OSError as error:
            if "HTTP_REQUEST" in str(error).upper().replace(" ", "_"):
                # Nothing else uses a tunnel without TLS.
                self._note_refused("kind websocket")
            raise
        return f"https://{host}" if port == 443 else f"https://{host}:{port}"


def find_tunnel(head: bytes) -> tuple[str, int] | None:
    """The host and the port that a tunnel is to lead to; None where the head names none."""
    found = _CONNECT.match(head.decode("latin-1"))
    if found is None or not 0 < int(found[2]) < 65536:
        return None
    return found[1], int(found[2])


async def _read_head(reader: asyncio.StreamReader) -> bytes:
    async with asyncio.timeout(_HEAD_SECONDS):
        return (await reader.readuntil(b"\r\n\r\n"))[:-4]


async def _read_body(reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
    if "transfer-encoding" in headers:
        raise BadRequest("a body in chunks")
    length = headers.get("content-length", "0")
    if not length.isdecimal() or int(length[:10]) > _MAX_BODY_BYTES:
        raise BadRequest("a body that is too large")
    return await reader.readexactly(int(length)) if length != "0" else b""


def _has_body(status: int) -> bool:
    return status not in {204, 205, 304}


def _build_head(answer: DecodedAnswer, method: str) -> bytes:
    lines = [f"HTTP/1.1 {answer.status} {responses.get(answer.status, 'Unknown')}"]
    lines += [
        f"{name}: {value}"
        for name, value in answer.headers
        if name.lower() not in _NOT_PASSED_ON and "\r" not in value and "\n" not in value
    ]
    if _has_body(answer.status) and method != "HEAD":
        lines.append(f"Content-Length: {len(answer.body)}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")


#: Linux lists the sockets of IPv4 there, each with its owner.
_SOCKETS: Final = Path("/proc/net/tcp")
_ESTABLISHED: Final = "01"


def find_owner(peer: tuple[str, int], own: tuple[str, int]) -> int | None:
    """The user of the other end of a connection between two addresses of this machine; None where nothing says it.

    A socket that its owner has closed belongs to nobody, and Linux shows it as one of root.
    """
    wanted = f" {_write(peer)} {_write(own)} "
    try:
        for line in _SOCKETS.read_text(encoding="ascii").splitlines():
            if wanted in line:
                fields = line.split()
                is_owned = fields[3] == _ESTABLISHED and fields[9] != "0"
                return int(fields[7]) if is_owned else None
    except (OSError, ValueError, IndexError):
        return None
    return None


def _write(address: tuple[str, int]) -> str:
    """An address as Linux writes it there: the bytes of the host backwards, in hexadecimal."""
    host = bytes(reversed([int(part) for part in address[0].split(".")]))
    return f"{host.hex().upper()}:{address[1]:04X}"
