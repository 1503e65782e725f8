"""What a receiver of a user's own may answer: each fault of it is one of delivery, with its name (K3, L14)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from searchcrawl.delivery.index_retry import IndexRetry
from searchcrawl.delivery.receivers.door import Door
from searchcrawl.exceptions import DeliveryError, IndexMisconfigured, IndexUnavailable
from searchcrawl.index.receiver import Batch
from searchcrawl.items import IndexedDocument
from searchcrawl.sources import secrets
from searchcrawl.sources.loading import load_project

CLASS: Final = """
from searchcrawl.exceptions import DiskFull, IndexUnavailable, LeaseLost
from searchcrawl.index.receiver import Receipt


class Odd:
    def __init__(self, answer):
        self.answer = answer

    def begin(self, source, run):
        pass

    def deliver(self, batch):
        each = batch.documents
        return exec_or_eval(self.answer, batch)

    def end(self, outcome):
        pass


def exec_or_eval(answer, batch):
    names = {"docs": batch.documents, **globals()}
    if answer.startswith("raise "):
        exec(answer, names)
    return eval(answer, names)
"""
DOCUMENTS: Final = tuple(IndexedDocument(id=f"demo:{name}") for name in "ab")
BATCH: Final = Batch(number=1, source="demo", crawl_version=1, documents=DOCUMENTS)


def open_door(folder: Path, answer: str) -> Door:
    (folder / "odd.py").write_text(CLASS, "utf-8")
    (folder / "scrapy.cfg").touch()
    text = f"contact = \"https://example.org/\"\n[receivers.odd]\nclass = \"odd:Odd\"\nanswer = '''{answer}'''\n"
    (folder / "searchcrawl.toml").write_text(text, "utf-8")
    retry = IndexRetry(0)
    retry.limit_to_end()
    return Door(load_project(folder), "odd", retry)


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        ("None", IndexUnavailable, "TypeError"),
        ("7", IndexUnavailable, "TypeError"),
        ("[]", IndexMisconfigured, "0 receipts for 2"),
        ("[None for each in docs]", IndexMisconfigured, "NoneType in place of a Receipt"),
        ("({'id': each.id} for each in docs)", IndexMisconfigured, "dict in place of a Receipt"),
        ("[Receipt(each.id, 1) for each in docs]", IndexMisconfigured, "in place of a Receipt"),
        ("[Receipt(each.id, True) for each in docs[::-1]]", IndexMisconfigured, "not in the order"),
        ("raise ValueError('bad \\udc80 \\0')", IndexUnavailable, "ValueError: bad \\udc80"),
        ("raise IndexUnavailable('bad \\udc80')", IndexUnavailable, "bad \\udc80"),
        ("raise SystemExit(3)", IndexUnavailable, "SystemExit: 3"),
        ("raise GeneratorExit()", IndexUnavailable, "GeneratorExit"),
        ("raise DiskFull('no room')", IndexUnavailable, "no room"),
        ("raise LeaseLost('gone')", IndexUnavailable, "gone"),
    ],
)
def test_receiver_when_its_answer_is_odd_then_that_is_an_error_of_delivery_with_its_name(
    tmp_path: Path, answer: str, kind: type[DeliveryError], words: str
) -> None:
    door = open_door(tmp_path, answer)

    with pytest.raises(kind) as raised:
        door.deliver(BATCH)

    assert str(raised.value).startswith("searchcrawl.toml: receivers.odd: ")
    assert words in str(raised.value)
    str(raised.value).encode()


@pytest.mark.parametrize(
    ("error", "shown"), [("b'x'", "b'x'"), ("ValueError('x')", "x"), ("'\\udc80'", "\\udc80"), ("'a\\nb'", "a\\nb")]
)
def test_receiver_when_it_refuses_with_an_odd_reason_then_that_is_a_text_on_one_line(
    tmp_path: Path, error: str, shown: str
) -> None:
    door = open_door(tmp_path, f"[Receipt(each.id, False, {error}) for each in docs]")

    receipts = door.deliver(BATCH)

    assert [(receipt.accepted, receipt.error) for receipt in receipts] == [(False, shown)] * 2


def test_receiver_when_its_error_quotes_the_password_of_a_server_then_nobody_is_told_that(tmp_path: Path) -> None:
    # As the keys of its table are, when the file is read.
    secrets.hide("amqp://mary:hunter22@mq/x")
    refuses = open_door(tmp_path, "[Receipt(each.id, False, 'amqp://mary:hunter22@mq/x') for each in docs]")
    (receipt, _) = refuses.deliver(BATCH)
    (tmp_path / "again").mkdir()
    raises = open_door(tmp_path / "again", "raise IndexUnavailable('cannot reach amqp://mary:hunter22@mq/x')")
    with pytest.raises(IndexUnavailable) as raised:
        raises.deliver(BATCH)

    assert "cannot reach" in str(raised.value)
    assert "hunter22" not in str(receipt.error) + str(raised.value)
