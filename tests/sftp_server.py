"""Starts and stops a real sshd of its own that serves files over SFTP, for tests and benchmarks.

with start_sftp(folder) as server:       # sftp://127.0.0.1:PORT/srv/share
    server.url("/srv/share")

It lets the user who starts it in by a key, shows all that this user may read, and keeps nothing.
"""

from __future__ import annotations

import getpass
import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Final, Self

START_SECONDS: Final = 30.0
#: sshd asks each start for a folder of this name, where it runs as root.
_EMPTY: Final = Path("/run/sshd")
_SETTINGS: Final = """\
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host_key
PidFile none
AuthorizedKeysFile {folder}/authorized_keys
TrustedUserCAKeys {folder}/authority.pub
StrictModes no
UsePAM no
PasswordAuthentication yes
KbdInteractiveAuthentication no
PermitRootLogin yes
MaxStartups 100
MaxSessions 100
LogLevel VERBOSE
Subsystem sftp internal-sftp
Match All
    ForceCommand internal-sftp
"""


class PartMissing(Exception):
    """The server is not installed; the text says what to install."""


class SftpNotStarted(Exception):
    """The server cannot be started; the text is what it says."""


class RunningSftp:
    """One server with its folder, which has its keys, and its log (``folder/log``)."""

    user: Final = getpass.getuser()

    def __init__(self, folder: Path, binary: str) -> None:
        self.folder = folder
        self._binary = binary
        for name in ("host_key", "user_key", "other_key", "authority"):
            self.make_key(name)
        shutil.copy(folder / "user_key.pub", folder / "authorized_keys")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        self.note_host(folder / "host_key.pub")
        (folder / "sshd_config").write_text(_SETTINGS.format(port=self.port, folder=folder), "utf-8")
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def netloc(self) -> str:
        """The host and the port of its URLs."""
        return f"127.0.0.1:{self.port}"

    @property
    def key_file(self) -> Path:
        """The key that lets the user in."""
        return self.folder / "user_key"

    @property
    def known_hosts(self) -> Path:
        """The file in which its key is known."""
        return self.folder / "known_hosts"

    def url(self, path: str | Path) -> str:
        """What ``file.roots`` names."""
        return f"sftp://{self.netloc}{path}"

    def make_key(self, name: str, *options: str) -> Path:
        """A pair of keys in its folder."""
        path = self.folder / name
        _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path), *options)
        return path

    def certify(self, key: Path, *, valid: str) -> None:
        """Makes a certificate for a key, beside it, that holds for a time, as ``-1d:+1d``."""
        authority = str(self.folder / "authority")
        _run("ssh-keygen", "-q", "-s", authority, "-I", "test", "-n", self.user, "-V", valid, f"{key}.pub")

    def note_host(self, public_key: Path) -> None:
        """Has the server known by a public key."""
        kind, key, *_ = public_key.read_text("utf-8").split()
        self.known_hosts.write_text(f"[127.0.0.1]:{self.port} {kind} {key}\n", "utf-8")

    def start(self) -> None:
        """Starts the server and waits until it answers; raises SftpNotStarted."""
        command = [self._binary, "-D", "-e", "-f", str(self.folder / "sshd_config")]
        if setpriv := shutil.which("setpriv"):
            # It does not outlive a test that was killed.
            command = [setpriv, "--pdeathsig", "KILL", "--", *command]
        with (self.folder / "log").open("ab") as log:
            # In a group of its own: each session is a process.
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self.process.poll() is None:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.02)
        self.stop()
        raise SftpNotStarted((self.folder / "log").read_text("utf-8", "replace")[-4000:])

    def stop(self) -> None:
        """Ends the server and all its sessions at once, as a crash does; ``start`` brings it back."""
        process, self.process = self.process, None
        if process is not None:
            for pid in [*_list_below(process.pid), process.pid]:
                _kill(pid)
            process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def start_sftp(folder: Path) -> RunningSftp:
    """Starts a server whose keys are in an empty folder; raises PartMissing or SftpNotStarted."""
    binary = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if binary is None or shutil.which("ssh-keygen") is None:
        raise PartMissing("sshd is not installed (Debian: apt install openssh-server)")
    if os.geteuid() == 0:
        _EMPTY.mkdir(mode=0o755, exist_ok=True)
    server = RunningSftp(folder, binary)
    server.start()
    return server


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, stdin=subprocess.DEVNULL)


def _list_below(pid: int) -> list[int]:
    """The processes that one has started, and those that these have, the lowest first."""
    found = list[int]()
    for name in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in name.read_text("utf-8").split():
            found += [*_list_below(int(child)), int(child)]
    return found


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
