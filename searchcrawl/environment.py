"""The variables of the environment that change what searchcrawl does, and those that it gives to programs it starts."""

from __future__ import annotations

from enum import StrEnum


class Variable(StrEnum):
    """What is read. ``{env = "NAME"}`` in a file of the project reads any other."""

    #: the folder of the project; without it, that of the nearest ``scrapy.cfg`` from the working folder upwards
    PROJECT = "SEARCHCRAWL_PROJECT"
    #: the settings module in place of the one that ``scrapy.cfg`` names (Scrapy's)
    SETTINGS_MODULE = "SCRAPY_SETTINGS_MODULE"
    #: the time zone of schedules and of ``fetch.windows`` that name none; without it, that of ``/etc/localtime``
    TIME_ZONE = "TZ"
    #: the language of what facets show (``search``), the first of three that is set: this one, then the next two
    LANGUAGE = "LC_ALL"
    #: the same
    LANGUAGE_OF_MESSAGES = "LC_MESSAGES"
    #: the same
    LANGUAGE_OF_ALL = "LANG"
    #: the width of a terminal that does not say its own
    COLUMNS = "COLUMNS"
    #: the editor of ``scrapy edit``, for spiders in Python
    EDITOR = "EDITOR"
    #: folders from which modules are loaded; processes that searchcrawl starts get it as well
    PYTHON_PATH = "PYTHONPATH"
    #: the file to which a command writes the error that it ended with, for the Python API that started it
    ERROR_FILE = "SEARCHCRAWL_ERROR_FILE"
    #: for tests: ends, fails or delays the process at a step
    FAILPOINT = "SEARCHCRAWL_FAILPOINT"
    #: for tests: the file that gets how often each step was reached
    FAILPOINT_COUNT = "SEARCHCRAWL_FAILPOINT_COUNT"


class Given(StrEnum):
    """What the command of ``[notify]`` gets."""

    #: what happened: one of ``notify.on``
    EVENT = "SEARCHCRAWL_EVENT"
    #: the source that it happened to
    SOURCE = "SEARCHCRAWL_SOURCE"
