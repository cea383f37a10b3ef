"""Parameter constraints: what is accepted, and what the message says."""

import math
from dataclasses import fields

import numpy as np
import pytest

from baldur.baselines import BASELINES
from baldur.core.parameters import (
    FRACTION,
    NON_NEGATIVE,
    POSITIVE,
    check,
    check_parameters,
    integer,
    one_of,
    optional,
)
from baldur.exceptions import InputError


@pytest.mark.parametrize(
    ("constraint", "accepted", "refused"),
    [
        (POSITIVE, [1, 1e-9, np.float32(2)], [0, -1, math.inf, math.nan, True, "1", None]),
        (NON_NEGATIVE, [0, 3.5, np.int64(2)], [-1e-9, math.inf, math.nan, False, "0"]),
        (FRACTION, [0, 0.999], [1, -0.1, math.nan, True]),
        (integer(), [1, np.int32(7)], [0, 1.0, True, "1", None]),
        (integer(least=0), [0], [-1]),
        (one_of("a", "b"), ["a"], ["c", None, 1, ["a"]]),
        (optional(integer()), [None, 2], [0, "a"]),
    ],
)
def test_a_constraint_accepts_and_refuses(constraint, accepted, refused):
    for value in accepted:
        check("x", value, constraint)
    for value in refused:
        with pytest.raises(InputError) as said:
            check("x", value, constraint)
        assert str(said.value) == f"x must be {constraint.words}, but got {value!r}."


def test_only_arguments_with_a_constraint_are_checked():
    check_parameters({"a": 1, "b": "anything"}, {"a": POSITIVE, "c": POSITIVE})
    with pytest.raises(InputError, match="a must be"):
        check_parameters({"a": 0}, {"a": POSITIVE})


def test_defaults_of_the_baselines_are_legal():
    for entry in BASELINES.values():
        for made in filter(None, (entry.classifier, entry.regressor)):
            for f in fields(made):
                if "constraint" in f.metadata:
                    check(f.name, getattr(made, f.name), f.metadata["constraint"])
