"""Scrapy settings of every searchcrawl project: values only; ``addon`` adds the components.

They hold for spiders that users write in Python as well. What a source is crawled with is in
``sources/source_settings.py``.
"""

from __future__ import annotations

BOT_NAME = "searchcrawl"
ADDONS = {"searchcrawl.addon.SearchcrawlAddon": 0}
COMMANDS_MODULE = "searchcrawl.cli.commands"
SPIDER_LOADER_CLASS = "searchcrawl.spiders.spider_loader.SourceSpiderLoader"
TWISTED_REACTOR = "twisted.internet.asyncioreactor.AsyncioSelectorReactor"

# As in the settings of a new project of Scrapy; sources have robots.obey.
ROBOTSTXT_OBEY = True

# How long a crawl waits for a store that is locked or out of reach; then it ends with exit 7.
SEARCHCRAWL_STORE_PATIENCE_SECONDS = 120

# A run ends with exit 7 where a disk of the project has less room left than this, and a large document that would take of it is
# visited later; 0: when it is full.
SEARCHCRAWL_MIN_FREE_MB = 50

# How long the end of a run waits for an index that cannot be reached; then its documents wait.
SEARCHCRAWL_INDEX_PATIENCE_SECONDS = 60

# A process whose reactor does not turn for so long is ended (exit 1), and the next run finds the page that stopped it.
# 0: never, as for a debugger.
SEARCHCRAWL_STALL_SECONDS = 60

# A run ends with exit 3 where a plug-in fails at so many documents in a row, or at more than so many and this percentage.
SEARCHCRAWL_PLUGIN_ERRORS = [20, 5]

# Whether spiders in Python may reach public addresses only, as sources do; their pages in a browser too.
SEARCHCRAWL_GUARD = False
