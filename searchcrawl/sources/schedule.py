"""``[schedules.NAME]`` of searchcrawl.toml: when its sources are due (H1, H2)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Final, Literal
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, Field, model_validator

from searchcrawl.rules.week_window import WEEKDAYS
from searchcrawl.sources.privacy import Privacy
from searchcrawl.sources.values import (
    LIST,
    Check,
    PositiveAmount,
    PublicText,
    Table,
    WebUrl,
    check_no_repeats,
    refuse,
    require_form,
)

_check_time: Final = require_form(re.compile(r"([01][0-9]|2[0-3]):[0-5][0-9]"), 'not a time of day, as "08:00"')
_check_days: Final = require_form(
    re.compile(r"({0})(-({0}))?(,({0})(-({0}))?)*".format("|".join(WEEKDAYS))),
    'not days of the week, as "mon-fri" or "sat,sun"',
)
#: Refuses a text that is no name of a parameter set or of a schedule.
check_name: Final = require_form(re.compile(r"[A-Za-z0-9_-]+"), "names are made of A-Z a-z 0-9 _ -")


def _check_cron(text: str) -> str:
    # Only projects with schedules need it.
    from cronsim import CronSim, CronSimError  # noqa: PLC0415

    from searchcrawl import clock  # noqa: PLC0415  # see above

    try:
        # With six, the first one would be seconds.
        if len(text.split()) != 5:
            raise CronSimError
        next(CronSim(text, clock.now()))
    except CronSimError:
        refuse('not a cron expression, as "30 2 * * mon-fri"')
    except StopIteration:
        refuse("this moment never comes")
    return text


def _check_zone(text: str) -> str:
    try:
        ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        refuse('not a time zone of IANA, as "Europe/Berlin"')
    return text


def _check_scrapyd(text: str) -> str:
    """Checks the parts of a URL; no message repeats its password."""
    parts = urlsplit(text)
    if parts.path not in {"", "/"} or parts.query or parts.fragment:
        refuse("must be the address of a scrapyd, as http://USER:PASSWORD@127.0.0.1:6800")
    try:
        # As it is asked for: it raises for a label that is empty or too long.
        host = (parts.hostname or "").removesuffix(".").encode("idna")
    except UnicodeError:
        host = b""
    if not host:
        refuse("not the name of a host")
    return text.rstrip("/")


Zone = Annotated[PublicText, Check(_check_zone, "time zone of IANA")]
ScrapydUrls = Annotated[tuple[Annotated[WebUrl, Privacy.SHOWN, Check(_check_scrapyd, "URL of a scrapyd")], ...], LIST]


class Window(Table):
    """A time of the week: days, and two times of the day."""

    days: Annotated[str, Privacy.PUBLIC, Check(_check_days, "days of the week")] = Field(
        "mon-sun", description='The days, as `"mon-fri"` or `"sat,sun"`.'
    )
    from_: Annotated[str, Privacy.PUBLIC, Check(_check_time, "time of day")] = Field(
        alias="from", description='The begin, as `"08:00"`.'
    )
    to: Annotated[str, Privacy.PUBLIC, Check(_check_time, "time of day")] = Field(
        description="The end; one that is before the begin is on the next day."
    )


class Schedule(Table):
    """Some sources, and when they are due: at the moments of ``cron``, or ``every_minutes`` after the last start."""

    sources: Annotated[tuple[PublicText, ...], LIST, AfterValidator(check_no_repeats)] = Field(
        description="The sources; a source is in one schedule only."
    )
    cron: Annotated[str, Privacy.PUBLIC, Check(_check_cron, "cron expression")] | None = Field(
        None, description="When the sources are due, in five fields; not together with `every_minutes`."
    )
    every_minutes: PositiveAmount | None = Field(None, description="The time from one start to the next.")
    window: Window | None = Field(None, description="The only time of the week in which a run may begin.")
    timezone: Zone | None = Field(
        None, description="The time zone of `cron` and `window`; without it that of the machine."
    )
    mode: Literal["accept", "examine", "index_only"] | None = Field(
        None, description="What a run does that it starts, as `mode` of a source; without it what the source says."
    )
    misfire: Literal["run_once", "skip"] = Field(
        "run_once",
        description="What becomes of moments that passed while nothing could start a run: one run for all of them, or none.",
    )
    enabled: bool = Field(True, description="`false`: nothing is started, and moments that pass meanwhile are over.")
    scrapyd: ScrapydUrls = Field(
        (), description="The scrapyds that run the sources; without them the machine that `tick` or `run` is on does."
    )

    @model_validator(mode="after")
    def _check(self) -> Schedule:
        if self.cron is not None and self.every_minutes is not None:
            refuse("not together with every_minutes", key="cron")
        if self.cron is None and self.every_minutes is None:
            refuse("is required, or every_minutes", key="cron")
        return self


def check_schedules(schedules: Mapping[str, Schedule]) -> Mapping[str, Schedule]:
    """Refuses a source that two schedules hold (H1)."""
    holders: dict[str, str] = {}
    for name, schedule in schedules.items():
        for source in schedule.sources:
            other = holders.setdefault(source, name)
            if other != name:
                refuse(f"{source} is in schedules.{other} already: a source has one schedule", key=name)
    return schedules
