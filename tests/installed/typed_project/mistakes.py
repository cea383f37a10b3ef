"""Mistakes that a type checker must find in code that uses the package.

``mypy --strict`` complains about an ignored error that is not there. So this file passes only where
every line below is known to be wrong, which it would not be if the types of the wheel were lost.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import baldur
from baldur import BaldurClassifier, MultiView
from baldur.evaluation import nested_cv
from baldur.io import read_table

# For the checker alone: nothing of it can be run.
if TYPE_CHECKING:
    misspelt = BaldurClassifier(margn=0.1)  # type: ignore[call-arg]
    wrong_kind = BaldurClassifier(margin="small")  # type: ignore[arg-type]
    folder: int = BaldurClassifier().save("model")  # type: ignore[assignment]
    unknown = nested_cv(["BALDUR"], None, None).tables_of_scores()  # type: ignore[attr-defined]
    labels: str = BaldurClassifier().predict_proba(None)  # type: ignore[assignment]
    table: Path = read_table("clinical.csv")  # type: ignore[assignment]
    processes = nested_cv(["BALDUR"], None, None, n_jobs="two")  # type: ignore[arg-type]
    views: list[str] = MultiView({}).view("clinical")  # type: ignore[assignment]
    version: int = baldur.__version__  # type: ignore[assignment]
