"""Starts and stops a real MariaDB of its own, for tests and benchmarks.

with start_mariadb() as server:
    server.create_database("shop")       # mysql+pymysql://crawler:…@localhost/shop?unix_socket=FOLDER/socket

It listens on a socket in its folder only, never waits for the disk, and runs as an unprivileged user.
"""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Final, Self

import pymysql

USER: Final = "crawler"
#: No message may show it.
PASSWORD: Final = "s3cret-of-the-shop"
START_SECONDS: Final = 60.0
_OPTIONS: Final = (
    "--skip-networking", "--innodb-flush-log-at-trx-commit=2", "--innodb-buffer-pool-size=64M", "--innodb-log-file-size=32M",
    "--character-set-server=utf8mb4", "--collation-server=utf8mb4_general_ci", "--default-time-zone=+05:30", "--sql-mode=",
    "--max-allowed-packet=256M",
)  # fmt: skip


class PartMissing(Exception):
    """MariaDB, or a user that may run it, is missing; the text says what to install."""


class MariadbNotStarted(Exception):
    """The server cannot be started; the text is what it says."""


class RunningMariadb:
    """One server with its folder and its log (``folder/log``)."""

    def __init__(self, folder: Path, binary: str) -> None:
        self.folder = folder
        self._binary = binary
        self.process: subprocess.Popen[bytes]

    def url(self, database: str, *, user: str = USER, password: str = PASSWORD) -> str:
        """What ``table.url`` names."""
        return f"mysql+pymysql://{user}:{password}@localhost/{database}?unix_socket={self.folder / 'socket'}"

    def connect(self, database: str | None = None, *, autocommit: bool = True) -> pymysql.connections.Connection[Any]:
        """A connection of the driver's own, as the owner of all databases."""
        return pymysql.connect(
            unix_socket=str(self.folder / "socket"),
            user="root",
            database=database,
            autocommit=autocommit,
            init_command="SET time_zone = '+00:00'",
        )

    def execute(self, database: str | None, *statements: str) -> None:
        """Executes statements one after the other."""
        with self.connect(database) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def create_database(self, name: str) -> str:
        """Makes an empty database whose user may read it; its URL."""
        self.execute(
            None,
            f"CREATE DATABASE {name}",
            f"CREATE USER IF NOT EXISTS {USER}@localhost IDENTIFIED BY '{PASSWORD}'",
            # It may also write, and see transactions of others: what keeps it from writing is not a right.
            f"GRANT ALL ON {name}.* TO {USER}@localhost",
            f"GRANT PROCESS ON *.* TO {USER}@localhost",
        )
        return self.url(name)

    def start(self) -> None:
        """Starts the server on its folder and waits until it answers; raises MariadbNotStarted."""
        command = [
            self._binary,
            "--no-defaults",
            f"--datadir={self.folder / 'data'}",
            f"--socket={self.folder / 'socket'}",
        ]
        command += [f"--pid-file={self.folder / 'pid'}", *_OPTIONS]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                _unprivileged(command), cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self.process.poll() is None:
            # The driver would leave a socket open where nobody answers.
            with socket.socket(socket.AF_UNIX) as probe:
                if probe.connect_ex(str(self.folder / "socket")) == 0:
                    return
            time.sleep(0.05)
        self.kill()
        raise MariadbNotStarted((self.folder / "log").read_text("utf-8", "replace")[-4000:])

    def kill(self) -> None:
        """Ends the server and all its connections at once, as a crash does; ``start`` brings it back."""
        self.process.kill()
        self.process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # Nothing of it is kept.
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


def start_mariadb() -> RunningMariadb:
    """Starts an empty server in a folder of its own, which ends with it; raises PartMissing or MariadbNotStarted."""
    binary, install = _find("mariadbd"), _find("mariadb-install-db")
    if binary is None or install is None:
        raise PartMissing("MariaDB is not installed (Debian: apt install mariadb-server)")
    # Not below the folders of a test: the unprivileged user may not look into those, and the path of a socket is short.
    folder = Path(tempfile.mkdtemp(prefix="maria-"))
    try:
        if os.geteuid() == 0:
            user = _unprivileged_user()
            os.chown(folder, user.pw_uid, user.pw_gid)
        command = [install, "--no-defaults", f"--datadir={folder / 'data'}", "--auth-root-authentication-method=normal"]
        command += ["--skip-test-db", "--skip-name-resolve"]
        done = subprocess.run(
            _unprivileged(command), cwd=folder, capture_output=True, text=True, check=False, timeout=120
        )
        if done.returncode != 0:
            raise MariadbNotStarted(done.stdout + done.stderr)
        server = RunningMariadb(folder, binary)
        server.start()
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return server


def _find(program: str) -> str | None:
    return shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin")


def _unprivileged_user() -> pwd.struct_passwd:
    for name in ("mysql", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise PartMissing("there is no user mysql: MariaDB does not run as root")


def _unprivileged(command: list[str]) -> list[str]:
    """The command as a user that MariaDB accepts; it does not outlive a test that was killed."""
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        raise PartMissing("setpriv is not installed (Debian: apt install util-linux)")
    options = ["--pdeathsig", "KILL"]
    if os.geteuid() == 0:
        user = _unprivileged_user()
        options += [f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
    return [setpriv, *options, "--", *command]
