"""Refuses what is forgotten while a run goes on: the list is looked at before each request."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from searchcrawl.exceptions import ConfigurationError
from searchcrawl.rules.boundary import Boundary
from searchcrawl.sources.config import Source
from searchcrawl.sources.forgotten_list import read_list
from searchcrawl.sources.loading import build_forgotten

logger = logging.getLogger(__name__)


class ForgottenWatch:
    """Keeps the boundary of a run as the list of the project in the folder ``root`` has it now."""

    def __init__(self, root: Path, source: Source, boundary: Boundary) -> None:
        self._root = root
        self._source = source
        self._boundary = boundary
        self._lines: Sequence[str] = source.forgotten
        self._said = ""

    def look(self) -> None:
        """Takes over what was added to the list, or taken out of it. While it cannot be read, what it said before holds."""
        try:
            lines = read_list(self._root)
            # As long as the file is the same these are the same lines: a list may be long, and this is asked for each request.
            if lines is self._lines:
                return
            if lines != self._lines:
                self._boundary.replace_forgotten(build_forgotten(self._source, lines))
            self._lines = lines
        except ConfigurationError as error:
            if str(error) != self._said:
                self._said = str(error)
                logger.warning("%s: what it said before holds", error)
