from searchcrawl.api.project import Project as Project
from searchcrawl.api.project import open_project as open_project
from searchcrawl.api.values import Answer as Answer
from searchcrawl.api.values import Crawl as Crawl
from searchcrawl.api.values import Difference as Difference
from searchcrawl.api.values import Done as Done
from searchcrawl.api.values import Explanation as Explanation
from searchcrawl.api.values import HeldRemoval as HeldRemoval
from searchcrawl.api.values import Hit as Hit
from searchcrawl.api.values import Notice as Notice
from searchcrawl.api.values import PastRun as PastRun
from searchcrawl.api.values import Plan as Plan
from searchcrawl.api.values import Reason as Reason
from searchcrawl.api.values import Run as Run
from searchcrawl.api.values import Source as Source
from searchcrawl.api.values import Status as Status
from searchcrawl.api.values import Step as Step
from searchcrawl.api.values import StoredDocument as StoredDocument
from searchcrawl.api.values import Submitted as Submitted
from searchcrawl.api.values import TriedPage as TriedPage
from searchcrawl.api.values import Url as Url
from searchcrawl.api.values import Verification as Verification

__version__: str
__all__ = [
    "Answer",
    "Crawl",
    "Difference",
    "Done",
    "Explanation",
    "HeldRemoval",
    "Hit",
    "Notice",
    "PastRun",
    "Plan",
    "Project",
    "Reason",
    "Run",
    "Source",
    "Status",
    "Step",
    "StoredDocument",
    "Submitted",
    "TriedPage",
    "Url",
    "Verification",
    "__version__",
    "open_project",
]
