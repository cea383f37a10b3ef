"""Generated datasets that are awkward on purpose, and what an estimator may do with them."""

from robustness.generated.cases import Case, make_case
from robustness.generated.run import Outcome, run_case

__all__ = ["Case", "Outcome", "make_case", "run_case"]
