"""Versions of the steps that make a document of a body; a rise has the next run process every page again.

They are part of the fingerprint of a source, and stand apart from the steps so that ``status`` need not load them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

VERSIONS: Final[Mapping[str, int]] = {
    # Rises when ``html.page`` would read another page out of the same bytes.
    "html": 3,
    # Rises when ``convert`` would read another page out of the same bytes.
    "convert": 2,
    # Rises when ``documents.checksum_pipeline`` would give the same page another digest.
    "checksum": 1,
}
