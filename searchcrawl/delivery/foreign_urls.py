"""The URLs of copies in other sources, as those show them (A4, F4)."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from searchcrawl.exceptions import ConfigurationError, UnknownSource
from searchcrawl.rules.display import DisplayMap
from searchcrawl.run import Run
from searchcrawl.sources.loading import build_display_map, load_source
from searchcrawl.store.documents.duplicate_key_table import Copy
from searchcrawl.store.runs import run_table

logger = logging.getLogger(__name__)


class ForeignUrls:
    """Shows the URLs of copies in other sources; it reads the file of each of these once."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._displays: dict[int, DisplayMap | None] = {}

    def show_all(self, duplicates: Mapping[int, Sequence[Copy]]) -> Mapping[int, Sequence[Copy]]:
        """The copies of documents by row id; those of other sources with the URLs that they show."""
        return {
            url_id: [*filter(self._is_own, copies), *sorted(map(self._show, self._leave_own_out(copies)))]
            for url_id, copies in duplicates.items()
        }

    def _is_own(self, copy: Copy) -> bool:
        return copy.source_id == self._run.source_id

    def _leave_own_out(self, copies: Sequence[Copy]) -> list[Copy]:
        return [copy for copy in copies if not self._is_own(copy)]

    def _show(self, copy: Copy) -> Copy:
        if copy.source_id is None:
            return copy
        if copy.source_id not in self._displays:
            self._displays[copy.source_id] = self._load(copy.source_id)
        display = self._displays[copy.source_id]
        return Copy(copy.url if display is None else display.show(copy.url, copy.display_url))

    def _load(self, source_id: int) -> DisplayMap | None:
        name = self._run.read(run_table.find_source_names).get(source_id, "")
        try:
            return build_display_map(load_source(self._run.project, name))
        except (ConfigurationError, UnknownSource) as error:
            logger.warning("copies in %s are listed with the URLs that are fetched: %s", name, error)
            return None
