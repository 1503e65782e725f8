"""Whether a login that seems lost is done again: while that opens pages, and not for pages closed to this user (C10). Pure."""

from __future__ import annotations

from typing import Final

#: After so many renewals in a row that did not open what was closed, one page is no sign any more.
_PATIENCE: Final = 3
#: Then so many pages in a row have to be closed, and twice as many after each further renewal that did not help.
_CLOSED_IN_A_ROW: Final = 5
#: So many pages in a row show that a login is lost, if few renewals were in vain.
_SURE: Final = 3
#: The most closed pages for which an answer under way may still show that the last login helped.
_MOST_UNDECIDED: Final = 10


class Renewals:
    """The renewals of one run.

    It hears of pages that the last login opened, and of those that showed once more that nobody is logged in. A page
    that stays closed after a renewal may be one that this user must not see; while others open, it says nothing.
    """

    def __init__(self) -> None:
        self._begun = 0
        #: renewals in a row after which no page opened that was closed before
        self._in_vain = 0
        self._has_opened = False
        self._closed_in_a_row = 0

    @property
    def is_undecided(self) -> bool:
        """Whether the last renewal has opened no page so far, but still may."""
        return self._begun > 0 and not self._has_opened and self._closed_in_a_row <= _MOST_UNDECIDED

    @property
    def in_doubt(self) -> bool:
        """Whether the last renewal did not open what was closed: one page alone is no sure sign."""
        return self._in_vain > 0

    @property
    def seems_lost(self) -> bool:
        """Whether several pages in a row were closed."""
        return self._closed_in_a_row >= _SURE

    def note_opened(self, *, was_closed: bool) -> None:
        """Notes a page that the last login opened; ``was_closed``: the one before did not."""
        self._has_opened = True
        self._closed_in_a_row = 0
        if was_closed:
            self._in_vain = 0

    def note_closed(self) -> None:
        """Notes a page that the last login did not open."""
        self._closed_in_a_row += 1

    def may_begin(self) -> bool:
        """Whether a page that is closed is a reason to log in once more."""
        if not self._begun:
            return True
        if self._in_vain < _PATIENCE:
            return self._has_opened
        return self._has_opened and self._closed_in_a_row >= _CLOSED_IN_A_ROW << (self._in_vain - _PATIENCE)

    def begin(self) -> None:
        """Notes that the login is done once more."""
        self._begun += 1
        self._in_vain += 1
        self._has_opened = False
        self._closed_in_a_row = 0
