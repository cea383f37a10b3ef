"""Values are checked one by one, and errors name the field."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from baldur.core.state import (
    Boolean,
    ByName,
    ByView,
    Choice,
    Covariance,
    Each,
    Flags,
    Integer,
    Labels,
    Names,
    Number,
    Numbers,
    Object,
    OrNone,
    Sizes,
    StateError,
    Text,
    Texts,
    Widths,
    at,
    plain,
    read_fields,
    read_state,
    stored,
    write_state,
)
from baldur.exceptions import InputError


def read(form, value, **sizes):
    """The value of a field `x` of some form."""
    return read_fields({"x": value}, {"x": form}, Sizes(**sizes))["x"]


def refuses(value, form, match, **sizes):
    with pytest.raises(InputError, match=match):
        read(form, value, **sizes)


ONES = np.ones((2, 3))
VIEWS = {"a": 1, "b": 2}


@pytest.mark.parametrize(
    ("value", "form", "match"),
    [
        (ONES, Numbers("3 3"), r"x: expected numbers of shape \(3, 3\)"),
        (ONES, Numbers("?"), r"shape \(any\), but got float64 of shape \(2, 3"),
        (ONES, Numbers("2 3", "int"), "whole numbers"),
        (ONES * np.nan, Numbers("2 3"), "finite"),
        (ONES * np.inf, Numbers("2 3", largest=np.inf), "finite"),
        (ONES * 1e300, Numbers("2 3"), "within 1e[+]150"),
        (ONES, Numbers("2 3", low=2), "at least 2"),
        (ONES, Numbers("2 3", high=0), "at most 0"),
        (ONES, Numbers("2 3", above=1), "above 1"),
        (ONES, Flags("2 3"), "truth values"),
        (np.array([0, 5]), Numbers("2", "int", low=0, below="n"), "at most 4"),
        (np.array([0, -1]), Numbers("2", "int", low=0, below="n"), "at least 0"),
        (np.array([1, 1]), Numbers("2", "int", unique=True), "all different"),
        (ONES, Numbers("2 3", low=0, simplex=True), "sum to 1"),
        (np.array([2.0, -1.0]), Numbers("2", low=0, simplex=True), "at least 0"),
        (np.zeros(0), Numbers("0", low=0, simplex=True), "sum to 1"),
        (-np.eye(2), Covariance("2 2"), "not negative"),
        (np.array([[1, 2.0], [2.0, 1.0]]), Covariance("2 2"), "semidefinite"),
        (np.array([[1, 0.5], [0.0, 1.0]]), Covariance("2 2"), "symmetric"),
        (np.array(["a\x1b"]), Texts("1"), "control"),
        (np.array(["a", 1], object), Texts("2"), "text"),
        (np.array(["a", "a"]), Texts("2", unique=True), "all different"),
        (np.array(["a", "a"]), Labels(), "all different"),
        (np.array([1, 1]), Labels(), "all different"),
        (np.array([1, np.nan]), Labels(), "finite"),
        (np.array([b"a"]), Labels(), "but got"),
        (None, Number(), "a number, but got None"),
        (True, Number(), "a number"),
        (10**400, Number(), "float64"),
        (float("nan"), Number(), "finite"),
        (1, Number(above=1), "above 1"),
        (1e200, Number(), "within"),
        (True, Integer(), "whole number"),
        (-1, Integer(), "from 0"),
        (2**70, Integer(), "from 0"),
        (1, Boolean(), "one of"),
        ("a\nb", Text(), "printable"),
        (1, Choice((True, "a")), "one of"),
        (["a", "a"], Names(), "all different"),
        (["a", 1], Names(), "printable names"),
        ("a", Names(), "expected a list"),
        ([1], Each(Integer(), "m"), "2 entries, but got 1"),
        ({"a": 1}, ByView(Integer()), "one entry for each"),
        ({"b": 1, "a": 1}, ByView(Integer()), "one entry for each"),
        ({"a": 1, "c": 1}, ByView(Integer(), some=True), "one entry for each"),
        ({"a": -1, "b": 0}, ByView(Integer()), r"x\.a: expected a whole"),
        ({"a": ONES[0], "b": ONES[0]}, ByView(Numbers("D")), r"x\.a: .* of shape \(D=1\)"),
        ({"a": -1}, ByName(Integer()), r"x\.a: expected a whole"),
        ([1, -1], Each(Integer()), r"x\[1\]: expected"),
        ([], ByName(Integer()), "x: expected an object, but got a list"),
        ({}, Widths(), "at least one view"),
        ({"a": 0}, Widths(), r"x\.a: expected a whole number from 1"),
    ],
)
def test_a_wrong_value_is_refused_and_named(value, form, match):
    refuses(value, form, match, widths=VIEWS, n=5, m=2)


def test_values_that_may_be_missing():
    assert read(OrNone(Number()), None) is None
    assert read(Names(or_text=True), "a") == "a"
    assert read(ByView(Integer(), some=True), {"b": 1}, widths=VIEWS) == {"b": 1}


def test_a_field_too_few_or_too_many():
    with pytest.raises(InputError, match="x: it is missing"):
        read_fields({}, {"x": Number()}, Sizes())
    with pytest.raises(InputError, match="a field 'y' that is not known"):
        read_fields({"x": 1, "y": 2}, {"x": Number()}, Sizes())


def test_names_in_shapes_stand_for_one_number():
    sizes = Sizes(C=2)
    forms = {"x": Numbers("C d"), "y": Numbers("d"), "z": Each(Integer(), "C")}
    read_fields({"x": np.ones((2, 3)), "y": np.ones(3), "z": [1, 2]}, forms, sizes)
    assert sizes.known["d"] == 3
    refuses(np.ones((2, 3)), Numbers("d d"), "d=2, d=2")


@dataclass
class Inner:
    kind: ClassVar[str] = "inner"
    mean: np.ndarray = stored(Numbers("C d"))


@dataclass
class Outer:
    kind: ClassVar[str] = "outer"
    members: list = stored(Each(Object(Inner)))
    first: float = stored(Number(), default=0.0)
    note: str = "not stored"

    def check_state(self, sizes):
        if self.first < 0:
            raise StateError(("first",), "expected more")


def test_objects_come_back_and_errors_name_the_way_to_the_field():
    whole = Outer([Inner(np.ones((2, 3))), Inner(np.ones((2, 4)))], first=1.0, note="lost")
    state = write_state(whole)
    assert list(state) == ["kind", "members", "first"]
    again = read_state(state, Outer, sizes=Sizes(C=2))
    assert [member.mean.shape for member in again.members] == [(2, 3), (2, 4)]
    assert (again.first, again.note) == (1.0, "not stored")
    wrong = r"members\[0\].mean: expected numbers of shape \(C=3, d\)"
    for changed, sizes, match in (
        (state, Sizes(C=3), wrong),
        ({**state, "kind": "inner"}, None, "kind: expected 'outer', but got 'inner'"),
        ({**state, "first": -1}, None, "first: expected more"),
        ({**state, "members": [{"kind": 3}]}, None, r"members\[0\].kind: expected 'inner'"),
        ([], None, "expected an object, but got a list"),
    ):
        with pytest.raises(InputError, match=match):
            read_state(changed, Outer, sizes=sizes)
    with pytest.raises(StateError, match=r"^a\.b\[0\]: wrong$"), at("a", "b", "[0]"):
        raise InputError("wrong")


@pytest.mark.parametrize("scale", [1e-140, 1.0, 1e140])
def test_covariances_of_any_size(scale):
    rng = np.random.default_rng(0)
    A = rng.normal(size=(3, 5, 2))
    low_rank = scale * A @ np.swapaxes(A, 1, 2)
    assert read(Covariance("3 l l"), low_rank) is low_rank
    read(Covariance("1 0 0"), np.zeros((1, 0, 0)))
    read(Covariance("2 2"), np.zeros((2, 2)))
    # All pairs are sound, and yet there is a direction of negative variance.
    refuses(scale * (1.6 * np.eye(3) - 0.6), Covariance("3 3"), "semidefinite")


def test_plain_values():
    found = plain({"a": (np.float32(0.5), np.int64(3), np.str_("x"), np.bool_(True)), "b": None})
    assert found == {"a": [0.5, 3, "x", True], "b": None}
    assert [type(v) for v in found["a"]] == [float, int, str, bool]
    for wrong in (b"x", {1: 2}, object(), {1, 2}, 1j, slice(1)):
        with pytest.raises(InputError, match="a setting cannot be saved"):
            plain(wrong, "a setting")
