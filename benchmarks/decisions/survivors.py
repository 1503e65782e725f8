"""Groups of copies (909), and whether the page that stands for each of them is certainly the wrong one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from benchmarks.decisions.languages import is_same

_TAG: Final = re.compile(r"[a-z]{2}(?:[-_][A-Za-z]{2,4})?")
#: Two letters that name folders as well.
_OTHER_FOLDERS: Final = frozenset(
    {"db", "go", "io", "js", "os", "py", "rb", "ui", "ml", "fs", "ip", "id", "is", "as", "or", "to"}
)
_WORD: Final = re.compile(r"[^\W_]+")
#: Names that say nothing of what is on a page.
_NAMELESS: Final = frozenset({"index", "default", "main", "home", "readme"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The page that is in the index for others with the same text; ``wrong`` says why it is the wrong one, if it is."""

    survivor: str
    others: tuple[str, ...]
    title: str
    language: str
    wrong: str


def find_groups(rows: Iterable[Mapping[str, Any]], documents: Mapping[str, tuple[str, str]]) -> list[Group]:
    """The groups in a URL table; ``documents`` has the title and the true language of each document by its URL."""
    lost: dict[str, list[str]] = {}
    for row in rows:
        if row["duplicate_of"]:
            lost.setdefault(row["duplicate_of"], []).append(row["url"])
    groups = []
    for url, others in lost.items():
        title, language = documents.get(url, ("", ""))
        wrong = _judge_language(url, others, language) or _judge_name(url, others, title)
        groups.append(Group(survivor=url, others=tuple(sorted(others)), title=title, language=language, wrong=wrong))
    return sorted(groups, key=lambda group: (not group.wrong, group.survivor))


def _judge_language(survivor: str, others: Iterable[str], language: str) -> str:
    said = _folder_language(survivor)
    if not language or not said or is_same(said, language):
        return ""
    better = next((url for url in others if is_same(_folder_language(url) or "?", language)), None)
    return f"text in {language}; {better} is in the folder of its language" if better else ""


def _judge_name(survivor: str, others: Iterable[str], title: str) -> str:
    said = _words(title)
    own = _name(survivor)
    if not said or not own or own <= said:
        return ""
    better = next((url for url in others if (name := _name(url)) and name <= said), None)
    return f"{better} is what the title names" if better else ""


def _folder_language(url: str) -> str:
    folders = urlsplit(url).path.split("/")[:-1]
    found = (folder for folder in reversed(folders) if _TAG.fullmatch(folder) and folder not in _OTHER_FOLDERS)
    return next(found, "")


def _name(url: str) -> set[str]:
    """The words of a page's own name; none where it says nothing."""
    words = _words(unquote(urlsplit(url).path.rpartition("/")[2]).partition(".")[0])
    return set() if words <= _NAMELESS else words


def _words(text: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(text)}
