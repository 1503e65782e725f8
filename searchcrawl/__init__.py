"""An incremental enterprise search crawler that keeps a search index true.

The stages, in the order in which a URL meets them: ``sources`` (what to crawl) → ``store`` (the URL table, the only
memory) → ``frontier`` (claims what is due) → ``robots``, ``http`` and ``login`` (the request) → ``documents``,
``convert``, ``html`` and ``soft404`` (what the body says) → ``admission`` (links become rows), ``duplicates`` and
``commit`` (cache and rows, a group at a time) → ``delivery`` → ``index``. ``queries``, ``operations`` and ``cli`` are for
users. ``addon`` has the exact order, docs/explanation/architecture.md the whole picture.
"""

__version__ = "0.1.0"
