"""Who may use a share at all: what is asked of the service for shares of a server, over its pipe ([MS-SRVS] 3.1.4.10).

The answer is for administrators of most servers; others are refused it.
"""

from __future__ import annotations

import struct
import uuid
from typing import Any, Final

from smbprotocol.exceptions import SMBResponseException
from smbprotocol.ioctl import IOCTLFlags, SMB2IOCTLRequest
from smbprotocol.tree import TreeConnect

from searchcrawl.answer_headers import Level
from searchcrawl.kinds.file.remote import smb_descriptors as descriptors
from searchcrawl.kinds.file.remote import smb_requests as requests
from searchcrawl.kinds.file.remote import smb_statuses as statuses
from searchcrawl.kinds.file.remote import smb_structures as structures
from searchcrawl.kinds.file.remote.smb_sessions import Link

_PIPE: Final = "srvsvc"
_ACCESS: Final = 0x0012_019F
_TRANSCEIVE: Final = 0x0011_C017
_MOST_BYTES: Final = 65_536
#: The interface, and NDR: what is said in it ([MS-SRVS] 1.9, [C706] 14).
_INTERFACE: Final = uuid.UUID("4b324fc8-1670-01d3-1278-5a47bf6ee188").bytes_le + struct.pack("<HH", 3, 0)
_NDR: Final = uuid.UUID("8a885d04-1ceb-11c9-9fe8-08002b104860").bytes_le + struct.pack("<I", 2)
_HEAD: Final = struct.Struct("<BBBB4sHHI")
_NUMBERS: Final = b"\x10\x00\x00\x00"
_REQUEST, _RESPONSE, _BIND, _BIND_ACK = 0, 2, 11, 12
_WHOLE: Final = 0x3
#: NetrShareGetInfo, and the level with the descriptor.
_GET_INFO: Final = 16
_LEVEL: Final = 502
_OUTER: Final = struct.Struct("<II")
_INFO: Final = struct.Struct("<10I")
_STRING: Final = struct.Struct("<III")
_DENIED: Final = 5


def find_share_level(link: Link, host: str, share: str) -> Level | None:
    """Who may use a share; None where the server does not say it to this user. Raises SMBResponseException and ValueError."""
    tree = TreeConnect(link.tree.session, rf"\\{host}\IPC$")
    try:
        tree.connect()
        tree.is_dfs_share = False
        try:
            content = _ask(Link(link.connection, tree), host, share)
        finally:
            tree.disconnect()
    except SMBResponseException as error:
        if error.status in statuses.WITHHELD:
            return None
        raise
    return None if content is None else descriptors.find_level(content, descriptors.READ)


def _ask(link: Link, host: str, share: str) -> bytes | None:
    with requests.open_pipe(link, _PIPE, _ACCESS) as pipe:
        bind = struct.pack("<HHIIHBB", 4280, 4280, 0, 1, 0, 1, 0) + _INTERFACE + _NDR
        _exchange(link, pipe.handle, _BIND, bind, _BIND_ACK)
        stub = struct.pack("<I", 1) + _text(rf"\\{host}") + _text(share) + struct.pack("<I", _LEVEL)
        request = struct.pack("<IHH", len(stub), 0, _GET_INFO) + stub
        answer = _exchange(link, pipe.handle, _REQUEST, request, _RESPONSE)
    return _read_info(answer[8:])


def _exchange(link: Link, handle: bytes, kind: int, body: bytes, expected: int) -> bytes:
    """Sends a fragment; what the answer to it holds. Raises ValueError where there is no other."""
    message = SMB2IOCTLRequest()
    message["ctl_code"] = _TRANSCEIVE
    message["file_id"] = handle
    message["max_output_response"] = _MOST_BYTES
    message["flags"] = IOCTLFlags.SMB2_0_IOCTL_IS_FSCTL
    message["buffer"] = _HEAD.pack(5, 0, kind, _WHOLE, _NUMBERS, _HEAD.size + len(body), 0, 1) + body
    answer = structures.read_controlled(link.ask(message))
    major, _, found, flags, _, length, _, _ = structures.unpack(_HEAD, answer)
    if major != 5 or found != expected or flags & _WHOLE != _WHOLE or length != len(answer):
        raise ValueError("another answer than was asked for")
    return answer[_HEAD.size :]


def _text(text: str) -> bytes:
    content = f"{text}\0".encode("utf-16-le")
    count = len(content) // 2
    return _STRING.pack(count, 0, count) + content + b"\0" * (-len(content) % 4)


def _read_info(stub: bytes) -> bytes | None:
    """The descriptor of a share; None where the server does not say it. Raises ValueError."""
    status = int.from_bytes(stub[-4:], "little")
    if status == _DENIED:
        return None
    if status:
        raise ValueError("the server does not know its share")
    _, info = structures.unpack(_OUTER, stub)
    fields: Any = structures.unpack(_INFO, stub[_OUTER.size :])
    place = _OUTER.size + _INFO.size
    if not info:
        raise ValueError("an answer without anything")
    for pointer in (fields[0], fields[2], fields[6], fields[7]):
        if pointer:
            _, _, count = structures.unpack(_STRING, stub[place:])
            place += _STRING.size + 2 * count
            place += -place % 4
    if not fields[9]:
        # Samba leaves it out for who is no administrator.
        return None
    content = stub[place + 4 :][: fields[8]]
    if len(content) != fields[8]:
        raise ValueError("a descriptor that is cut short")
    return content
