"""How a command ended, as a number for the shell."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from searchcrawl.exceptions import ConfigurationError, SearchcrawlError

#: The reason for the end of a spider in Python that asks for a page in a browser where there is none: exit code 4.
NO_BROWSER: Final = "no_browser"


class Exit(IntEnum):
    """The exit codes of all commands."""

    #: the command did what was asked
    DONE = 0
    #: ``verify``: a difference between index and URL table stands; ``selftest``: a killed crawl differs from an
    #: undisturbed one; ``doctor``: something that a run needs is wrong; ``delete``: the index refused removals; ``crawl``,
    #: ``flush``, ``resend``, ``quarantine``, ``undelete``: the process had stopped turning, the log has the stacks
    DIFFERENT = 1
    #: the command line is wrong, or names a source that does not exist
    WRONG_USE = 2
    #: a limit, ``stop`` or a signal ended the run, or the source is suspended
    ENDED_EARLY = 3
    #: the configuration is refused
    CONFIGURATION = 4
    #: another process holds this source
    BUSY = 5
    #: documents wait for an index that cannot be reached; none is lost
    INDEX_AWAY = 6
    #: the store or the disk failed, or worker processes cannot live; ``tick``: a crawl could not be started
    STORE_FAILED = 7
    #: every start URL failed, or most pages failed the login
    NO_START = 8
    #: deletions wait in quarantine
    QUARANTINE = 9
    #: nothing was done: it would pass the limits on deleting; ``plan``: so would the edit
    PAST_LIMITS = 10


def exit_of(error: Exception) -> Exit:
    """The exit code of an error of ``exceptions`` or of the operating system."""
    return Exit(error.exit_code) if isinstance(error, SearchcrawlError) else Exit.STORE_FAILED


def exit_of_failure(error: Exception) -> Exit:
    """The exit code of a run that an error has ended: what it needs is refused, or nothing can be written any more."""
    return Exit.CONFIGURATION if isinstance(error, ConfigurationError) else Exit.STORE_FAILED
