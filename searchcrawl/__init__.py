"""An incremental enterprise search crawler that keeps a search index true.

``open_project`` is where programs begin; what is public is in ``__all__``, and in docs/reference/python.md.

The stages, in the order in which a URL meets them: ``sources`` (what to crawl) → ``store`` (the URL table, the only
memory) → ``frontier`` (claims what is due) → ``robots``, ``http`` and ``login`` (the request) → ``documents``,
``convert``, ``html`` and ``soft404`` (what the body says) → ``admission`` (links become rows), ``commit`` (copies,
cache and rows, a group at a time) → ``delivery`` → ``index``. ``queries``, ``operations`` and ``cli`` are for
users, ``api`` for programs. ``addon`` has the exact order, docs/explanation/architecture.md the whole picture.
"""

try:
    # The build of a wheel makes it.
    from searchcrawl._built import VERSION as __version__
except ImportError:
    __version__ = "0.2.0"
# Their modules are loaded with the first use of a name: they load much, and commands begin by importing this one.
_OF_PROJECT = ("Project", "open_project")
_VALUES = (
    "Answer", "Crawl", "Difference", "Done", "Explanation", "HeldRemoval", "Hit", "Notice", "PastRun", "Plan", "Reason", "Run",
    "Source", "Status", "Step", "StoredDocument", "Submitted", "TriedPage", "Url", "Verification",
)  # fmt: skip
__all__ = ["__version__", *_OF_PROJECT, *_VALUES]  # noqa: PLE0604  # texts, all of them


def __getattr__(name):
    from importlib import import_module  # noqa: PLC0415  # loaded where it is used, as worker processes do without

    if name in _OF_PROJECT:
        return getattr(import_module("searchcrawl.api.project"), name)
    if name in _VALUES:
        return getattr(import_module("searchcrawl.api.values"), name)
    raise AttributeError(f"module 'searchcrawl' has no attribute {name!r}")


def __dir__():
    return [*globals(), *__all__]
