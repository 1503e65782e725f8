"""The configuration of Sphinx; ``make docs`` builds the pages of this folder."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from docs.reference_pages import PAGES
from searchcrawl import __version__

if TYPE_CHECKING:
    from sphinx.application import Sphinx

project: Final = "searchcrawl"
release: Final = __version__
html_title: Final = f"searchcrawl {__version__}"
html_theme: Final = "furo"
html_static_path: Final = ["_static"]
html_css_files: Final = ["tables.css"]
extensions: Final = ["myst_parser"]
myst_enable_extensions: Final = ["deflist"]
myst_heading_anchors: Final = 3
exclude_patterns: Final = ["_build"]
# No reader needs a copy of the sources beside the pages.
html_copy_source: Final = False
nitpicky: Final = True


class Reference(SphinxDirective):
    """```{reference} NAME``` puts the text of a function of ``docs.reference_pages`` into a page."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        # The code may have changed where the page has not.
        self.env.note_reread()
        return self.parse_text_to_nodes(PAGES[self.arguments[0]](), allow_section_headings=True)


def setup(app: Sphinx) -> dict[str, Any]:
    """Registers the directive."""
    app.add_directive("reference", Reference)
    return {"parallel_read_safe": True}
