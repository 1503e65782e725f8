from __future__ import annotations

import subprocess
import sys

from scrapy.extensions.memusage import MemoryUsage
from scrapy.utils.test import get_crawler

from searchcrawl.addon import SearchcrawlAddon
from searchcrawl.extensions.watch_extension import MemoryExtension

_CHILD = (
    "from scrapy.utils.test import get_crawler;"
    "from searchcrawl.extensions.watch_extension import MemoryExtension;"
    "print(MemoryExtension(get_crawler()).get_virtual_size())"
)
_PARENT = (
    "import os, sys;"
    "much = bytearray(b'x') * 400_000_000;"
    "sys.stdout.flush();"
    "os.execv(sys.executable, [sys.executable, '-c', sys.argv[1]])"
)


def test_memory_when_the_process_was_a_large_one_before_then_counts_its_own_alone() -> None:
    large = subprocess.run([sys.executable, "-c", _PARENT, _CHILD], capture_output=True, text=True, check=True)

    assert 20_000_000 < int(large.stdout) < 300_000_000


def test_extensions_when_a_spider_of_users_own_runs_then_its_memory_is_counted_the_same_way() -> None:
    crawler = get_crawler(settings_dict={"ADDONS": {SearchcrawlAddon: 0}, "MEMUSAGE_ENABLED": True})

    counting = [type(extension) for extension in crawler.extensions.middlewares if isinstance(extension, MemoryUsage)]

    assert counting == [MemoryExtension]


def test_extensions_when_a_user_took_the_memory_limit_out_then_it_stays_out() -> None:
    crawler = get_crawler(settings_dict={"ADDONS": {SearchcrawlAddon: 0}, "EXTENSIONS_BASE": {}})

    assert crawler.extensions.middlewares == ()
