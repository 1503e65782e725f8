"""An incremental enterprise search crawler that keeps a search index true.

The stages, in the order in which a URL passes them: ``sources`` (what to crawl) → ``store`` (the
URL table, the only memory) → ``frontier`` (claims what is due) → ``fetch`` → ``html`` and
``convert`` → ``admission`` (links become rows) → ``checksum`` → ``dedup`` → ``commit`` (cache and
rows, a group at a time) → ``index`` (delivery with receipts). ``answers`` and ``commands`` show it.
"""

__version__ = "0.1.0"
