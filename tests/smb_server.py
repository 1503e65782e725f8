"""Starts and stops a real Samba of its own, for tests.

with start_smb() as server:
    server.root                     # what is in the share; smb://127.0.0.1:PORT/share/

It listens on 127.0.0.1 only. Who may log in are users that each Debian has, with a password that only this server knows; nothing of
the machine is changed. It needs root, as only root may become them.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, NamedTuple, Self

from smbprotocol.connection import Connection
from smbprotocol.open import (
    CreateDisposition,
    DirectoryAccessMask,
    FilePipePrinterAccessMask,
    ImpersonationLevel,
    InfoType,
    Open,
    SMB2SetInfoRequest,
)
from smbprotocol.session import Session
from smbprotocol.tree import TreeConnect

#: The user who crawls.
USER: Final = "daemon"
#: Others, of which the last two are in one group (nogroup).
OTHERS: Final = ("games", "man", "sync", "_apt")
#: No message may show it.
PASSWORD: Final = "s3cret-of-the-share"
START_SECONDS: Final = 60.0
_CONFIGURATION: Final = """
[global]
server role = standalone server
workgroup = TESTS
interfaces = 127.0.0.1
bind interfaces only = yes
smb ports = {port}
disable netbios = yes
server min protocol = SMB2
map to guest = never
guest account = backup
private dir = {folder}/private
lock directory = {folder}/lock
state directory = {folder}/state
cache directory = {folder}/cache
pid directory = {folder}/pid
ncalrpc dir = {folder}/ncalrpc
log file = {folder}/log
passdb backend = tdbsam:{folder}/private/passdb.tdb
load printers = no
host msdfs = yes
mangled names = yes
{more}

[share]
path = {folder}/share
read only = no
vfs objects = acl_xattr

[referring]
path = {folder}/referring
msdfs root = yes
"""


class PartMissing(Exception):
    """Samba, or what it needs, is missing; the text says what to install."""


class SmbNotStarted(Exception):
    """The server cannot be started; the text is what it says."""


class Ace(NamedTuple):
    """An entry of an ACL: who is allowed or denied what."""

    sid: str
    mask: int
    kind: int = 0
    flags: int = 0


class RunningSmb:
    """One server with its folder and its log (``folder/log``)."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self.port = port
        #: what is in the share
        self.root = folder / "share"
        self._binary = _find("smbd")
        self._process: subprocess.Popen[bytes]

    @property
    def url(self) -> str:
        """The root of a source."""
        return f"smb://127.0.0.1:{self.port}/share"

    def configure(self, more: str = "") -> None:
        """Writes the configuration, with more lines for all shares; a server that runs does not read it."""
        text = _CONFIGURATION.format(folder=self.folder, port=self.port, more=more)
        (self.folder / "smb.conf").write_text(text, "utf-8")

    def start(self) -> None:
        """Starts the server and waits until it answers; raises SmbNotStarted."""
        command = [self._binary, "--foreground", "--no-process-group", "-s", str(self.folder / "smb.conf")]
        with (self.folder / "said").open("ab") as said:
            # All its processes are one group, which ends with it.
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True
            )
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.02)
        self.kill()
        raise SmbNotStarted((self.folder / "said").read_text("utf-8", "replace")[-4000:])

    def signal(self, number: int) -> None:
        """Sends a signal to all processes of the server."""
        os.killpg(self._process.pid, number)

    def kill(self) -> None:
        """Ends the server and all its connections at once, as a crash does; ``start`` brings it back."""
        self.signal(signal.SIGKILL)
        self._process.wait()

    def find_sid(self, user: str) -> str:
        """The SID of a user of this server."""
        found = self._run("pdbedit", "-s", str(self.folder / "smb.conf"), "-u", user, "-v")
        return next(line.split()[-1] for line in found.splitlines() if line.startswith("User SID:"))

    def list_readable(self, user: str, names: Sequence[str]) -> set[str]:
        """Those files of the share, by their paths with slashes, that a user gets with the client of Samba."""
        got = self.folder / "got"
        got.mkdir()
        commands = [f'get "{name.replace("/", chr(92))}" {got / str(number)}' for number, name in enumerate(names)]
        subprocess.run(
            [
                _find("smbclient"), "-s", str(self.folder / "smb.conf"), "-p", str(self.port), "-U", f"{user}%{PASSWORD}",
                "//127.0.0.1/share", "-c", ";".join(commands),
            ],
            capture_output=True, check=False, timeout=60,
        )  # fmt: skip
        # One that it could not read has left nothing, or an empty file.
        found = {
            name for number, name in enumerate(names) if (path := got / str(number)).exists() and path.stat().st_size
        }
        shutil.rmtree(got)
        return found

    def hold(self, name: str) -> AbstractContextManager[Any]:
        """Opens a file of the share for itself alone."""
        return self._open(name, FilePipePrinterAccessMask.FILE_READ_DATA, shared=0)

    def describe(self, name: str, *entries: Ace) -> None:
        """Sets the ACL of something in the share, as root."""
        access = DirectoryAccessMask.WRITE_DAC
        with self._open(name, access, user="root") as (opened, link):
            request = SMB2SetInfoRequest()
            request["info_type"] = InfoType.SMB2_0_INFO_SECURITY
            # the ACL alone
            request["additional_information"] = 0x4
            request["file_id"] = opened.file_id
            request["buffer"] = build_descriptor(None, None, entries)
            link.connection.receive(link.connection.send(request, link.session.session_id, link.tree_connect_id))

    @contextmanager
    def _open(self, name: str, access: int, *, user: str = USER, shared: int = 0x7) -> Iterator[Any]:
        connection = Connection(uuid.uuid4(), "127.0.0.1", self.port)
        connection.connect(timeout=30)
        try:
            session = Session(connection, user, PASSWORD, require_encryption=False)
            session.connect()
            tree = TreeConnect(session, r"\\127.0.0.1\share")
            tree.connect()
            opened = Open(tree, name.replace("/", "\\"))
            opened.create(ImpersonationLevel.Impersonation, access, 0, shared, CreateDisposition.FILE_OPEN, 0)
            yield opened, SimpleNamespace(connection=connection, session=session, tree_connect_id=tree.tree_connect_id)
        finally:
            connection.disconnect(True)

    def allow_share(self, *entries: str) -> None:
        """Sets who may use the share, as ``SID:ALLOWED/0x0/READ``."""
        self._run("sharesec", "-s", str(self.folder / "smb.conf"), "share", "-R", ",".join(entries))

    def add_user(self, user: str) -> None:
        self._run("smbpasswd", "-c", str(self.folder / "smb.conf"), "-s", "-a", user, given=f"{PASSWORD}\n{PASSWORD}\n")

    def _run(self, program: str, *arguments: str, given: str = "") -> str:
        done = subprocess.run(
            [_find(program), *arguments], input=given, capture_output=True, text=True, check=False, timeout=60
        )
        if done.returncode:
            raise SmbNotStarted(f"{program}: {done.stdout}{done.stderr}")
        return done.stdout

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # Nothing of it is kept.
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


