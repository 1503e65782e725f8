"""Scrapy settings of every searchcrawl project: values only; ``addon`` adds the components."""

from __future__ import annotations

BOT_NAME = "searchcrawl"
ADDONS = {"searchcrawl.addon.SearchcrawlAddon": 0}
COMMANDS_MODULE = "searchcrawl.cli.commands"
SPIDER_LOADER_CLASS = "searchcrawl.spiders.spider_loader.SourceSpiderLoader"
TWISTED_REACTOR = "twisted.internet.asyncioreactor.AsyncioSelectorReactor"

# Both listen on a port and run what they are sent.
TELNETCONSOLE_ENABLED = False
REMOTE_CONTROL_ENABLED = False

# The web only: a link must not lead to a file of this machine.
DOWNLOAD_HANDLERS = {
    # For spiders in Python; sources have another one of the same module.
    "http": "searchcrawl.http.download_handler.PythonSpiderHandler",
    "https": "searchcrawl.http.download_handler.PythonSpiderHandler",
    "data": None,
    "file": None,
    "ftp": None,
    "s3": None,
}
DOWNLOAD_VERIFY_CERTIFICATES = True
DOWNLOAD_MAXSIZE = 32 * 1024 * 1024
DOWNLOAD_WARNSIZE = 0
DOWNLOAD_TIMEOUT = 30

# What the URL table, the host table and our own middlewares do.
RETRY_ENABLED = False
REDIRECT_ENABLED = False
METAREFRESH_ENABLED = False
ROBOTSTXT_OBEY = False
URLLENGTH_LIMIT = 0
DEPTH_LIMIT = 0
DOWNLOAD_DELAY = 0
DOWNLOAD_DELAY_JITTER = 0
AUTOTHROTTLE_ENABLED = False
HTTPCACHE_ENABLED = False

# Only with a login or where a source says so: both leave traces from one page to another.
COOKIES_ENABLED = False
HTTPPROXY_ENABLED = False
REFERRER_POLICY = "same-origin"
# A site's own choice of language, not English.
DEFAULT_REQUEST_HEADERS = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}

# Items are handed to one writer thread; more at once only cost turns of the reactor.
CONCURRENT_ITEMS = 1
CONCURRENT_REQUESTS = 8
MEMUSAGE_LIMIT_MB = 2048

LOG_LEVEL = "INFO"
LOG_VERSIONS: list[str] = []

# How long a crawl waits for a store that is locked or out of reach; then it ends with exit 7.
SEARCHCRAWL_STORE_PATIENCE_SECONDS = 120

# A run ends with exit 7 where a disk of the project has less room left than this; 0: when it is full.
SEARCHCRAWL_MIN_FREE_MB = 50

# How long the end of a run waits for an index that cannot be reached; then its documents wait.
SEARCHCRAWL_INDEX_PATIENCE_SECONDS = 60

# A process whose reactor does not turn for so long is ended (exit 1), and the next run finds the page that stopped it.
# 0: never, as for a debugger.
SEARCHCRAWL_STALL_SECONDS = 60
