"""What HostRegistry asks about the names of hosts, before a request is sent there."""

from __future__ import annotations

from collections.abc import Iterable


class HostNames:
    """The look-ups of names, for hosts as ``host:port``. This one looks nothing up: requests do that for themselves."""

    def look_ahead(self, hosts: Iterable[str]) -> None:
        """Notes that these hosts get requests in the next seconds; any thread may call this."""

    def is_known(self, host: str) -> bool:
        """Whether a request may be sent: DNS was asked for the name, whatever it said. If not, it is asked now.

        ``HostRegistry.note_names`` follows once it has answered. For the event loop.
        """
        return True

    def find_address(self, host: str) -> str:
        """The address to which the next request is sent, as far as it is known; empty where it is not."""
        return ""
