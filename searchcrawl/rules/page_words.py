"""The words of a page, for comparing texts."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote, urlsplit

#: A word; in scripts without blanks each character is one.
_WORD: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\U00020000-\U0003ffff]|\w+")
#: Longer words are tokens.
_LONGEST_WORD: Final = 30


def split_words(text: str) -> list[str]:
    """All words, numbers and tokens of ``text`` in lower case, in order."""
    return _WORD.findall(text.lower().replace("_", " "))


def is_plain(word: str) -> bool:
    """Whether ``word`` is no number and no token: it holds no digit, and is not as long as a token."""
    return word.isalpha() and len(word) <= _LONGEST_WORD


def words_of(text: str) -> list[str]:
    """The words of ``text`` in lower case, in order; for one that holds a digit or is as long as a token, ""."""
    return [word if is_plain(word) else "" for word in split_words(text)]


def split_url(url: str) -> list[str]:
    """The words, numbers and tokens of the path, the query and the route of a URL."""
    parsed = urlsplit(url)
    return split_words(unquote(f"{parsed.path} {parsed.query} {parsed.fragment}"))
