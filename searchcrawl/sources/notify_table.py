"""The table ``[notify]`` of searchcrawl.toml: who is told of what."""

from __future__ import annotations

import re
import shlex
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, model_validator

from searchcrawl.sources.privacy import Privacy
from searchcrawl.sources.values import LIST, Check, PublicText, Table, Text, WebUrl, refuse, require_form

Event = Literal["failed", "quarantine", "verify", "unreachable", "overdue", "not_started"]
EVENTS: Final[tuple[Event, ...]] = ("failed", "quarantine", "verify", "unreachable", "overdue", "not_started")
_ADDRESS: Final = re.compile(r"[^\s@<>()\[\],;:\\\"]+@[^\s@<>()\[\],;:\\\"]+")
#: The words of a command as they are written, with quotes and backslashes.
_WORDS: Final = re.compile(r"""(?:\\.|'[^']*'|"(?:\\.|[^"\\])*"|[^\s'"\\])+""")
_OF_SHELL: Final = re.compile(r"[0-9&]?(?:>>|[<>])|(?:\|\|?|&&?)$|;")
_LAST_OF_SHELL: Final = re.compile(r"(?<!\\);$")
_SERVER: Final = re.compile(r"[A-Za-z0-9.-]+(:[0-9]{1,5})?")


def _check_command(text: str) -> str:
    try:
        words = shlex.split(text)
    except ValueError:
        refuse("not a command: a quote is not closed")
    if not words:
        refuse("must not be empty")
    for word in _WORDS.findall(text):
        if (found := _OF_SHELL.match(word) or _LAST_OF_SHELL.search(word)) is not None:
            refuse(f"{found[0]} is for a shell, and none reads the command: have one run it, as sh -c '…'")
    return text


def _check_events(events: tuple[Event, ...]) -> tuple[Event, ...]:
    if not events:
        refuse("must not be empty")
    return tuple(dict.fromkeys(events))


class Notify(Table):
    """Who is told when a run fails or does not begin, deletions wait, the index differs or cannot be reached; each time once."""

    command: Annotated[Text, Check(_check_command, "command")] | None = Field(
        None,
        description="A program with its arguments, which no shell reads; it gets the event as JSON on standard input.",
    )
    webhook: WebUrl | None = Field(None, description="A URL that the event is posted to, as JSON.")
    mail: Annotated[PublicText, Check(require_form(_ADDRESS, "not a mail address"), "mail address")] | None = Field(
        None, description="A mail address that the event is sent to."
    )
    mail_server: Annotated[
        str, Privacy.PUBLIC, Check(require_form(_SERVER, "must be HOST or HOST:PORT"), "host and port")
    ] = Field("localhost:25", description="The server that takes the mail.")
    on: Annotated[tuple[Event, ...], LIST, AfterValidator(_check_events)] = Field(
        EVENTS, description="What is told of."
    )

    @model_validator(mode="after")
    def _check(self) -> Notify:
        if self.mail is None and "mail_server" in self.model_fields_set:
            refuse("only together with mail", key="mail_server")
        if "on" in self.model_fields_set and not self.in_use:
            refuse("only together with command, webhook or mail: nobody is told", key="on")
        return self

    def list_shown(self) -> frozenset[str]:
        """A command that is the name of a program and nothing else has no secret, and people look for it."""
        words = shlex.split(self.command or "")
        return frozenset(words if len(words) == 1 else ())

    @property
    def in_use(self) -> bool:
        """Whether anybody is told."""
        return self.command is not None or self.webhook is not None or self.mail is not None
