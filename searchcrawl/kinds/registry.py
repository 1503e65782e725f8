"""Kinds of sources: what ``type`` in a source file may be, and what each of them is made of.

A further kind is a package with its classes and a ``Kind``, and a line in ``KINDS``. All others ask the kind of a source
for what they need, and nobody asks for its name.
"""

from __future__ import annotations

from typing import Final

from searchcrawl.kinds.web import WEB

#: By name. All are known when the first other module is imported: it reads their schemes.
KINDS: Final = {kind.name: kind for kind in (WEB,)}
#: Kinds that a later release brings; each has a table of its name in source files.
LATER: Final = frozenset({"file", "table", "mail", "agent"})
