"""The files that ``[fetch]`` names for TLS: each is read once, so that a wrong one stops the source (C10)."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Protocol


class TlsFiles(NamedTuple):
    """Authorities to trust besides the machine's; our certificate, and its key where that is a file of its own."""

    ca_file: Path | None = None
    client_certificate: Path | None = None
    client_key: Path | None = None


class _Project(Protocol):
    def path(self, text: str) -> Path: ...


class _Fetch(Protocol):
    @property
    def ca_file(self) -> str | None: ...
    @property
    def client_certificate(self) -> str | None: ...
    @property
    def client_key(self) -> str | None: ...


def files_of(project: _Project, fetch: _Fetch) -> TlsFiles:
    """The files that a source names, absolute."""
    names = (fetch.ca_file, fetch.client_certificate, fetch.client_key)
    return TlsFiles(*(project.path(name) if name else None for name in names))


def load_into(context: ssl.SSLContext, files: TlsFiles) -> None:
    """Puts the files into ``context``; raises OSError, of which SSLError is one, for a file that is wrong."""
    if files.ca_file is not None:
        context.load_verify_locations(cafile=files.ca_file)
    if files.client_certificate is not None:
        # An encrypted key would be asked for at the terminal: nobody sits there.
        context.load_cert_chain(files.client_certificate, files.client_key, password=_nothing)


def wrong_files(files: TlsFiles) -> Iterator[tuple[str, str]]:
    """The key of ``[fetch]`` and what is wrong, for each file that cannot be used; all of them exist."""
    if files.ca_file is not None and _refusal(TlsFiles(ca_file=files.ca_file)) is not None:
        yield "ca_file", "has no certificates in PEM form"
    if files.client_certificate is None:
        if files.client_key is not None:
            yield "client_key", "is of no use without client_certificate"
        return
    if _refusal(TlsFiles(ca_file=files.client_certificate)) is not None:
        yield "client_certificate", "has no certificate in PEM form"
        return
    error = _refusal(files._replace(ca_file=None))
    if error is not None and files.client_key is None:
        yield "client_certificate", "has no usable key: name its file in client_key"
    elif error is not None:
        fitting = getattr(error, "reason", None) != "KEY_VALUES_MISMATCH"
        yield "client_key", "has no unencrypted key in PEM form" if fitting else "is not the key of client_certificate"


def _refusal(files: TlsFiles) -> OSError | ValueError | None:
    try:
        load_into(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), files)
    except (OSError, ValueError) as error:
        return error
    return None


def _nothing() -> bytes:
    return b""
