"""Real WebDAV servers, each with a folder of its own: wsgidav in a thread, and Apache with mod_dav in a process.

with start_wsgidav(folder) as server:
    server.url                          # dav://127.0.0.1:PORT
    server.requests                     # [("PROPFIND", "/"), ("GET", "/a.txt"), …]
"""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, Self

USER: Final = "anna"
#: No message may show it.
PASSWORD: Final = "s3cret-of-the-share"
_START_SECONDS: Final = 20.0
#: What a server answers instead of what it would, to a request of this method for this path: a status, and headers.
Instead = Callable[[str, str], tuple[str, list[tuple[str, str]], bytes] | None]


class PartMissing(Exception):
    """Apache is missing; the text says what to install."""


class Wsgidav:
    """wsgidav behind cheroot; ``instead`` may answer in its place. ``login``: ``basic``, ``digest`` or nothing."""

    def __init__(self, root: Path, *, login: str = "", tls: Any = None) -> None:
        self.root = root
        self.requests: list[tuple[str, str]] = []
        self.instead: Instead = lambda method, path: None
        self._login = login
        self._tls = tls
        # The library lets nobody have the port again of a server that was given any.
        self.port = _find_port()
        self.start()

    @property
    def url(self) -> str:
        return f"dav://127.0.0.1:{self.port}"

    def count(self, method: str) -> int:
        """How many requests there were."""
        return sum(each == method for each, _ in self.requests)

    def start(self) -> None:
        """Starts the server, at the port that it had before."""
        from cheroot.wsgi import Server

        self._server = Server(("127.0.0.1", self.port), self._serve, numthreads=4, shutdown_timeout=0.1)
        self._server.ssl_adapter = self._tls
        self._application = _build_application(self.root, self._login)
        self._server.prepare()
        self._thread = threading.Thread(target=self._server.serve, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stops the server: nothing listens any more."""
        self._server.stop()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _serve(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        method, path = environ["REQUEST_METHOD"], environ.get("REQUEST_URI", environ["PATH_INFO"])
        self.requests.append((method, path))
        instead = self.instead(method, path)
        if instead is not None:
            status, headers, body = instead
            start_response(status, [*headers, ("Content-Length", str(len(body)))])
            return [body]
        found: Iterable[bytes] = self._application(environ, start_response)
        return found


def start_wsgidav(root: Path, *, login: str = "", tls: Any = None) -> Wsgidav:
    """Starts wsgidav with a folder, over TLS where it is given an adapter of cheroot's."""
    return Wsgidav(root, login=login, tls=tls)


def _find_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        found: int = free.getsockname()[1]
        return found


def _build_application(root: Path, login: str) -> Any:
    from wsgidav.wsgidav_app import WsgiDAVApp

    return WsgiDAVApp({
        "provider_mapping": {"/": str(root)},
        "http_authenticator": {
            "domain_controller": None,
            "accept_basic": login != "digest",
            "accept_digest": login == "digest",
            "default_to_digest": login == "digest",
        },
        "simple_dc": {"user_mapping": {"*": {USER: {"password": PASSWORD}} if login else True}},
        "verbose": 0,
        "logging": {"enable": False},
        "lock_storage": False,
    })  # fmt: skip


_APACHE: Final = """\
ServerRoot "{folder}"
ServerName 127.0.0.1
Listen 127.0.0.1:{port}
PidFile "{folder}/pid"
ErrorLog "{folder}/error"
LogFormat "%m %U" short
CustomLog "{folder}/access" short
DefaultRuntimeDir "{folder}"
Mutex "file:{folder}" default
{modules}
{user}
TypesConfig /dev/null
DocumentRoot "{root}"
DavLockDB "{folder}/locks"
EnableSendfile off
<Directory "{root}">
  Dav On
  DirectoryIndex disabled
  Options FollowSymLinks
  {rights}
</Directory>
"""
_MODULES: Final = (
    *("mpm_event", "authz_core", "authn_core", "authn_file", "authz_user", "auth_basic", "auth_digest"),
    *("dav", "dav_fs", "dir", "mime"),
)


class Apache:
    """Apache with mod_dav; its tree is ``root``."""

    def __init__(self, folder: Path, binary: str, login: str) -> None:
        self._folder = folder
        self._binary = binary
        self.root = folder / "root"
        self.root.mkdir()
        self.port = _find_port()
        rights = "Require all granted"
        if login:
            rights = _write_login(folder, login)
        modules = "\n".join(f"LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so" for name in _MODULES)
        user = "User nobody\nGroup nogroup" if os.geteuid() == 0 else ""
        text = _APACHE.format(folder=folder, port=self.port, root=self.root, modules=modules, user=user, rights=rights)
        (folder / "conf").write_text(text, "utf-8")
        self.start()

    @property
    def url(self) -> str:
        return f"dav://127.0.0.1:{self.port}"

    @property
    def requests(self) -> list[tuple[str, str]]:
        lines = (self._folder / "access").read_text("utf-8", "replace").splitlines()
        return [(method, path) for method, _, path in (line.partition(" ") for line in lines)]

    def count(self, method: str) -> int:
        """How many requests there were."""
        return sum(each == method for each, _ in self.requests)

    def start(self) -> None:
        """Starts the server and waits until it answers."""
        self._process = subprocess.Popen(
            [self._binary, "-DFOREGROUND", "-f", str(self._folder / "conf")],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.05)
        self.stop()
        raise RuntimeError((self._folder / "error").read_text("utf-8", "replace")[-2000:])

    def stop(self) -> None:
        """Stops the server: nothing listens any more."""
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(_START_SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)


def start_apache(*, login: str = "") -> Apache:
    """Starts Apache with an empty tree in a folder of its own, which ends with it; raises PartMissing."""
    binary = shutil.which("apache2", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if binary is None:
        raise PartMissing("Apache is not installed (Debian: apt install apache2-bin)")
    # Not below the folders of a test: its workers run as another user, who may not look into those.
    folder = Path(tempfile.mkdtemp(prefix="apache-"))
    folder.chmod(0o777)
    try:
        return Apache(folder, binary, login)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _write_login(folder: Path, login: str) -> str:
    """The directives by which only the user is let in, who is written to a file."""
    realm = "files"
    if login == "digest":
        secret = hashlib.md5(f"{USER}:{realm}:{PASSWORD}".encode()).hexdigest()
        (folder / "users").write_text(f"{USER}:{realm}:{secret}\n", "utf-8")
    else:
        secret = base64.b64encode(hashlib.sha1(PASSWORD.encode()).digest()).decode()
        (folder / "users").write_text(f"{USER}:{{SHA}}{secret}\n", "utf-8")
    return f'AuthType {login.title()}\n  AuthName {realm}\n  AuthUserFile "{folder}/users"\n  Require valid-user'
