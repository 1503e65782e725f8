"""Values from the environment or from a file: ``{env = "NAME"}``, ``{file = "PATH"}`` (X-O3).

A resolved value is used and never shown: messages and ``sources show`` have its reference, and ``redact`` removes it
from texts that others made (log lines, errors of libraries).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, unquote, urlsplit

from searchcrawl.exceptions import ConfigurationError

HIDDEN: Final = "***"

_KINDS: Final = frozenset({"env", "file"})
_MAX_BYTES: Final = 64 * 1024
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
#: Shorter values are parts of ordinary words: they are not searched for.
LEAST_CHARACTERS: Final = 4


class Secret(str):
    """A value with the reference it came from; its ``repr`` shows the reference alone."""

    __slots__ = ("kind", "source")

    kind: str
    source: str

    @classmethod
    def of(cls, value: str, *, kind: str, source: str) -> Secret:
        """``value``, which is in ``source``: the variable (``env``) or the path (``file``) of this name."""
        secret = cls(value)
        secret.kind, secret.source = kind, source
        return secret

    @property
    def reference(self) -> dict[str, str]:
        """As in the file of the project: ``{"env": "NAME"}``."""
        return {self.kind: self.source}

    def __repr__(self) -> str:
        return f"{{{self.kind} = {json.dumps(self.source, ensure_ascii=False)}}}"


class Concealed(str):
    """A credential that was written into a file of the project itself; its ``repr`` is only stars."""

    __slots__ = ()

    def __repr__(self) -> str:
        return HIDDEN


def is_reference(value: object) -> bool:
    """Whether a value of a file is ``{env = …}`` or ``{file = …}``, right or wrong."""
    return isinstance(value, Mapping) and len(value) == 1 and set(value) <= _KINDS


def resolve_reference(reference: Mapping[str, Any], *, root: Path, file: str, key: str, public: bool) -> Secret:
    """The value of a reference; raises ConfigurationError, which never shows the value.

    From now on ``redact`` removes it, unless it is ``public``. Line ends at its end are removed. Paths start at ``root``; a file has at most 64 KB.
    """
    ((kind, source),) = reference.items()
    if not isinstance(source, str) or not source or not source.isprintable():
        what = "the name of a variable" if kind == "env" else "the path of a file"
        raise ConfigurationError(file, key, f"{kind} must be {what}")
    try:
        value = (_variable(source) if kind == "env" else _content(root / source)).decode("utf-8-sig").rstrip("\r\n")
    except _Unreadable as error:
        raise ConfigurationError(file, key, f"{_named(kind, source)} {error}") from None
    except UnicodeDecodeError:
        # The text of the error would quote the bytes.
        raise ConfigurationError(file, key, f"{_named(kind, source)} is not UTF-8") from None
    if not value:
        raise ConfigurationError(file, key, f"{_named(kind, source)} is empty")
    if not public:
        hide(value)
    return Secret.of(value, kind=kind, source=source)


def find_secrets(value: Any, place: str = "") -> Iterator[tuple[str, Secret]]:
    """All secrets in tables, with the place of each: ``fetch.headers.X-Key``, ``start.urls[0]``."""
    if isinstance(value, Secret):
        yield place, value
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from find_secrets(inner, f"{place}.{name}".lstrip("."))
    elif isinstance(value, list | tuple):
        for number, inner in enumerate(value):
            yield from find_secrets(inner, f"{place}[{number}]")


def replace_secrets(text: str, secrets: Iterable[Secret]) -> str:
    """``text`` with the reference of each of ``secrets`` instead of its value, as messages quote it."""
    for secret in secrets:
        text = text.replace(json.dumps(secret, ensure_ascii=False), json.dumps(secret.reference, ensure_ascii=False))
        if len(secret) >= LEAST_CHARACTERS:
            text = text.replace(secret, HIDDEN)
    return text


class _Unreadable(Exception):
    """The reason why there is no value."""


def _named(kind: str, source: str) -> str:
    if kind == "file":
        return f"the file {source}"
    # Somebody may have written the secret itself in place of the name.
    return f"the environment variable {source if _VARIABLE.fullmatch(source) else HIDDEN}"


def _variable(name: str) -> bytes:
    value = os.environb.get(os.fsencode(name))
    if value is None:
        raise _Unreadable("is not set")
    return value


def _content(path: Path) -> bytes:
    if path.exists() and not path.is_file():
        raise _Unreadable("is no regular file")
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise _Unreadable(f"cannot be read ({error.strerror})") from None
    if len(content) > _MAX_BYTES:
        raise _Unreadable(f"has more than {_MAX_BYTES} bytes")
    return content


class _Hidden:
    """The values that no text of this process may show, in every form in which a text may contain them."""

    def __init__(self) -> None:
        self.values: set[str] = set()
        self._forms: set[str] = set()
        self._pattern: re.Pattern[str] | None = None

    def add(self, value: str) -> None:
        self.values.add(value)
        forms = {value, repr(value)[1:-1], json.dumps(value)[1:-1], quote(value), quote(value, safe="")}
        forms |= {line for line in value.splitlines() if len(line) > 2 * LEAST_CHARACTERS}
        # So a host and a media type are written.
        forms |= {form.lower() for form in forms}
        new = {form for form in forms if len(form) >= LEAST_CHARACTERS} - self._forms
        if new:
            self._forms |= new
            self._pattern = None

    def taken_out(self, text: str) -> str:
        if not self._forms:
            return text
        if self._pattern is None:
            # The longest come first: one may be the beginning of another.
            ordered = sorted(self._forms, key=len, reverse=True)
            self._pattern = re.compile("|".join(map(re.escape, ordered)))
        return self._pattern.sub(HIDDEN, text)


_HIDDEN_VALUES: Final = _Hidden()


def hide(value: str) -> None:
    """Lets ``redact`` remove ``value`` from now on, and if it is a URL its password as well."""
    _HIDDEN_VALUES.add(value)
    hide_password(value)


def list_hidden() -> tuple[str, ...]:
    """What ``redact`` removes in this process: another one that works for it has to ``hide`` the same."""
    return tuple(sorted(_HIDDEN_VALUES.values))


def hide_password(url: str) -> None:
    """Lets ``redact`` remove the password of ``url`` from now on, if it has one."""
    try:
        password = urlsplit(url).password
    except ValueError:
        return
    if password:
        _HIDDEN_VALUES.add(password)
        _HIDDEN_VALUES.add(unquote(password))


def redact(text: str) -> str:
    """``text`` without what is hidden in this process."""
    return _HIDDEN_VALUES.taken_out(text)
