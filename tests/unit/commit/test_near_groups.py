"""Which documents are near copies of which: the same in whatever order they come, and as if each was compared (F6)."""

from __future__ import annotations

import random

import pytest

from searchcrawl.commit.near_copies import SignedDocument, find_groups
from searchcrawl.rules.copy_order import build_order
from searchcrawl.rules.near_copies import sign
from tests.unit.rules.test_near_copies import are_near, edited, words


def some_documents(chance: random.Random, number: int) -> list[SignedDocument]:
    """Documents of a few texts and their editions, some of which have two URLs, or no signature, or only redirect."""
    texts = [words(each) for each in range(6)]
    found = []
    for each in range(number):
        text = " ".join(edited(chance.choice(texts), chance.random(), chance.randrange(10)))
        digest, signature = text.encode(), sign(text) if chance.random() < 0.95 else ""
        for _ in range(chance.choice([1, 1, 1, 2])):
            path = "/".join(chance.choices("abc", k=chance.randint(1, 4)))
            url = f"http://a.test/{path}{each}{chance.choice(['', '?q=1'])}"
            order = build_order(url, redirected=chance.random() < 0.1, url_fit=chance.choice([None, 2, 8, 11]))
            found.append(SignedDocument(order, digest, signature))
    return found


def compare_each(documents: list[SignedDocument]) -> dict[bytes, bytes]:
    """The rule of the module's docstring, with each compared with each."""
    best = {
        digest: min((one for one in documents if one.digest == digest), key=lambda one: one.order)
        for digest in {one.digest for one in documents}
    }
    stay: list[SignedDocument] = []
    found: dict[bytes, bytes] = {}
    for one in sorted(best.values(), key=lambda one: one.order):
        near = next((other for other in stay if are_near(other.signature, one.signature)), None)
        if near is None:
            stay.append(one)
        else:
            found[one.digest] = near.digest
    return found


@pytest.mark.few(5)
@pytest.mark.parametrize("seed", range(20))
def test_groups_when_documents_come_in_any_order_then_each_stands_with_the_best_that_it_is_near_to(seed: int) -> None:
    chance = random.Random(seed)
    documents = some_documents(chance, 60)
    results = []
    for _ in range(20):
        chance.shuffle(documents)
        results.append(find_groups(documents))

    assert results == [compare_each(documents)] * 20
    assert len(results[0]) > 5


def test_groups_when_the_record_of_a_copy_is_lost_then_the_other_one_tells_its_text() -> None:
    text, other = words(1), edited(words(1), 2, 2)
    a, b, ccc = (build_order(f"http://a.test/{name}", redirected=False, url_fit=None) for name in ("a", "b", "ccc"))
    documents = [SignedDocument(a, b"1", ""), SignedDocument(b, b"1", sign(" ".join(text)))]

    found = find_groups([*documents, SignedDocument(ccc, b"2", sign(" ".join(other)))])

    assert found == {b"2": b"1"}
