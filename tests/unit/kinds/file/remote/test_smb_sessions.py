"""Servers that are none of SMB, or say nothing: a failure in its time, whatever they send."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from searchcrawl.codes import Code
from searchcrawl.kinds.file.remote.model import RemoteFailure
from searchcrawl.kinds.file.remote.smb_sessions import Account, Share

_HEAD = struct.Struct("<4sHHIHHIIQIIQ16s")
#: The answer to the first request, without what belongs into it.
_ANSWER = _HEAD.pack(b"\xfeSMB", 64, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, b"\0" * 16)


@contextmanager
def serving(answer: bytes | None) -> Iterator[int]:
    """A port where each connection gets these bytes and is closed, or gets nothing (None)."""
    listener = socket.create_server(("127.0.0.1", 0))
    ends = threading.Event()

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                if answer is None:
                    ends.wait(20)
                else:
                    with contextlib.suppress(OSError):
                        connection.recv(65_536)
                        connection.sendall(answer)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        ends.set()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def frame(content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + content


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"\0\0\0",
        b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
        frame(b""),
        frame(b"nothing of SMB"),
        frame(b"\xffSMB" + b"\0" * 60),
        frame(b"\xfdSMB" + b"\x01" * 80),
        frame(_ANSWER),
        frame(_ANSWER + b"\xff" * 200),
        frame(_ANSWER[:-16] + b"\xff" * 16 + b"\0" * 65),
        frame(b"\xfeSMB" + b"\xff" * 200),
        None,
    ],
)
def test_share_when_its_server_speaks_another_protocol_or_none_then_cannot_be_had(answer: bytes | None) -> None:
    with serving(answer) as port, pytest.raises(RemoteFailure) as raised:
        Share(Account("127.0.0.1", port, "user", "s3cret-of-the-user"), "share", 1.0).connect()

    assert raised.value.transient
    assert not raised.value.is_absent
    assert "s3cret" not in str(raised.value)


def test_share_when_nobody_listens_then_says_so() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(RemoteFailure, match=f"127.0.0.1:{port}: Connection refused") as raised:
        Share(Account("127.0.0.1", port, "user", "password"), "share", 1.0).connect()

    assert raised.value.code == Code.CONNECTION_REFUSED
