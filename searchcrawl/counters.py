"""The counters of a run: what ``status`` and the end of a crawl show (J1).

A stage adds to one with ``Run.count``, or with ``Run.write_counted`` in the transaction of what it counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

#: In the order in which they are shown, each with its meaning.
COUNTS: Final[Mapping[str, str]] = {
    "to_fetch": "URLs that the run still has to visit.",
    "fetched": "URLs whose visit brought an answer that was taken in, changed or not.",
    "fetch_failures": "URLs whose visit failed, those whose conversion failed included.",
    "rejected": "URLs that a rule refused without a request.",
    "discovered": "All URLs of the run: the sum of the four counters above, at any moment.",
    "not_modified": "Pages that the server called unchanged (304).",
    "unchanged": "Pages that were fetched again, and whose content is as before.",
    "new": "Documents that were not known before.",
    "changed": "Known documents in which an indexed field differs.",
    "deleted": "Documents that were removed from the index, without copies that only the same run had sent.",
    "indexed": "Documents that the index acknowledged.",
    "non_indexable": "Pages that were fetched and are not to be indexed.",
    "conversion_failures": "Pages that could not be converted.",
    "duplicates": "Pages that are copies of another one, which is indexed in their place.",
}