def start_smb(more: str = "", *, users: Sequence[str] = (USER,)) -> RunningSmb:
    """Starts a server in a folder of its own, which ends with it; raises PartMissing or SmbNotStarted."""
    for program in ("smbd", "smbpasswd", "pdbedit", "sharesec", "smbclient"):
        _find(program)
    if os.geteuid() != 0:
        raise PartMissing("Samba runs as root only")
    for user in users:
        try:
            pwd.getpwnam(user)
        except KeyError:
            raise PartMissing(f"there is no user {user} on this machine") from None
    folder = Path(tempfile.mkdtemp(prefix="samba-"))
    try:
        # Those who log in must get through.
        folder.chmod(0o755)
        for name in ("private", "lock", "state", "cache", "pid", "ncalrpc", "share", "referring"):
            (folder / name).mkdir()
            (folder / name).chmod(0o755)
        server = RunningSmb(folder, _find_port())
        server.configure(more)
        for user in users:
            server.add_user(user)
        server.start()
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return server


def build_descriptor(owner: str | None, group: str | None, entries: Sequence[Ace] | None) -> bytes:
    """A security descriptor in its self-relative form, with an ACL that may be empty, or is none ([MS-DTYP] 2.4.6)."""
    parts = [b"" if sid is None else build_sid(sid) for sid in (owner, group)]
    if entries is not None:
        aces = b"".join(map(_build_ace, entries))
        parts.append(struct.pack("<BBHHH", 2, 0, 8 + len(aces), len(entries), 0) + aces)
    else:
        parts.append(b"")
    places, place = list[int](), 20
    for part in parts:
        places.append(place if part else 0)
        place += len(part)
    return struct.pack("<BBHIIII", 1, 0, 0x8004, places[0], places[1], 0, places[2]) + b"".join(parts)


def build_sid(sid: str) -> bytes:
    """A SID as servers send it."""
    _, _, authority, *numbers = sid.split("-")
    head = struct.pack(">BB6s", 1, len(numbers), int(authority).to_bytes(6, "big"))
    return head + b"".join(struct.pack("<I", int(number)) for number in numbers)


def _build_ace(entry: Ace) -> bytes:
    sid = build_sid(entry.sid)
    return struct.pack("<BBHI", entry.kind, entry.flags, 8 + len(sid), entry.mask) + sid


def _find(program: str) -> str:
    found = shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if found is None:
        raise PartMissing(f"{program} is not installed (Debian: apt install samba samba-vfs-modules smbclient)")
    return found


def _find_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
