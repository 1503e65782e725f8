"""What functions of the package reach, by the syntax tree: names, and methods of classes that are reached.

It goes too far rather than not far enough: a method counts as called where its name is used on anything, and its class
is reached. So what it does not reach is called by nobody.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Place:
    """A function, class or other name of a module; ``name`` of a method is ``Class.method``."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}:{self.name}"


@dataclass
class Module:
    """What a module defines and imports; ``imported`` are dotted names by the names they have here."""

    name: str
    defined: dict[str, list[ast.AST]] = field(default_factory=dict)
    imported: dict[str, str] = field(default_factory=dict)


@cache
def read_module(name: str) -> Module | None:
    """The module of this name; None for those that are not in the repository."""
    path = ROOT / Path(*name.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    if name.split(".", maxsplit=1)[0] not in {"searchcrawl", "tests"} or not file.is_file():
        return None
    module = Module(name)
    for statement in ast.parse(file.read_text(encoding="utf-8")).body:
        _add_imports(module, statement)
        for defined, node in _list_definitions(statement):
            module.defined.setdefault(defined, []).append(node)
    return module


def _add_imports(module: Module, statement: ast.AST) -> None:
    # Those in functions too: what is imported late has the same name in the whole module.
    for node in ast.walk(statement):
        if isinstance(node, ast.ImportFrom):
            module.imported |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            module.imported |= {alias.asname or alias.name: alias.name for alias in node.names}


def _list_definitions(statement: ast.stmt) -> Iterator[tuple[str, ast.AST]]:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
        yield statement.name, statement
    elif isinstance(statement, ast.ClassDef):
        for base in (*statement.bases, *statement.decorator_list):
            yield statement.name, base
        for inner in statement.body:
            if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef):
                yield f"{statement.name}.{inner.name}", inner
            else:
                yield statement.name, inner
        yield statement.name, ast.Pass()
    elif isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        for target in targets:
            for node in ast.walk(target):
                if isinstance(node, ast.Name):
                    yield node.id, statement
    else:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id, statement


class Reach:
    """All that some places reach: ``places``, and the names of attributes that are used there."""

    def __init__(self, starts: Iterable[Place]) -> None:
        self.places: set[Place] = set()
        self._used: set[str] = set()
        self._methods: dict[str, set[Place]] = {}
        self._waiting = list(starts)
        while self._waiting:
            self._visit(self._waiting.pop())

    def _visit(self, place: Place) -> None:
        module = read_module(place.module)
        if place in self.places or module is None or place.name not in module.defined:
            return
        self.places.add(place)
        for node in module.defined[place.name]:
            self._follow(module, node)
        for name in module.defined:
            of_class, _, method = name.partition(".")
            if method and of_class == place.name:
                self._add_method(method, Place(place.module, name))

    def _add_method(self, method: str, place: Place) -> None:
        # Python itself calls those with underscores; Protocols and base classes say nothing about who does.
        if method in self._used or method.startswith("__"):
            self._waiting.append(place)
        self._methods.setdefault(method, set()).add(place)

    def _follow(self, module: Module, top: ast.AST) -> None:
        for node in ast.walk(top):
            if isinstance(node, ast.Name):
                self._name(module, node.id)
            elif isinstance(node, ast.Attribute):
                self._use(node.attr)
                if isinstance(node.value, ast.Name) and node.value.id in module.imported:
                    self._waiting.append(Place(module.imported[node.value.id], node.attr))

    def _name(self, module: Module, name: str) -> None:
        if name in module.defined:
            self._waiting.append(Place(module.name, name))
        elif name in module.imported:
            owner, _, defined = module.imported[name].rpartition(".")
            self._waiting.append(Place(owner, defined))

    def _use(self, attribute: str) -> None:
        if attribute not in self._used:
            self._used.add(attribute)
            self._waiting += self._methods.get(attribute, ())
