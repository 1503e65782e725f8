"""Where the configuration set for Solr is."""

from __future__ import annotations

from pathlib import Path
from typing import Final

#: In an installed package; a checkout has it where ``solr/server`` finds it, too.
_INSTALLED: Final = Path(__file__).with_name("configset_files")
_OF_CHECKOUT: Final = Path(__file__).parents[3] / "solr" / "configset"


def find_configset() -> Path:
    """The folder with ``schema.xml`` and ``solrconfig.xml``."""
    return _INSTALLED if _INSTALLED.is_dir() else _OF_CHECKOUT
