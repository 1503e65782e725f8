"""Every rule of a source that cannot be understood, and not the first alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from searchcrawl.exceptions import ConfigurationError
from searchcrawl.sources.config import Source

#: Of a longer list only the first error is found: each of its rules is asked about by itself.
_LONGEST_LIST: Final = 200


def find_rule_errors(source: Source, compile_rules: Callable[[Source], Any]) -> Iterator[ConfigurationError]:
    """The errors of ``compile_rules``, which raises the first: the list that it names is asked rule by rule, and left out."""
    seen: set[str] = set()
    while (error := _find_first(source, compile_rules)) is not None:
        rules = _find_rules(source, error.key)
        if error.key in seen or not 1 < len(rules) <= _LONGEST_LIST:
            yield _locate(source, error)
            return
        seen.add(error.key)
        found = {rule: _find_first(_replace(source, error.key, [rule]), compile_rules) for rule in dict.fromkeys(rules)}
        good = [rule for rule, of_rule in found.items() if of_rule is None or of_rule.key != error.key]
        yield from (_locate(source, found[rule] or error) for rule in found if rule not in good)
        source = _replace(source, error.key, good)


def _find_first(source: Source, compile_rules: Callable[[Source], Any]) -> ConfigurationError | None:
    try:
        compile_rules(source)
    except ConfigurationError as error:
        return error
    return None


def _locate(source: Source, error: ConfigurationError) -> ConfigurationError:
    return ConfigurationError(*source.locate(error.key), error.message)


def _find_rules(source: Source, key: str) -> Sequence[str]:
    """The rules of a key as ``scope.exclude_urls``; none where it is no list of texts."""
    table, _, name = key.partition(".")
    found = getattr(getattr(source, table, None), name, ())
    return found if isinstance(found, tuple) and all(isinstance(rule, str) for rule in found) else ()


def _replace(source: Source, key: str, rules: Sequence[str]) -> Source:
    table, _, name = key.partition(".")
    changed = getattr(source, table).model_copy(update={name: tuple(rules)})
    return source.model_copy(update={table: changed})
