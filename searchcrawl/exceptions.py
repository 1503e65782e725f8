"""The errors of searchcrawl; the class says what happens next. And how a command ended, as a number for the shell.

SearchcrawlError
├── ConfigurationError      nothing is requested; exit 4
│   ├── NotAvailableYet     a key or value that a later release brings
│   └── InvalidFile         several errors in one file
├── UnknownSource           a wrong use of the command line; exit 2
├── UnknownAttribute        the same
├── UnknownRun              the same
├── UnknownReceiver         the same
├── PlanRefused             the plan is not that of this source file and table; exit 2
├── SourceBusy              another process holds the source; exit 5
├── SourceSuspended         somebody suspended the source; exit 3
├── LeaseLost               another process took the lease: this one stops writing; exit 7
├── StoreError              the database cannot go on; exit 7
│   ├── OtherRevision       the database is of another release
│   └── StoreAway           out of reach, maybe for a while only: tried again before it counts as failed
│       └── StoreLocked     another process holds it
├── CacheError              the document cache cannot go on; exit 7
│   ├── DamagedRecord       one record is unreadable: its page is fetched again
│   └── SpoolFailed         no room for one large body: its page is fetched later
├── LogError                the log cannot be written; exit 7
├── DiskFull                a disk of the project is full, or nearly so; exit 7
├── WorkersUnavailable      no worker process can read documents: none is blamed; exit 7
├── DeliveryError           the batch is kept
│   ├── IndexUnavailable    tried again with growing pauses; then exit 6
│   └── IndexMisconfigured  trying again is useless; exit 6
├── UnsupportedByIndex      this index cannot answer that; exit 4
├── HostBlocked             nothing more is asked of the host in this run
├── InvalidUrl              the link is dropped (1004)
└── DocumentError           the document is skipped, its row says why
    ├── ConversionFailed    903, or 904 where a limit was passed
    └── NoConverter         908
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import ClassVar, Final

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
    #: a limit, ``stop`` or a signal ended the run, a folder or table could not be listed or read, or the source is suspended
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


class SearchcrawlError(Exception):
    """Base of all errors raised on purpose; ``exit_code`` is that of a command which one of them ends."""

    exit_code: ClassVar[int] = Exit.STORE_FAILED.value


class ConfigurationError(SearchcrawlError):
    """A file of the project is wrong; shown as ``FILE: KEY: what is wrong (got …)``."""

    exit_code: ClassVar[int] = Exit.CONFIGURATION.value

    def __init__(self, file: str, key: str, message: str) -> None:
        self.file = file
        self.key = key
        self.message = message
        super().__init__(file, key, message)

    def __str__(self) -> str:
        return ": ".join(part for part in (self.file, self.key, self.message) if part)

    @property
    def errors(self) -> tuple[ConfigurationError, ...]:
        """This error, or all that it stands for."""
        return (self,)


class NotAvailableYet(ConfigurationError):
    """A key, value or command of a later release was used."""


class InvalidFile(ConfigurationError):
    """A file with several errors; shown as the first, ``errors`` has all."""

    def __init__(self, errors: Sequence[ConfigurationError]) -> None:
        self._errors = tuple(errors)
        super().__init__(errors[0].file, errors[0].key, errors[0].message)

    @property
    def errors(self) -> tuple[ConfigurationError, ...]:
        return self._errors


class _WrongUse(SearchcrawlError):
    """A command was asked for what is not there, or not so."""

    exit_code: ClassVar[int] = Exit.WRONG_USE.value


class UnknownSource(_WrongUse):
    """There is no source of this name in the project."""


class UnknownRun(_WrongUse):
    """There is no run with this number."""


class UnknownReceiver(_WrongUse):
    """There is no receiver of this name, or the source does not have it."""


class UnknownUrl(_WrongUse):
    """The source does not know this URL, or does not visit it."""


class UnknownAttribute(_WrongUse):
    """No source of the project has an attribute of this name."""


class PlanRefused(_WrongUse):
    """There is no such plan, or the source file or the table is another one since it was made."""


class SourceBusy(SearchcrawlError):
    """Another process runs this source."""

    exit_code: ClassVar[int] = Exit.BUSY.value


class SourceSuspended(SearchcrawlError):
    """Somebody suspended this source: it is not crawled until it is resumed."""

    exit_code: ClassVar[int] = Exit.ENDED_EARLY.value


class LeaseLost(SearchcrawlError):
    """Another process took our lease over: nothing may be written any more."""


class StoreError(SearchcrawlError):
    """The database cannot be read or written."""


class OtherRevision(StoreError):
    """The database was written by another release, whose tables are others."""


class StoreAway(StoreError):
    """The database cannot be reached, or refuses for now: the same transaction may work later."""


class StoreLocked(StoreAway):
    """Another process holds a lock on the database."""


class LogError(SearchcrawlError):
    """A log file cannot be opened or written (disk full, no permission)."""


class DiskFull(SearchcrawlError):
    """A disk of the project is full, or has less space left than must be kept free; so is that of temporary files."""


class CacheError(SearchcrawlError):
    """The document cache cannot be written (disk full, no permission)."""


class DamagedRecord(CacheError):
    """A record of the cache is missing, cut or does not match its digest."""


class SpoolFailed(CacheError):
    """A large body cannot be put on the disk, as where that is full, or has little room left; the message names the folder."""


class SegmentInUse(CacheError):
    """Another process still writes to the segment: it was frozen, and does not know that it lost the source."""


class WorkersUnavailable(SearchcrawlError):
    """Worker processes end before they take a document, one after the other; no document is to blame."""


class DeliveryError(SearchcrawlError):
    """A batch could not be delivered and is kept."""

    exit_code: ClassVar[int] = Exit.INDEX_AWAY.value


class IndexUnavailable(DeliveryError):
    """The index does not answer, or asks to come back later."""

    def __init__(self, message: str, *, retry_after_seconds: float | None = None) -> None:
        self.retry_after_seconds = retry_after_seconds
        super().__init__(message)


class IndexMisconfigured(DeliveryError):
    """The index answers, but not as an index: wrong address, login page, missing schema."""


class UnsupportedByIndex(SearchcrawlError):
    """The receiver in use cannot search, scan or purge."""

    exit_code: ClassVar[int] = Exit.CONFIGURATION.value


class HostBlocked(SearchcrawlError):
    """A host asked for a pause longer than a run waits (Retry-After); ``code`` is the status of that answer."""

    def __init__(self, message: str, *, code: int) -> None:
        self.code = code
        super().__init__(message)


class CrawlEnds(Exception):
    """The crawl is ending: requests for which no page waits are no longer sent."""


class InvalidUrl(_WrongUse):
    """The text is not a URL that can be requested (WHATWG URL, code 1004)."""


class DocumentError(SearchcrawlError):
    """One document cannot be processed; ``code`` goes into its row."""

    def __init__(self, message: str, *, code: int) -> None:
        self.code = code
        super().__init__(message)


class ConversionFailed(DocumentError):
    """The converter failed (903) or passed a limit (904)."""


class WorkerLost(ConversionFailed):
    """The worker process that read the document was ended by a limit, or died (904)."""


class NoConverter(DocumentError):
    """No converter knows this type (908)."""


def exit_of(error: Exception) -> Exit:
    """The exit code of an error of ``exceptions`` or of the operating system."""
    return Exit(error.exit_code) if isinstance(error, SearchcrawlError) else Exit.STORE_FAILED


def exit_of_failure(error: Exception) -> Exit:
    """The exit code of a run that an error has ended: what it needs is refused, or nothing can be written any more."""
    return Exit.CONFIGURATION if isinstance(error, ConfigurationError) else Exit.STORE_FAILED
