"""The queue of the writer takes items only while there is a writer."""

from __future__ import annotations

from searchcrawl.commit.group_commit import WriterQueue
from searchcrawl.items import Outcome
from tests.factories import claim


def test_queue_when_its_writer_has_begun_then_takes_items_until_it_is_closed() -> None:
    waiting, outcome = WriterQueue(), Outcome(claim=claim(), code=404)

    before = waiting.submit(outcome)
    waiting.open()
    meanwhile = waiting.submit(outcome)
    waiting.close()
    after = waiting.submit(outcome)

    assert (before, meanwhile, after) == (False, True, False)
    assert [waiting.take(), waiting.take()] == [outcome, None]
