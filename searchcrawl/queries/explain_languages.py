"""In which languages a document is, and what told them, for ``explain`` (C9, L1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from searchcrawl import urls
from searchcrawl.delivery.usual_languages import choose_languages
from searchcrawl.items import Guess

_BY: Final[Mapping[str, str]] = {
    Guess.TEXT: "by its text",
    Guess.SCRIPT: "by its script",
    Guess.DEFAULT: "fetch.default_language",
}


def describe_languages(record: Mapping[str, Any], url: str, *, forced: str, usual: str) -> str:
    """The languages that a document is sent with, and on what they were judged; empty where none is known.

    ``record`` has its fields, ``forced`` is ``content.language``, ``usual`` the language of most pages of its host.
    """
    of_host = {} if forced else {urls.host_and_port(url): usual}
    main, *others = choose_languages(record, url, of_host)["languages"] or [""]
    if not main:
        return ""
    guess = record.get("language_guess")
    if guess is None:
        by = "content.language" if forced else "declared"
    else:
        by = _BY[guess] if main == record.get("language") else "that of most pages of its host"
    also = "".join(f', also "{tag}"' for tag in others)
    return f'language "{main}" ({by}){also}'
