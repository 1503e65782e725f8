"""The table ``[file]`` of a source file."""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal
from urllib.parse import unquote

from searchcrawl.exceptions import InvalidUrl
from searchcrawl.kind import FILE
from searchcrawl.sources.privacy import Privacy
from searchcrawl.sources.values import (
    Check,
    Count,
    FilePath,
    ListOf,
    PositiveCount,
    PublicText,
    Table,
    Text,
    key,
    refuse,
    require,
    require_parsed,
)
from searchcrawl.urls import resolve

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{1,20}://")
_SERVERS: Final = tuple(scheme for scheme, port in FILE.ports.items() if port)
#: A server, or a bucket.
_HOST: Final = re.compile(r"(?:[A-Za-z0-9._-]{1,255}|\[[0-9A-Fa-f:.]{2,45}\])(?P<port>:[0-9]{1,5})?")
#: Whose permissions can be read, by the scheme of the root ("file": of this machine); the first is the default.
_PERMISSIONS: Final = {"file": ("posix", "none"), "sftp": ("none", "posix"), "smb": ("smb", "none")}
_NO_PERMISSIONS: Final = ("none",)
#: Keys that are for the roots of some schemes alone.
_FOR: Final = {
    "key_file": ("sftp",),
    "known_hosts": ("sftp",),
    "endpoint": ("s3",),
    "username": _SERVERS,
    "password": _SERVERS,
}
#: Keys that say something about links and devices, which no server shows.
_LOCAL: Final = ("follow_links", "cross_devices")


def _check_root(text: str) -> str:
    if not text.isprintable():
        refuse("must be printable")
    if _SCHEME.match(text):
        _check_remote(text)
    elif ".." in text.split("/"):
        refuse('must have no ".." in it')
    return text


def _check_remote(text: str) -> None:
    """Checks the URL of a folder on a server."""
    scheme, _, rest = text.partition("://")
    if scheme.lower() not in _SERVERS:
        refuse(f"must be the path of a folder, or begin with {', '.join(f'{each}://' for each in _SERVERS)}")
    host, _, path = rest.partition("/")
    if "@" in host:
        refuse("must have no user and no password in it: file.username and file.password are the place for them")
    if "?" in rest or "#" in rest:
        refuse("must have no ? and no # in it: in a name they are written %3F and %23")
    names = [unquote(name) for name in path.split("/")]
    if {".", ".."} & {*names} or "\0" in path or "%00" in path:
        refuse('must have no ".." and no NUL in it')
    found = _HOST.fullmatch(host)
    try:
        resolve(f"{scheme}://{host}/", listed=True)
    except InvalidUrl:
        found = None
    if found is None:
        refuse("must have the name of a server, or of a bucket, after the scheme")
    if scheme.lower() == "s3" and found["port"]:
        refuse("must have the name of a bucket after s3://: file.endpoint is the place for the server")
    if scheme.lower() == "smb" and not names[0]:
        refuse("must have the name of a share after that of the server")


_check_marker: Final = require(
    lambda text: text.isprintable() and "/" not in text and text not in {".", ".."},
    "must be the name of a file in the root",
)


ShownText = Annotated[Text, Privacy.SHOWN]
_check_endpoint: Final = require_parsed(resolve, InvalidUrl, "not an http or https URL")


class FileTable(Table):
    """Which folders are read, and what of them (A1, A9)."""

    roots: ListOf[Annotated[PublicText, Check(_check_root, "path or URL")]] = key(
        (),
        "The folders that are read with all below them: paths (relative ones start at the project), and folders on servers as "
        "`sftp://HOST/PATH`, `smb://HOST/SHARE/PATH`, `dav://HOST/PATH` (WebDAV over http, `davs://` over https) and "
        "`s3://BUCKET/PREFIX`, without user and password. What URLs must escape in a name is written so: `%20`, `%25`.",
    )
    username: ShownText | None = key(
        None, "With folders on servers: the name to log in with; with `s3://` the id of the key."
    )
    password: Annotated[Text, Privacy.SILENT] | None = key(
        None, "Its password, or with `s3://` the secret of the key; best as `{env = …}` or `{file = …}`."
    )
    key_file: FilePath | None = key(
        None, "With `sftp://`: a file with the private key to log in with; `password` opens it where it is encrypted."
    )
    known_hosts: FilePath | None = key(
        None, "With `sftp://`: the file with the keys of servers, as OpenSSH has it; without it `~/.ssh/known_hosts`."
    )
    endpoint: Annotated[Text, Privacy.SHOWN, Check(_check_endpoint, "URL")] | None = key(
        None, "With `s3://`: the URL of the service, as `https://minio.example:9000`; without it that of Amazon."
    )
    hidden: bool = key(
        False, "Read files and folders whose name begins with a dot, or that a share of SMB says to be hidden, too."
    )
    versions: bool = key(
        False,
        "Read what is surely an older version, too: `NAME.~1~`, `NAME~` and `#NAME#` beside `NAME`, and the folders in which "
        "servers keep snapshots (`.snapshot`, `~snapshot`, `#snapshot`, `.zfs`, `@GMT-…`).",
    )
    follow_links: bool = key(False, "Follow symbolic links that lead to something in the same root.")
    cross_devices: bool = key(False, "Read other file systems that are mounted below a root, too.")
    verify_days: Count = key(
        0,
        "Each run reads one file of so many once more, though nothing says that it changed: with a run a day all of them in so "
        "many days. 0 is never.",
        unit="days",
    )
    marker: Annotated[PublicText, Check(_check_marker, "name")] | None = key(
        None, "A file that each root must have in it: one that lacks it is not there, and nothing is removed."
    )
    inline_mb: PositiveCount = key(
        8,
        "A file that is larger is read, kept and converted by way of the disk, in the folder of the cache, and not of memory.",
        unit="MB",
    )
    permissions: Literal["none", "posix", "smb"] | None = key(
        None,
        "Who may see a document in a search as a user: with `posix` those who may read the file by its owner, mode and ACL and may "
        "pass all folders above it, with `smb` those who may by the file's descriptor and that of its share, with `none` everyone. "
        "Without this key `posix` for folders of this machine, `smb` for those of `smb://`, and `none` for all others.",
    )

    @property
    def inline_bytes(self) -> int:
        """The largest body that is held in memory."""
        return self.inline_mb << 20

    def _check_keys(self) -> None:
        schemes = [find_scheme(root) for root in self.roots]
        for name, its in _FOR.items():
            if schemes and getattr(self, name) is not None and not {*its} & {*schemes}:
                refuse(f"only with {' or '.join(f'{scheme}://' for scheme in its)}", key=name)
        for name in _LOCAL:
            if schemes and getattr(self, name) and "file" not in schemes:
                refuse("only with folders of this machine: on servers links and mounts are not to be seen", key=name)
        for scheme in schemes:
            if self.permissions is not None and self.permissions not in _PERMISSIONS.get(scheme, _NO_PERMISSIONS):
                root = "a folder of this machine" if scheme == "file" else f"{scheme}://"
                refuse(f"not for {root}", key="permissions")

    def find_permissions(self, scheme: str) -> str:
        """Which permissions hold for roots with a scheme ("file": those of this machine)."""
        return self.permissions or _PERMISSIONS.get(scheme, _NO_PERMISSIONS)[0]


def find_scheme(root: str) -> str:
    """The scheme of a root as somebody wrote it; ``file`` for a path."""
    return root.partition("://")[0].lower() if _SCHEME.match(root) else "file"
