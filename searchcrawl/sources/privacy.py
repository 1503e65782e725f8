"""How much of a configured value may be shown: a key says it by its type, and one that says nothing is a secret (X-O3).

``privacy_of`` reads it from the model of the file; ``mask`` makes of a value what messages and ``sources show`` have of
it. A reference (``{env = …}``) is shown everywhere, its value nowhere but where the key is public.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import IntEnum
from functools import cache
from typing import Annotated, Any, Final, Literal, get_args, get_origin

from pydantic import BaseModel

from searchcrawl.sources.secrets import HIDDEN, LEAST_CHARACTERS, Secret

#: A password in a URL, also in one without its scheme, a user without a password, and a password as a parameter.
_PASSWORD: Final = re.compile(
    r"(?P<user>(?:://|^(?![a-z0-9+.-]+://))[^/?#\s:@\"]*:)(?P<password>.+)@"
    r"|(?P<scheme>://)(?P<token>[^/?#\s:@\"]+)@"
    r"|(?P<key>\w*password=)(?P<value>[^&\s\"]+)",
    re.IGNORECASE | re.DOTALL,
)
#: What follows the path of a URL.
_QUERY: Final = re.compile(r"(?<=://)(?P<before>[^?#\s]*)(?P<query>[?#].+)", re.DOTALL)
_PARAMETERS: Final = re.compile(r"([?#&;])")
_PARTS: Final = re.compile(r"[?#&;=]")
_LEAST_OF_QUERY: Final = 8
#: Names that say that their value is a credential, in any spelling.
_CREDENTIAL: Final = re.compile(
    r"(?:^|[_\W])(?:PASS|PASSWD|PASSWORD|PASSPHRASE|PWD|SECRETS?|TOKENS?|(?:API)?KEY|ACCESS_KEY_ID|AUTH|AUTHORIZATION"
    r"|CREDENTIALS?|COOKIES?|DSN)(?:[_\W]|$)"
)
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
#: Headers whose values are no credentials.
_HARMLESS: Final = frozenset({
    "accept", "accept-charset", "accept-encoding", "accept-language", "cache-control", "dnt", "from",
    "if-modified-since", "if-none-match", "pragma", "priority", "referer", "save-data", "te", "transfer-encoding",
    "upgrade-insecure-requests", "user-agent",
})  # fmt: skip
#: Names of headers, cookies and fields; in place of any other one there may be a credential.
_NAME: Final = re.compile(
    r"x(-[a-z]+)+|(php|j|asp|jsp)?sess(ion)?[-_.]?id"
    r"|(accept|access|action|agree|api|app|auth|back|authorization|client|connection|consent|cookie|cookies|content|csrf|encoding"
    r"|host|id|key|lang|language|length|login|me|mode|name|next|page|pass|password|private|proxy|remember|return|secret|session|sid|site|submit|token|type|view"
    r"|user|xsrf)([-_](access|api|auth|authorization|client|id|key|language|length|me|middleware|name|secret|session"
    r"|site|token|type|user|csrf))*",
    re.IGNORECASE,
)


class Privacy(IntEnum):
    """How much of the value of a key may be shown; the later, the less."""

    #: All: it is sent to every host, or stands in answers. Only passwords in URLs are not shown.
    PUBLIC = 0
    #: Text that was written into the file itself, but no query of a URL. Logs never have it from a reference.
    SHOWN = 1
    #: The same, and nothing below a name that is that of a credential.
    BY_NAME = 2
    #: Only what is too short for a credential, and names of which it is known that they are names.
    SECRET = 3
    #: Nothing, not even of a wrong value.
    SILENT = 4


class Reference(dict[str, str]):
    """Where a secret comes from, as ``{"env": "NAME"}``."""


@cache
def privacy_of(model: type[BaseModel], name: str) -> Privacy:
    """The privacy of a field of ``model``; a table is a secret if a key in it is. For keys of a user's own the model says it."""
    field = model.model_fields.get(name)
    if field is None:
        return getattr(model, "own_privacy", Privacy.PUBLIC)
    own = next((each for each in field.metadata if isinstance(each, Privacy)), Privacy.SECRET)
    return max(_find_texts(field.annotation, own), default=Privacy.PUBLIC)


