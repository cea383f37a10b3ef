"""scikit-learn's own checks of an estimator, on the defaults of both.

Two checks cannot apply. Both repeat rows and ask that an integer weight does the same. Rows are
assigned to inner folds, so copies of a row fall on both sides of a fold where a weighted row does
not. In their place stand `test_weight_zero_leaves_a_sample_out` in the tests of each estimator and
`test_weight_two_is_a_repeated_sample` in the tests of the members.

The checks of every sparse format fit twenty times and are marked slow; `test_classifier` has one
sparse format among the fast tests.
"""

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator

from baldur import BaldurClassifier, BaldurRegressor

CANNOT_APPLY = {
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
}
SLOW = {"check_estimator_sparse_array", "check_estimator_sparse_matrix"}


@pytest.fixture(autouse=True)
def two_folds(constants):
    """The least of inner folds: what is checked here hangs on none of them."""
    constants(N_FOLDS=2, MOST_REPEATS=1, SMALL=0)


def cases():
    found = []
    for model in (BaldurClassifier(), BaldurRegressor()):
        for estimator, check in estimator_checks_generator(model):
            name = getattr(check, "func", check).__name__
            if name not in CANNOT_APPLY:
                marks = [pytest.mark.slow] if name in SLOW else []
                label = f"{type(model).__name__}-{name}"
                found.append(pytest.param(estimator, check, marks=marks, id=label))
    return found


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.filterwarnings("ignore::baldur.exceptions.NotConvergedWarning")
@pytest.mark.filterwarnings("ignore::baldur.exceptions.NoSignalWarning")
@pytest.mark.parametrize(("estimator", "check"), cases())
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_what_cannot_apply_is_still_there():
    # If scikit-learn renames a check, it must not be left out in silence.
    for model in (BaldurClassifier(), BaldurRegressor()):
        names = {getattr(c, "func", c).__name__ for _, c in estimator_checks_generator(model)}
        assert names >= CANNOT_APPLY | SLOW
