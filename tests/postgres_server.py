"""Starts and stops a real PostgreSQL of its own, for tests and benchmarks.

with start_postgres() as server:
    server.create_database("pages")      # postgresql+psycopg://crawler:…@/pages?host=FOLDER

It listens on a socket in its folder only, never waits for the disk, and runs as an unprivileged user, since
PostgreSQL refuses root. Its text is sorted by a language's rules, so that no test relies on the order of bytes.
"""

from __future__ import annotations

import os
import pwd
import re
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Self

import psycopg
from psycopg import sql

OLDEST: Final = 15
USER: Final = "crawler"
#: Nobody checks it; no message may show it.
PASSWORD: Final = "s3cret-of-the-store"
START_SECONDS: Final = 60.0
_VERSION: Final = re.compile(r"\(PostgreSQL\) (\d+)")
_SETTINGS: Final[Mapping[str, str]] = {
    "listen_addresses": "",
    "fsync": "off",
    "shared_buffers": "64MB",
    "max_connections": "200",
    # A database a test is copied from another: no checkpoint each time.
    "max_wal_size": "4GB",
    "checkpoint_timeout": "1h",
}
#: All rows of all tables, and the numbers that were given to them.
_EMPTY: Final = """
    DO $$ DECLARE found record; BEGIN
        FOR found IN SELECT oid::regclass AS name, relkind FROM pg_class
            WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'S') AND relname <> 'revision'
        LOOP
            IF found.relkind = 'r' THEN EXECUTE format('DELETE FROM %s', found.name);
            ELSE PERFORM setval(found.name, 1, false); END IF;
        END LOOP;
    END $$
"""


class PartMissing(Exception):
    """PostgreSQL, or a user that may run it, is missing; the text says what to install."""


class PostgresNotStarted(Exception):
    """The server cannot be started; the text is what it says."""


class RunningPostgres:
    """One server with its folder and its log (``folder/log``)."""

    def __init__(self, folder: Path, binaries: Path) -> None:
        self.folder = folder
        self._binaries = binaries
        self.process: subprocess.Popen[bytes]

    def url(self, database: str) -> str:
        """What ``store.url`` names."""
        return f"postgresql+psycopg://{USER}:{PASSWORD}@/{database}?host={self.folder}"

    def connect(self, database: str = "postgres", **options: Any) -> psycopg.Connection[tuple[Any, ...]]:
        """A connection of the driver's own, which commits each statement."""
        return psycopg.connect(host=str(self.folder), user=USER, dbname=database, autocommit=True, **options)

    def create_database(self, name: str | None = None, *, template: str = "template0") -> str:
        """Makes an empty database, or a copy of one that nobody uses; its URL."""
        name = name or f"test_{uuid.uuid4().hex[:12]}"
        with self.connect() as connection:
            connection.execute(
                sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(template))
            )
        return self.url(name)

    def drop_database(self, name: str) -> None:
        """Removes a database with whoever is connected to it."""
        with self.connect() as connection:
            connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))

    def empty_database(self, name: str) -> None:
        """Makes a database of ours as it was before its first row; nobody stays connected. Cheaper than another one."""
        with self.connect() as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = %s", [name]
            )
        with self.connect(name) as connection:
            connection.execute("SET session_replication_role = replica")
            connection.execute(_EMPTY)

    def start(self) -> None:
        """Starts the server on its folder and waits until it answers; raises PostgresNotStarted."""
        settings = [f"-c{name}={value}" for name, value in _SETTINGS.items()]
        command = [str(self._binaries / "postgres"), "-D", str(self.folder / "data"), "-k", str(self.folder), *settings]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                _unprivileged(command, end_with_us=True),
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                self.connect(connect_timeout=5).close()
            except psycopg.OperationalError:
                time.sleep(0.05)
            else:
                return
        self.stop()
        raise PostgresNotStarted((self.folder / "log").read_text("utf-8", "replace")[-4000:])

    def kill(self) -> None:
        """Ends the server and all its connections at once, as a crash does; ``start`` brings it back."""
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait(60)

    def stop(self) -> None:
        """Ends the server, by SIGKILL where it does not."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


def start_postgres() -> RunningPostgres:
    """Starts an empty server in a folder of its own, which ends with it; raises PartMissing or PostgresNotStarted."""
    binaries = _find_binaries()
    # Not below the folders of a test: the unprivileged user may not look into those.
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    try:
        if os.geteuid() == 0:
            user = _unprivileged_user()
            os.chown(folder, user.pw_uid, user.pw_gid)
        _init(folder, binaries)
        server = RunningPostgres(folder, binaries)
        server.start()
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return server


def _init(folder: Path, binaries: Path) -> None:
    command = [str(binaries / "initdb"), "-D", str(folder / "data"), "-U", USER, "--auth=trust", "--no-sync"]
    command += ["--encoding=UTF8", "--locale=C", "--locale-provider=icu", "--icu-locale=en", "--no-instructions"]
    done = subprocess.run(_unprivileged(command), cwd=folder, capture_output=True, text=True, check=False, timeout=120)
    if done.returncode != 0:
        raise PostgresNotStarted(done.stdout + done.stderr)


def _find_binaries() -> Path:
    """The newest PostgreSQL of this machine; Debian keeps each version in a folder of its own."""
    on_path = shutil.which("postgres")
    folders = [*Path("/usr/lib/postgresql").glob("*/bin"), *([Path(on_path).resolve().parent] if on_path else [])]
    found = {_version(folder): folder for folder in folders if (folder / "initdb").exists()}
    if not found or max(found) < OLDEST:
        raise PartMissing(f"PostgreSQL {OLDEST} or newer is not installed (Debian: apt install postgresql)")
    return found[max(found)]


def _version(binaries: Path) -> int:
    said = subprocess.run([binaries / "postgres", "--version"], capture_output=True, text=True, check=False).stdout
    number = _VERSION.search(said)
    return int(number[1]) if number else 0


def _unprivileged_user() -> pwd.struct_passwd:
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise PartMissing("there is no user postgres: PostgreSQL does not run as root")


def _unprivileged(command: Sequence[str], *, end_with_us: bool = False) -> list[str]:
    """The command as a user that PostgreSQL accepts; ``end_with_us``: it does not outlive a test that was killed."""
    setpriv = shutil.which("setpriv")
    options = ["--pdeathsig", "INT"] if end_with_us else []
    if os.geteuid() == 0:
        if setpriv is None:
            raise PartMissing("setpriv is not installed (Debian: apt install util-linux)")
        user = _unprivileged_user()
        options += [f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
    return [setpriv, *options, "--", *command] if setpriv and options else list(command)
