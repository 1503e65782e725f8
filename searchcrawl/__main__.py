"""What ``searchcrawl`` and ``python -m searchcrawl`` call.

Each worker process (worker_pool.py) of the installed script imports this again: so it imports nothing of a command
before the call.
"""

from __future__ import annotations

import gc


def main() -> None:
    """Runs one command with the arguments of the process, and exits with its code."""
    # Everything loaded stays: a garbage collection is a tenth of the start. The command switches it on again.
    gc.disable()
    from searchcrawl.cli.dispatch import main as run  # noqa: PLC0415  # see above

    try:
        run()
    finally:
        # What is left goes with the process: the interpreter need not look for garbage in it.
        gc.freeze()


if __name__ == "__main__":
    main()
