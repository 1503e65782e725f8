"""The language that most documents of a host have, frozen at the end of each completed run (C9).

It decides where a document declares no language, and its text tells none for sure. Records have what the document itself
says.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from searchcrawl import urls
from searchcrawl.cache.document_cache import DocumentCache
from searchcrawl.delivery.freezing import FEWEST_DOCUMENTS, Common, Record, freeze, load
from searchcrawl.documents.language import Judgement, select_usual, weigh_usual
from searchcrawl.items import Guess
from searchcrawl.run import Run
from searchcrawl.store.documents.frozen_table import LANGUAGES

logger = logging.getLogger(__name__)

#: The language that most documents of each host have.
UsualLanguages = Mapping[str, str]


def load_languages(run: Run) -> UsualLanguages:
    """The usual languages of the hosts of a source; none where it says itself in which language all documents are."""
    return load(run, _COMMON) if _applies(run) else {}


def choose_languages(record: Record, url: str, usual: UsualLanguages) -> dict[str, Any]:
    """The fields with the languages of a document, the main one first, by its record and by what its host usually has."""
    languages = _choose(record, usual.get(urls.host_and_port(url), "") if usual else "")
    return {"language": languages[0] if languages else "", "languages": list(languages)}


def freeze_languages(run: Run, cache: DocumentCache) -> None:
    """Finds out the usual languages anew, and has the documents sent again that get another; raises StoreError, CacheError."""
    freeze(run, cache, _COMMON, wanted=_applies(run))


def _applies(run: Run) -> bool:
    return not run.source.content.language


def _choose(record: Record, usual: str) -> tuple[str, ...]:
    language, guess = str(record.get("language") or ""), record.get("language_guess")
    languages = tuple(record.get("languages") or filter(None, (language,)))
    if not usual or guess is None:
        return languages
    told = Judgement() if guess == Guess.DEFAULT else Judgement(languages, Guess(guess))
    return weigh_usual(str(record.get("content") or ""), told, usual) or languages


def _find(records: Iterator[Record], before: str) -> str:
    said = (record for record in records if record.get("language_guess") not in {Guess.DEFAULT, Guess.SCRIPT})
    languages = [record.get("language") for record in said]
    counts = Counter(str(language).partition("-")[0] for language in languages if language)
    return select_usual(counts, before=before, least=FEWEST_DOCUMENTS)


def _report(host: str, language: str) -> None:
    logger.info("%s: the language of most of its documents is %s", host, language or "not known any more")


_COMMON: Final[Common[str]] = Common(
    name="languages", table=LANGUAGES, types=None, nothing="", find=_find, apply=_choose, report=_report
)