def _find_texts(annotation: Any, privacy: Privacy) -> Iterator[Privacy]:
    """The privacy of each text that a value of this type may have in it."""
    if annotation is str or annotation is Any:
        yield privacy
    elif isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield from (min(privacy_of(annotation, name), Privacy.SECRET) for name in annotation.model_fields)
    elif get_origin(annotation) is Annotated:
        inner, *more = get_args(annotation)
        yield from _find_texts(inner, next((each for each in more if isinstance(each, Privacy)), privacy))
    elif get_origin(annotation) is not Literal:
        for inner in get_args(annotation):
            yield from _find_texts(inner, privacy)


def mask(value: Any, privacy: Privacy, hidden: set[str] | None = None) -> Any:
    """``value`` as it may be shown; texts that are left out of it are added to ``hidden``, names excepted."""
    if isinstance(value, Secret):
        return Reference(value.reference)
    if isinstance(value, Reference) or value is None or isinstance(value, bool):
        return value
    if isinstance(value, Mapping):
        return _mask_table(value, privacy, hidden)
    if isinstance(value, list | tuple):
        return [mask(item, privacy, hidden) for item in value]
    if privacy <= Privacy.BY_NAME:
        return _mask_urls(value, privacy, hidden) if isinstance(value, str) else value
    if privacy is Privacy.SECRET and len(str(value)) < LEAST_CHARACTERS:
        return value
    if hidden is not None:
        hidden.add(str(value))
    return HIDDEN if value != "" else value


def show_name(name: str, value: Any, privacy: Privacy) -> str:
    """The name of an entry in a table of this privacy, or stars: name and value may have been swapped."""
    if privacy < Privacy.BY_NAME or isinstance(value, Secret | Reference):
        return str(_mask_urls(name, privacy, None))
    if privacy is Privacy.BY_NAME:
        if isinstance(value, str) and is_credential(value):
            return HIDDEN
        return str(_mask_urls(name, privacy, None))
    return name if _is_name(name) else HIDDEN


def privacy_below(privacy: Privacy, name: str) -> Privacy:
    """The privacy of the entry of this name in a table of this privacy."""
    if privacy is Privacy.BY_NAME and is_credential(name):
        return Privacy.SILENT
    return Privacy.SHOWN if privacy is Privacy.SECRET and name.lower() in _HARMLESS else privacy


def is_credential(name: str) -> bool:
    """Whether a setting, or a key in it, of this name holds something that is to be kept secret."""
    return _CREDENTIAL.search(_CAMEL.sub("_", name).upper()) is not None


def _mask_table(table: Mapping[Any, Any], privacy: Privacy, hidden: set[str] | None) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in table.items():
        name = str(key)
        if privacy is Privacy.BY_NAME:
            _mask_urls(name, privacy, hidden)
        shown = show_name(name, value, privacy)
        number = 1
        while shown in found:
            number += 1
            shown = f"{show_name(name, value, privacy)} ({number})"
        found[shown] = mask(value, privacy_below(privacy, name), hidden)
    return found


def _mask_urls(text: str, privacy: Privacy, hidden: set[str] | None) -> str:
    """``text`` without passwords of URLs, and if it is not public without their queries."""

    def leave_out(found: re.Match[str]) -> str:
        if hidden is not None:
            hidden.update(filter(None, found.group("password", "token", "value")))
        if found["key"]:
            return f"{found['key']}{HIDDEN}"
        if found["scheme"]:
            return f"{found['scheme']}{_mask_long(found['token'])}@"
        return f"{found['user']}{HIDDEN}@"

    def leave_query_out(found: re.Match[str]) -> str:
        if hidden is not None:
            # What is shorter is a word that logs need, as in ?action=login.
            parts = _PARTS.split(found["query"])
            hidden.update(part for part in parts if len(part) >= _LEAST_OF_QUERY and not _is_name(part))
        return found["before"] + "".join(map(_mask_parameter, _PARAMETERS.split(found["query"])))

    shown = _PASSWORD.sub(leave_out, text)
    return shown if privacy is Privacy.PUBLIC else _QUERY.sub(leave_query_out, shown)


def _mask_parameter(part: str) -> str:
    name, equals, value = part.partition("=")
    if not equals:
        return _mask_long(part)
    return f"{name if _is_name(name) else HIDDEN}={_mask_long(value)}"


def _mask_long(text: str) -> str:
    return text if len(text) < LEAST_CHARACTERS else HIDDEN


def _is_name(text: str) -> bool:
    return len(text) < LEAST_CHARACTERS or text.lower() in _HARMLESS or _NAME.fullmatch(text) is not None
