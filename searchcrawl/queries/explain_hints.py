"""What may help where no rule decided, but the answer of a site: a table or a key that such pages need (L1)."""

from __future__ import annotations

from searchcrawl.codes import Code
from searchcrawl.html.shell import needs_scripts
from searchcrawl.queries.explain_context import Context, read_page
from searchcrawl.sources.project import FILE
from searchcrawl.store.urls.url_queries import UrlFacts

_OK = 200
_UNAUTHORIZED = 401


def find_hint(context: Context, facts: UrlFacts) -> str:
    """What to look at in the files of the project, as the code of the last visit asks for; empty without anything."""
    source, code = context.source, facts.listed.code
    if code in {_UNAUTHORIZED, Code.LOGIN_FAILED}:
        if source.login.type is None:
            return f"it asks for a login: give {source.file} a table [login]"
        return f"the login does not open it: see to [login] in {source.file}"
    is_page = "html" in (facts.mimetype or "html") and source.render.mode == "never"
    if is_page and (code == Code.EMPTY or (code == _OK and _is_shell(context, facts))):
        return f'if scripts write its text, have a browser render it: set mode = "auto" in [render] of {source.file}'
    if code == Code.NO_CONVERTER:
        return f"a class of your own may read its type: see to [converters] in {FILE}"
    if code == Code.CERTIFICATE:
        return f"if its authority is one of your own, name it in fetch.ca_file of {source.file}"
    return ""


def _is_shell(context: Context, facts: UrlFacts) -> bool:
    """Whether it is one of the pages that ``status`` counts as in need of their scripts."""
    page = read_page(context, facts)
    return page is not None and needs_scripts(page.body, str(page.fields.get("content") or ""))
