"""Properties with the same examples for everybody: whoever runs ``make test`` sees what all others see.

``make fuzz`` and the soak search on, with others each time.
"""

from __future__ import annotations

import os
from typing import Final

from hypothesis import settings
from hypothesis.internal.conjecture import providers

#: Of each fuzz test; 0: a few inputs, always the same.
FUZZ_SECONDS: Final = float(os.environ.get("FUZZ_SECONDS", "0"))

SAME: Final = settings(derandomize=True, database=None, deadline=None)

if not FUZZ_SECONDS:
    _NONE: Final = providers.Constants()
    # The library draws values that it finds in modules of the project: those that earlier tests have loaded.
    providers._get_local_constants = lambda: _NONE
