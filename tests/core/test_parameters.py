"""Parameter constraints: what is accepted, and what the message says."""

import ast
import inspect
import math
import sys
import textwrap
from dataclasses import make_dataclass
from typing import Any

import numpy as np
import pytest

from baldur import BaldurClassifier, BaldurRegressor
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
    parameter,
)
from baldur.exceptions import InputError
from baldur.paper import PaperClassifier, PaperRegressor


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
    kind = make_dataclass("kind", [("a", Any, parameter(1, POSITIVE)), ("b", Any, None)])
    check_parameters(kind(b="anything"))
    with pytest.raises(InputError, match="a must be"):
        check_parameters(kind(a=0))


def test_defaults_are_legal():
    for kind in (BaldurClassifier, BaldurRegressor, PaperClassifier, PaperRegressor):
        check_parameters(kind())
    for entry in BASELINES.values():
        for estimator in filter(None, (entry.classifier, entry.regressor)):
            check_parameters(estimator)


@pytest.mark.parametrize("kind", [BaldurClassifier, BaldurRegressor])
def test_type_checkers_see_the_parameters_that_there_are(kind):
    body = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0].body
    (block,) = [node for node in body if isinstance(node, ast.If)]
    declared = dict(vars(sys.modules[kind.__module__]))
    exec(compile(ast.Module(block.body, []), "<class body>", "exec"), declared)
    _, *parameters = inspect.signature(declared["__init__"]).parameters.values()
    actual = list(inspect.signature(kind).parameters.values())
    assert [(p.name, p.kind, p.default) for p in parameters] == [
        (p.name, p.kind, p.default) for p in actual
    ]
