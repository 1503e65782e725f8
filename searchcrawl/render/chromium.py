"""The process of a browser: who it runs as, what it may do by itself, and how much memory it takes (L7, X-O8).

It is Debian's ``chromium-headless-shell``, in its own sandbox, without the environment of the crawler. Its only way to a
network are proxies on loopback: one for each page, and one that refuses everything for all else.
"""

from __future__ import annotations

import asyncio
import os
import pwd
import shlex
import shutil
import signal
from contextlib import suppress
from pathlib import Path
from typing import Final

from searchcrawl.render.rendered_page import BrowserUnavailable
from searchcrawl.temporary_files import PrivateFolder

_PROGRAM: Final = "chromium-headless-shell"
_KIND: Final = "browser"
#: More than the number of a process has.
_PID_BYTES: Final = 20
#: As whom it runs where the crawler is root: the first of them that the machine has.
_USERS: Final = ("searchcrawl-browser", "nobody")
_HEAD_BYTES: Final = 8 * 1024
_REFUSAL: Final = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_REFUSAL_SECONDS: Final = 5.0
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
#: What one process of the browser may hold of memory of its own; a page that wants more gets none, or its process ends.
_MAX_PROCESS_KB: Final = 2 << 20
_FLAGS: Final = (
    "--headless", "--disable-gpu", "--hide-scrollbars", "--mute-audio", "--no-first-run", "--no-default-browser-check",
    "--disable-background-networking", "--disable-client-side-phishing-detection", "--disable-component-update",
    "--disable-default-apps", "--disable-domain-reliability", "--disable-extensions", "--disable-file-system",
    "--disable-notifications", "--disable-quic", "--disable-sync", "--dns-prefetch-disable", "--no-pings",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp", "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1", "--proxy-bypass-list=<-loopback>",
    "--site-per-process", "--js-flags=--max-old-space-size=512",
    "--disable-features=Translate,OptimizationHints,MediaRouter,DialMediaRouteProvider,SpareRendererForSitePerProcess",
)  # fmt: skip


class RefusingProxy:
    """Listens on loopback and refuses whatever it is asked for. For the event loop."""

    def __init__(self) -> None:
        self._server: asyncio.Server | None = None

    async def open(self) -> int:
        """Begins to listen; returns the port."""
        self._server = await asyncio.start_server(self._refuse, "127.0.0.1", 0, limit=_HEAD_BYTES)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def close(self) -> None:
        """Ends it."""
        if self._server is not None:
            self._server.close()

    async def _refuse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_REFUSAL_SECONDS):
                if await reader.read(_HEAD_BYTES):
                    writer.write(_REFUSAL)
                    await writer.drain()
        except (TimeoutError, ConnectionError):
            # Whoever asked has gone, or says nothing: it gets nothing either way.
            pass
        finally:
            writer.close()


