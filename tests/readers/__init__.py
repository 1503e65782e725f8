"""Every reader of outside bytes, declared once: tests of growth, the fuzz and the search for others go by this list."""

from __future__ import annotations

from typing import Final

from tests.readers import bodies, files, headers, listed, pages, texts, urls
from tests.readers.declaring import Reader, list_declared

#: Where they are declared.
MODULES: Final = (bodies, files, headers, listed, pages, texts, urls)
READERS: Final[list[Reader]] = list_declared()
