"""What becomes of documents at which a plug-in failed, and when a run ends because of it (K4, X-S11)."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from typing import Final

from searchcrawl.codes import Code
from searchcrawl.exceptions import ConversionFailed
from searchcrawl.http.visit_end import join_lines
from searchcrawl.items import Claim, Hop, Outcome
from searchcrawl.own_code import name_error
from searchcrawl.run import Shutdown
from searchcrawl.sources.source_settings import PluginLimits
from searchcrawl.store.states import EndReason

logger = logging.getLogger(__name__)

#: So many errors of a plug-in are logged in a run; all are counted.
_MOST_LOGGED: Final = 20


class PluginErrors:
    """Counts the errors of the plug-ins of a run by name; ends it where one fails past its limits."""

    def __init__(self, shutdown: Shutdown, limits: PluginLimits, *, count: Callable[[str], None]) -> None:
        self._shutdown = shutdown
        self._limits = limits
        self._count = count
        self._documents: Counter[str] = Counter()
        self._errors: Counter[str] = Counter()
        self._in_a_row: Counter[str] = Counter()
        self._ended = False

    def note_good(self, name: str, documents: int = 1) -> None:
        """Notes a document, or several, that a plug-in did not fail at."""
        self._documents[name] += documents
        self._in_a_row[name] = 0

    def note_error(self, name: str, claim: Claim, error: BaseException, *, redirects: tuple[Hop, ...]) -> Outcome:
        """Notes a visit that a plug-in failed at; the end of it. A document that the store knows stays."""
        text = join_lines(f"{name}: {name_error(error)}")
        self.add_error(name, claim.url, text)
        code = error.code if isinstance(error, ConversionFailed) else Code.CONVERSION_FAILED
        return Outcome(claim=claim, code=code, error=text, redirects=redirects)

    def add_error(self, name: str, url: str, text: str) -> None:
        """Counts an error, and logs what it says; ends the run where it was one too many."""
        self._documents[name] += 1
        self._errors[name] += 1
        self._in_a_row[name] += 1
        self._log(name, url, text)
        self._count(f"searchcrawl/plugin_errors/{name}")
        self._end_past_limits(name)

    def _log(self, name: str, url: str, text: str) -> None:
        errors = self._errors[name]
        if errors <= _MOST_LOGGED:
            more = " (its further errors are counted only)" if errors == _MOST_LOGGED else ""
            logger.warning("%s (%s)%s", text, url, more)

    def _end_past_limits(self, name: str) -> None:
        why = self._limits.find_passed(
            errors=self._errors[name], in_a_row=self._in_a_row[name], documents=self._documents[name]
        )
        if why is None or self._ended:
            return
        self._ended = True
        logger.error("the run ends: %s failed at %s (SEARCHCRAWL_PLUGIN_ERRORS)", name, why)
        self._shutdown.stop(EndReason.PLUGIN_ERRORS)
