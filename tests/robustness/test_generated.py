"""Generated datasets, awkward on purpose: finite answers that sum to one, or one of our errors.

    pytest -m slow -s tests/robustness/test_generated.py                # 2,000, every fifth larger
    BALDUR_CASES=1,500 pytest -m slow -s tests/robustness/test_generated.py  # 500 of seed 1

One case is run again by ``run_case(make_case(seed, number))`` of `robustness.generated`.
"""

import os
from collections import Counter

import pytest

from robustness.generated import make_case, run_case
from robustness.generated.cases import CLASSES
from robustness.generated.features import NEW_ROWS, QUIRKS

SEED, MANY = (int(part) for part in os.environ.get("BALDUR_CASES", "0,2000").split(","))
FEW = 200


@pytest.fixture(autouse=True)
def one_repeat(constants):
    # Repeats of the inner folds do the same again.
    constants(MOST_REPEATS=1)


def judged(seed, numbers, large_every=0):
    """Run cases; returns how many ended in which way, and those that should not have."""
    ends, wrong = Counter(), []
    for number in numbers:
        case = make_case(seed, number, quick=not large_every or number % large_every > 0)
        outcome = run_case(case)
        ends[outcome.verdict] += 1
        if not outcome.fine:
            wrong.append(f"{outcome.verdict}: {outcome.said}\n    {case.name}")
            print(wrong[-1])
    return ends, wrong


@pytest.mark.parametrize("part", range(4))
def test_two_hundred_cases(part):
    ends, wrong = judged(0, range(part, FEW, 4))
    assert not wrong, "\n".join(wrong)
    # The others are refused; a suite in which everything is refused would hold nothing.
    assert ends["answer"] > 0.4 * FEW / 4


def test_every_kind_is_drawn():
    names = [make_case(0, number, quick=True).name for number in range(FEW)]
    for kind in (*QUIRKS, *(f"new {kind}" for kind in NEW_ROWS), *(c.__name__ for c in CLASSES)):
        assert any(kind in name for name in names), kind


@pytest.mark.slow
def test_two_thousand_cases():
    ends, wrong = judged(SEED, range(MANY), large_every=5)
    print(dict(ends))
    assert not wrong, "\n".join(wrong)
