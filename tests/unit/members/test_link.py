"""What a member hands on of its log: any value that code of a user's own may log, and nothing that the run cannot read."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, Self

import pytest

from searchcrawl.members.link import LinkedLog
from searchcrawl.members.members import _log
from searchcrawl.members.messages import Logged
from searchcrawl.sources.secrets import hide, redact
from searchcrawl.terminal import guard_logs
from searchcrawl.worker_process import pack, unpack


class Odd(str):
    """A text that is pickled, but cannot be read again."""

    __slots__ = ()

    def __new__(cls, first: str, second: str) -> Self:
        return super().__new__(cls, first + second)


class Deep(str):
    """A text that holds on to more than can be pickled, as the strings of an HTML parser do to their page."""

    __slots__ = ()

    def __reduce__(self) -> Any:
        raise RecursionError


class Number(int):
    def __reduce__(self) -> Any:
        raise RecursionError


def send_and_receive(*arguments: object, message: Any = "title %s") -> list[logging.LogRecord]:
    """The records that are written where the run is."""
    sent: list[Any] = []
    link: Any = SimpleNamespace(
        setup=SimpleNamespace(log_level=logging.INFO), send=lambda each: sent.append(pack(each))
    )
    handler = LinkedLog(link)
    handler.handle(logging.LogRecord("mine", logging.WARNING, __file__, 1, message, arguments, None))
    written: list[logging.LogRecord] = []
    logger = logging.getLogger("mine")
    taker = logging.Handler()
    taker.emit = written.append  # type: ignore[method-assign]
    logger.addHandler(taker)
    try:
        for each in sent:
            _log(unpack(bytearray(each)))
    finally:
        logger.removeHandler(taker)
    return written


@pytest.mark.parametrize(
    ("value", "text"),
    [(Odd("a", "b"), "ab"), (Deep("deep"), "deep"), (Number(7), "7"), (None, "None"), ("plain", "plain")],
)
def test_log_when_values_are_of_any_class_then_their_text_comes(value: object, text: str) -> None:
    (record,) = send_and_receive(value)

    assert record.getMessage() == f"title {text}"


@pytest.mark.parametrize("name", ["key", Odd("k", "ey")])
def test_log_when_values_have_names_of_any_class_then_their_text_comes(name: str) -> None:
    (record,) = send_and_receive({name: "deep"}, message="title %(key)s")

    assert record.getMessage() == "title deep"


def test_log_when_the_message_is_of_any_class_then_its_text_comes() -> None:
    (record,) = send_and_receive(message=Odd("a", "b"))

    assert record.getMessage() == "ab"


@pytest.fixture
def guarded() -> Iterator[None]:
    factory = logging.getLogRecordFactory()
    guard_logs(alter=redact)
    yield
    logging.setLogRecordFactory(factory)


@pytest.mark.usefixtures("guarded")
def test_log_when_a_traceback_has_a_secret_then_it_is_masked_where_it_is_written(
    caplog: pytest.LogCaptureFixture,
) -> None:
    hide("c4n4ry-of-a-key")
    facts = {
        "name": "mine",
        "levelno": logging.ERROR,
        "msg": "failed",
        "args": (),
        "exc_text": "KeyError: c4n4ry-of-a-key",
    }

    _log(Logged(facts))

    (record,) = caplog.records
    assert record.exc_text == "KeyError: ***"
