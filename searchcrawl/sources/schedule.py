"""``[schedules.NAME]`` of searchcrawl.toml: when which sources are due (H1, H2).

They are read and checked; a later release runs them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Final

from pydantic import AfterValidator, Field, model_validator

from searchcrawl.sources.values import LIST, PositiveAmount, Table, Text, not_available, once, refused

WEEKDAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_NAME: Final = re.compile(r"[A-Za-z0-9_-]+")
_TIME: Final = re.compile(r"([01][0-9]|2[0-3]):[0-5][0-9]")
_DAYS: Final = re.compile(r"({0})(-({0}))?(,({0})(-({0}))?)*".format("|".join(WEEKDAYS)))
_LATER_MODES: Final = frozenset({"examine", "index_only"})


def set_name(text: str) -> str:
    """Refuses what is no name of a parameter set or of a schedule."""
    if not _NAME.fullmatch(text):
        raise refused("names are made of A-Z a-z 0-9 _ -")
    return text


def _cron(text: str) -> str:
    # Only projects with schedules need it.
    from cronsim import CronSim, CronSimError  # noqa: PLC0415

    from searchcrawl import clock  # noqa: PLC0415

    try:
        next(CronSim(text, clock.now()))
    except CronSimError:
        raise refused('not a cron expression, as "30 2 * * mon-fri"') from None
    except StopIteration:
        raise refused("this moment never comes") from None
    return text


def _time(text: str) -> str:
    if not _TIME.fullmatch(text):
        raise refused('not a time of day, as "08:00"')
    return text


def _days(text: str) -> str:
    if not _DAYS.fullmatch(text):
        raise refused('not days of the week, as "mon-fri" or "sat,sun"')
    return text


def _mode(text: str) -> str:
    if text in _LATER_MODES:
        raise not_available()
    if text != "accept":
        raise refused('must be "accept"')
    return text


class Window(Table):
    """When a scheduled run may begin: on these days, from the one time of day to the other."""

    days: Annotated[str, AfterValidator(_days)] = "mon-sun"
    from_: Annotated[str, AfterValidator(_time)] = Field(alias="from")
    to: Annotated[str, AfterValidator(_time)]


class Schedule(Table):
    """Some sources, and when they are due: at the moments of ``cron``, or ``every_minutes`` after the last start."""

    sources: Annotated[tuple[Text, ...], LIST, AfterValidator(once)]
    cron: Annotated[str, AfterValidator(_cron)] | None = None
    every_minutes: PositiveAmount | None = None
    window: Window | None = None
    mode: Annotated[str, AfterValidator(_mode)] = "accept"

    @model_validator(mode="after")
    def _one_rhythm(self) -> Schedule:
        if self.cron is not None and self.every_minutes is not None:
            raise refused("not together with every_minutes", key="cron")
        if self.cron is None and self.every_minutes is None:
            raise refused("is required, or every_minutes", key="cron")
        return self


def each_source_once(schedules: Mapping[str, Schedule]) -> Mapping[str, Schedule]:
    """Refuses a source that two schedules hold (H1)."""
    holders: dict[str, str] = {}
    for name, schedule in schedules.items():
        for source in schedule.sources:
            other = holders.setdefault(source, name)
            if other != name:
                raise refused(f"{source} is in schedules.{other} already: a source has one schedule", key=name)
    return schedules
