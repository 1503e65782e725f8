"""Names of `make hosts` without DNS: Python reads this module when it starts, where its folder is on PYTHONPATH.

There is no DNS that knows ten thousand names of hosts that do not exist. The functions of the standard library that ask it
(searchcrawl calls the first, plain Scrapy the second) answer for them, after HOSTS_LOOKUP_MS milliseconds. What a
crawler does about a look-up, as threads and its cache, is done; what the system does is not.
"""

from __future__ import annotations

import os
import socket
import time
from typing import Any, Final

_getaddrinfo: Final = socket.getaddrinfo
_gethostbyname: Final = socket.gethostbyname
_SECONDS: Final = float(os.environ.get("HOSTS_LOOKUP_MS", "0")) / 1000


def _look_up(host: Any) -> Any:
    """The address of a name of the server, after a while; any other name is given back."""
    name = host.decode() if isinstance(host, bytes) else host
    if isinstance(name, str) and name.endswith(".hosts.test"):
        time.sleep(_SECONDS)
        return "127.0.0.1"
    return host


def _answer_all(host: Any, *arguments: Any, **keywords: Any) -> Any:
    return _getaddrinfo(_look_up(host), *arguments, **keywords)


def _answer_one(host: Any) -> str:
    return _gethostbyname(_look_up(host))


socket.getaddrinfo = _answer_all
socket.gethostbyname = _answer_one
