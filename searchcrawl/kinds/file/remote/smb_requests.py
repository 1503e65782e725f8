"""What is asked in a session with an SMB server: folders, files, and who may read them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final

from smbprotocol.exceptions import SMBException, SMBResponseException
from smbprotocol.open import CreateOptions, FilePipePrinterAccessMask, Open

from searchcrawl.bodies import Body, Spool
from searchcrawl.kinds.file.remote import smb_statuses as statuses
from searchcrawl.kinds.file.remote import smb_structures as structures
from searchcrawl.kinds.file.remote.smb_sessions import Link
from searchcrawl.kinds.file.remote.smb_structures import Facts

READ: Final = FilePipePrinterAccessMask.FILE_READ_DATA | FilePipePrinterAccessMask.FILE_READ_ATTRIBUTES
DESCRIBE: Final = FilePipePrinterAccessMask.READ_CONTROL
LOOK: Final = FilePipePrinterAccessMask.FILE_READ_ATTRIBUTES
_OF_FOLDER: Final = CreateOptions.FILE_DIRECTORY_FILE | CreateOptions.FILE_OPEN_REPARSE_POINT
_OF_FILE: Final = CreateOptions.FILE_NON_DIRECTORY_FILE | CreateOptions.FILE_SEQUENTIAL_ONLY
#: A link itself, and not what it leads to.
_OF_ANY: Final = CreateOptions.FILE_OPEN_REPARSE_POINT
#: What is asked for in one request: several threads share the requests that a server allows at once.
_PIECE_BYTES: Final = 262_144
#: The most of the first dialect.
_SMALL_PIECE_BYTES: Final = 65_536
#: So many descriptors are under way, with three requests each.
_AT_ONCE: Final = 12
#: Owner, group and ACL.
_OF_DESCRIPTOR: Final = 0x7
#: An ACL has 64 kB at most.
_DESCRIPTOR_BYTES: Final = 65_536
_INFORMATION_BYTES: Final = 64
#: Kinds of what is asked for of something open.
_FILE, _SECURITY = 1, 3
#: FileInternalInformation and FileAttributeTagInformation.
_NUMBER, _TAG = 6, 35
#: In related requests: what the first of them opened.
_JUST_OPENED: Final = b"\xff" * 16


def join(names: Sequence[str]) -> str:
    """A path from the share on."""
    return "\\".join(names)


class Opened:
    """Something open: its handle, and what is known of it, once it is closed as of then."""

    def __init__(self, data: bytes) -> None:
        self.handle, self.facts = structures.read_opened(data)


@contextmanager
def _open(link: Link, path: str, access: int, options: int, *, has_facts: bool = True) -> Iterator[Opened]:
    """Opens what is at a path from the share on, and closes it."""
    opened = Opened(link.ask(structures.build_create(path, access, options)))
    try:
        yield opened
    except BaseException as error:
        # A session that broke has no handles any more. In any other what failed is told, and not how it was closed.
        if isinstance(error, SMBResponseException) or not isinstance(error, (SMBException, OSError)):
            with contextlib.suppress(SMBException, OSError):
                link.ask(structures.build_close(opened.handle, has_facts=has_facts))
        raise
    opened.facts = (
        structures.read_closed(link.ask(structures.build_close(opened.handle, has_facts=has_facts))) or opened.facts
    )


def begin_list(link: Link, path: str) -> bytes:
    """Opens a folder to be listed: its handle, which ``end_list`` takes back."""
    return Opened(link.ask(structures.build_create(path, READ, _OF_FOLDER))).handle


def end_list(link: Link, folder: bytes) -> None:
    """Closes a folder that was listed."""
    link.ask(structures.build_close(folder))


def list_more(link: Link, folder: bytes, pattern: str = "*") -> Sequence[tuple[str, Facts]]:
    """The next things of an open folder by name, as far as their names match; nothing at its end."""
    most = _find_piece_bytes(link, link.connection.max_transact_size)
    query, _ = _refer(link, folder).query_directory(pattern, structures.INFORMATION, 0, max_output=most, send=False)
    found = list[tuple[str, Facts]]()
    # In the first part there may be nothing but the folder itself and the one above.
    while not found:
        try:
            found = list(structures.read_entries(structures.read_queried(link.ask(query))))
        except SMBResponseException as error:
            if error.status in {statuses.NO_MORE_FILES, statuses.NO_SUCH_FILE}:
                break
            raise
    return found


def look(link: Link, names: Sequence[str], begin: int) -> Facts:
    """What is at a path; of a link the link. Raises SMBResponseException.

    From the name ``begin`` on each is there as it is spelled: a server opens ``A.txt`` for ``a.txt``, which is another name;
    RemoteFailure says that it is not there.
    """
    with _open(link, join(names), LOOK, _OF_ANY) as opened:
        number = find_number(link, opened.handle)
        tag = b""
        if opened.facts.attributes & structures.REPARSE_POINT:
            tag = _query(link, opened.handle, _TAG)[4:]
    for place in range(begin, len(names)):
        _require_spelling(link, join(names[:place]), names[place])
    return opened.facts._replace(number=number, tag=int.from_bytes(tag, "little"))


def _require_spelling(link: Link, folder: str, name: str) -> None:
    try:
        with _open(link, folder, READ, _OF_FOLDER) as opened:
            names = [found for found, _ in list_more(link, opened.handle, name)]
    except SMBResponseException as error:
        if error.status == statuses.ACCESS_DENIED:
            # It is there, and how it is spelled must not be seen.
            return
        raise
    if names and name not in names:
        raise statuses.describe(statuses.NO_SUCH_FILE)


def open_pipe(link: Link, name: str, access: int) -> AbstractContextManager[Opened]:
    """Opens a pipe of a server, where the link is to its share for pipes."""
    return _open(link, name, access, 0, has_facts=False)


def open_file(link: Link, path: str, access: int) -> AbstractContextManager[Opened]:
    """Opens a file, with whatever a compressed or archived one needs."""
    return _open(link, path, access, _OF_FILE)


def read_file(link: Link, handle: bytes, size: int, spool: Spool) -> Body:
    """The first ``size`` bytes of an open file, or as many as it has by now."""
    most = _find_piece_bytes(link, link.connection.max_read_size)
    while spool.size < size:
        query, _ = _refer(link, handle).read(spool.size, min(most, size - spool.size), send=False)
        try:
            piece = structures.read_piece(link.ask(query))
        except SMBResponseException as error:
            if error.status == statuses.END_OF_FILE:
                break
            raise
        if not piece:
            break
        spool.write(piece)
    return spool.finish()


def find_number(link: Link, handle: bytes) -> int:
    """What tells something open apart on its volume; 0: the server does not say."""
    return int.from_bytes(_query(link, handle, _NUMBER), "little")


def describe(link: Link, handle: bytes) -> bytes:
    """The security descriptor of something open."""
    return structures.read_queried(link.ask(_build_description(handle)))


def describe_folder(link: Link, path: str) -> bytes | None:
    """The security descriptor of a folder; None where it must not be read."""
    try:
        with _open(link, path, DESCRIBE, _OF_FOLDER) as opened:
            return describe(link, opened.handle)
    except SMBResponseException as error:
        if error.status == statuses.ACCESS_DENIED:
            return None
        raise


def describe_files(link: Link, paths: Sequence[str]) -> Iterator[bytes]:
    """What tells the permissions of files apart, in their order: their descriptors, or why one cannot be read."""
    for number in range(0, len(paths), _AT_ONCE):
        some = paths[number : number + _AT_ONCE]
        for requests in [link.send_related(_build_describing(path)) for path in some]:
            yield _receive_description(link, requests)


def _build_describing(path: str) -> list[structures.Message]:
    opening = structures.build_create(path, DESCRIBE, _OF_ANY)
    return [opening, _build_description(_JUST_OPENED), structures.build_close(_JUST_OPENED)]


def _receive_description(link: Link, requests: Sequence[Any]) -> bytes:
    """Waits for each answer, as one that nobody takes stays where it is."""
    found, failure = list[bytes](), b""
    for request in requests:
        try:
            found.append(link.receive(request))
        except SMBResponseException as error:
            if error.status in statuses.LOST:
                raise
            failure = failure or f"failed: {error.status:x}".encode("ascii")
    return failure or structures.read_queried(found[1])


def _query(link: Link, handle: bytes, information: int) -> bytes:
    message = structures.build_query(handle, _FILE, information, _INFORMATION_BYTES)
    return structures.read_queried(link.ask(message))


def _build_description(handle: bytes) -> structures.Message:
    return structures.build_query(handle, _SECURITY, 0, _DESCRIPTOR_BYTES, _OF_DESCRIPTOR)


def _refer(link: Link, handle: bytes) -> Any:
    """Something open, as smbprotocol wants to have it."""
    opened = Open(link.tree, "")
    opened.file_id = handle
    return opened


def _find_piece_bytes(link: Link, most: int) -> int:
    return min(most, _PIECE_BYTES if link.connection.supports_multi_credit else _SMALL_PIECE_BYTES)
