"""What programs give to the Python API: an argument of another type is an error that names it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from searchcrawl.codes import is_code


def list_texts(argument: str, texts: object) -> list[str]:
    """Texts, each once; a single one is one, and not its letters."""
    if not isinstance(texts, Iterable) or isinstance(texts, bytes):
        raise _refuse(argument, "a text or a list of texts", texts)
    listed = [texts] if isinstance(texts, str) else list(texts)
    return list(dict.fromkeys(check_text(argument, text) for text in listed))


def list_filters(filters: object) -> list[tuple[str, str]]:
    """The texts and values of filters; a number is looked for as it is written."""
    return [
        (
            check_text("filters", name),
            str(value) if type(value) is int else check_text(f"filters[{name!r}]", value),
        )
        for name, value in require_mapping("filters", filters).items()
    ]


def require_mapping(argument: str, value: object) -> Mapping[Any, Any]:
    """``value``; raises ValueError for what is no mapping."""
    if not isinstance(value, Mapping):
        raise _refuse(argument, "a mapping of names to values", value)
    return value


def check_text(argument: str, value: object) -> str:
    """``value``; raises ValueError for what is no text."""
    if not isinstance(value, str):
        raise _refuse(argument, "a text", value)
    return value


def _refuse(argument: str, wanted: str, value: object) -> ValueError:
    return ValueError(f"{argument}: must be {wanted} (got {value!r})")


def check_code(code: object) -> None:
    """Raises ValueError for what is no code of a URL; None is any."""
    if code is not None and (isinstance(code, bool) or not isinstance(code, int) or not is_code(code)):
        raise ValueError(f"code: there is no such code (got {code!r})")
