"""Nothing is deleted by a query that data had a hand in (X-I10)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import searchcrawl

PACKAGE = Path(searchcrawl.__file__).parent


def nodes() -> Iterator[tuple[str, ast.AST]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            yield path.relative_to(PACKAGE).as_posix(), node


def test_i10_package_when_searched_then_the_only_deletion_by_query_is_that_of_tombstones() -> None:
    queries = [
        (path, ast.unparse(value))
        for path, node in nodes()
        if isinstance(node, ast.Dict)
        for key, value in zip(node.keys, node.values, strict=True)
        if isinstance(key, ast.Constant) and key.value == "delete"
    ]

    assert queries == [("index/solr/receiver.py", "{'query': 'tombstone_b:true'}")]


def test_i10_package_when_searched_then_nobody_calls_the_deletion_of_pysolr() -> None:
    calls = [
        (path, ast.unparse(node))
        for path, node in nodes()
        if isinstance(node, ast.Attribute)
        and node.attr in {"delete", "add"}
        and ast.unparse(node).endswith(("_solr.delete", "_solr.add"))
    ]

    assert calls == []