class ChromiumFiles:
    """A private folder with the profile of one browser and the script that starts it; ``remove`` deletes it."""

    def __init__(self, program: str | None = None) -> None:
        """Raises BrowserUnavailable where there is no browser, or nobody to run it as."""
        found = program or find_program()
        self._user = _find_user() if os.geteuid() == 0 else None
        #: as whom it runs
        self.user_id = os.geteuid() if self._user is None else self._user.pw_uid
        if shutil.which("setpriv") is None:
            raise BrowserUnavailable("setpriv is not installed; on Debian: apt-get install util-linux")
        try:
            # Browsers of crawlers that were killed ended with them: their folders go.
            self._private = PrivateFolder(_KIND)
        except OSError as error:
            raise _build_unwritten(error) from error
        self.folder = self._private.path
        #: the folder in it that the browser may write to, and what is executed in place of the browser
        self.profile, self.script = self.folder / "profile", self.folder / "start"
        try:
            self._write(found)
        except OSError as error:
            self.remove()
            raise _build_unwritten(error) from error

    def find_pid(self) -> int | None:
        """The process of the browser; None before it was started."""
        with suppress(OSError, ValueError):
            return int(self._private.read("pid", most=_PID_BYTES))
        return None

    def measure_memory(self) -> int:
        """The bytes of memory of all processes of the browser, as far as they are its alone."""
        pid = self.find_pid()
        return 0 if pid is None else sum(_read_own_bytes(process) for process in _list_group(pid))

    def remove(self) -> None:
        """Deletes the folder; a file that the browser still writes does not matter."""
        self._private.remove()

    def _write(self, program: str) -> None:
        profile = self.profile
        profile.mkdir(mode=0o700)
        as_whom = ["setpriv", "--pdeathsig", "KILL"]
        if self._user is not None:
            # The user of the browser passes the folder, and sees nothing in it but its own.
            self.folder.chmod(0o711)
            os.chown(profile, self._user.pw_uid, self._user.pw_gid)
            as_whom += [f"--reuid={self._user.pw_uid}", f"--regid={self._user.pw_gid}", "--clear-groups"]
        clean = ["env", "-i", f"PATH={os.defpath}", "LANG=C.UTF-8", f"HOME={profile}", f"TMPDIR={profile}"]
        command = shlex.join([*as_whom, *clean, program])
        text = (
            # The limit of whoever started the crawler may be lower.
            f"#!/bin/sh\nulimit -d {_MAX_PROCESS_KB} 2>/dev/null\n"
            f"umask 077\necho $$ > {shlex.quote(str(self.folder / 'pid'))}\ncd {shlex.quote(str(profile))}\n"
            f'exec {command} "$@" --user-data-dir={shlex.quote(str(profile))}\n'
        )
        self.script.write_text(text, encoding="utf-8")
        self.script.chmod(0o700)


def kill_browser(files: ChromiumFiles) -> None:
    """Ends what is left of a browser, and deletes its files."""
    pid = files.find_pid()
    if pid is not None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
    files.remove()


def find_program() -> str:
    """The browser of this machine; raises BrowserUnavailable."""
    found = shutil.which(_PROGRAM)
    if found is None:
        raise BrowserUnavailable(f"{_PROGRAM} is not installed; on Debian: apt-get install {_PROGRAM}")
    return found


def list_flags(proxy_port: int, user_agent: str | None, trusted_key: str) -> list[str]:
    """The arguments of a browser whose requests go to a proxy on this port of loopback, but for those of pages.

    ``trusted_key`` is the digest of the key of an authority whose certificates it takes, besides those of the machine. Without a
    ``user_agent`` it has its own.
    """
    return [
        *_FLAGS,
        f"--proxy-server=http://127.0.0.1:{proxy_port}",
        *([] if user_agent is None else [f"--user-agent={user_agent}"]),
        f"--ignore-certificate-errors-spki-list={trusted_key}",
    ]


def explain_failure(message: str) -> str:
    """What to do where the browser did not start; ``message`` is what it said."""
    if "sandbox" in message.lower():
        return (
            "this machine allows no sandbox for the browser: allow user namespaces to ordinary users (sysctl "
            "user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns=0), or install chromium-sandbox"
        )
    lines = [line for line in message.splitlines() if line.strip()]
    return f"the browser does not start: {' '.join(lines)[:400]}"


def _build_unwritten(error: OSError) -> BrowserUnavailable:
    return BrowserUnavailable(f"the files of the browser cannot be written: {error}")


def _find_user() -> pwd.struct_passwd:
    for name in _USERS:
        with suppress(KeyError):
            return pwd.getpwnam(name)
    raise BrowserUnavailable(f"as root a browser needs a user of its own: add one of {', '.join(_USERS)}")


def _list_group(group: int) -> list[str]:
    """The processes of a process group."""
    found = []
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with suppress(OSError, ValueError):
                # The name in brackets may hold blanks.
                fields = (
                    Path(entry.path, "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
                )
                if int(fields[2]) == group:
                    found.append(entry.name)
    return found


def _read_own_bytes(pid: str) -> int:
    with suppress(OSError, ValueError, IndexError):
        numbers = Path("/proc", pid, "statm").read_text(encoding="ascii").split()
        return (int(numbers[1]) - int(numbers[2])) * _PAGE_BYTES
    return 0
