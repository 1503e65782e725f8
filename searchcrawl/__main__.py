"""What ``searchcrawl`` and ``python -m searchcrawl`` call.

Each worker process (worker_pool.py) runs the file again, up to the call: so nothing of a command is imported before it.
"""

from __future__ import annotations

import gc


def main() -> None:
    """Runs one command with the arguments of the process, and exits with its code."""
    # What is loaded stays: looking for garbage in it is a tenth of a start. The command has it on again.
    gc.disable()
    from searchcrawl.dispatch import main as run  # noqa: PLC0415  # see above

    run()


if __name__ == "__main__":
    main()
