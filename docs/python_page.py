"""The reference of the Python API, made from its docstrings."""

from __future__ import annotations

import inspect
from dataclasses import fields, is_dataclass

import searchcrawl
from docs.markdown import grid, literal


def python_page() -> str:
    """A section for each public name: what it is, its methods and its fields."""
    lines: list[str] = []
    for name in searchcrawl.__all__:
        value = getattr(searchcrawl, name)
        if isinstance(value, str):
            continue
        called = f"{name}{inspect.signature(value)}" if inspect.isfunction(value) else name
        lines += [f"## `{called.replace(chr(39), '')}`", "", _without_examples(value), ""]
        if is_dataclass(value):
            lines += grid(("field", "type"), [(f"`{each.name}`", f"`{each.type}`") for each in fields(value)])
        methods = [each for each in vars(value).values() if inspect.isfunction(each) and each.__name__[0] != "_"]
        for method in methods if inspect.isclass(value) and not is_dataclass(value) else ():
            shown = str(inspect.signature(method)).replace("'", "")
            lines += [f"### `{method.__name__}{shown}`", "", _without_examples(method), ""]
    return "\n".join(lines)


def _without_examples(value: object) -> str:
    return literal((inspect.getdoc(value) or "").partition(">>>")[0].strip())
