"""What the ``searchcrawl`` script calls.

Each worker process (worker_pool.py) runs the script's file again, up to the call: so nothing is imported before it.
"""

from __future__ import annotations


def main() -> None:
    """Runs one command with the arguments of the process, and exits with its code."""
    from searchcrawl.__main__ import main as run  # noqa: PLC0415  # see above

    run()
