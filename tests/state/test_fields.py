"""Fields are validated one by one, and errors name them."""

import numpy as np
import pytest

from baldur.core.state import Fields, plain
from baldur.exceptions import InputError


def refuses(state, read, match):
    with pytest.raises(InputError, match=match), Fields(state) as fields:
        read(fields)


ONES = np.ones((2, 3))


@pytest.mark.parametrize(
    ("value", "read", "match"),
    [
        (ONES, lambda f: f.array("x", (3, 3)), r"x: expected numbers of shape \(3, 3\)"),
        (ONES, lambda f: f.array("x", (None,)), r"shape \(any\), but got float64 of shape \(2, 3"),
        (ONES, lambda f: f.array("x", (2, 3), "int"), "whole numbers"),
        (ONES * np.nan, lambda f: f.array("x", (2, 3)), "finite"),
        (ONES * np.inf, lambda f: f.array("x", (2, 3), largest=np.inf), "finite"),
        (ONES * 1e300, lambda f: f.array("x", (2, 3)), "within 1e[+]150"),
        (ONES, lambda f: f.array("x", (2, 3), low=2), "at least 2"),
        (ONES, lambda f: f.array("x", (2, 3), high=0), "at most 0"),
        (ONES, lambda f: f.array("x", (2, 3), above=1), "above 1"),
        (ONES, lambda f: f.flags("x", (2, 3)), "truth values"),
        (np.array([0, 5]), lambda f: f.index("x", (2,), 5), "at most 4"),
        (np.array([0, -1]), lambda f: f.index("x", (2,), 5), "at least 0"),
        (ONES, lambda f: f.simplex("x", (2, 3)), "sum to 1"),
        (np.array([2.0, -1.0]), lambda f: f.simplex("x", (2,)), "at least 0"),
        (np.zeros(0), lambda f: f.simplex("x", (0,)), "sum to 1"),
        (-np.eye(2), lambda f: f.covariance("x", (2, 2)), "not negative"),
        (np.array([[1, 2.0], [2.0, 1.0]]), lambda f: f.covariance("x", (2, 2)), "semidefinite"),
        (np.array([[1, 0.5], [0.0, 1.0]]), lambda f: f.covariance("x", (2, 2)), "symmetric"),
        (np.array(["a\x1b"]), lambda f: f.texts("x", (1,)), "control"),
        (np.array(["a", 1], object), lambda f: f.texts("x", (2,)), "text"),
        (np.array(["a", "a"]), lambda f: f.labels("x"), "all different"),
        (np.array([1, 1]), lambda f: f.labels("x"), "all different"),
        (np.array([1, np.nan]), lambda f: f.labels("x"), "finite"),
        (np.array([b"a"]), lambda f: f.labels("x"), "but got"),
        (True, lambda f: f.number("x"), "a number"),
        (10**400, lambda f: f.number("x"), "float64"),
        (float("nan"), lambda f: f.number("x"), "finite"),
        (1, lambda f: f.number("x", above=1), "above 1"),
        (1e200, lambda f: f.number("x"), "within"),
        (True, lambda f: f.integer("x"), "whole number"),
        (-1, lambda f: f.integer("x"), "from 0"),
        (2**70, lambda f: f.integer("x"), "from 0"),
        (1, lambda f: f.boolean("x"), "true or false"),
        ("a\nb", lambda f: f.text("x"), "printable"),
        (1, lambda f: f.choice("x", (True, "a")), "one of"),
        (["a", "a"], lambda f: f.names("x"), "all different"),
        (["a", 1], lambda f: f.names("x"), "printable names"),
        ([1], lambda f: f.parts("x", dict, 2), "2 entries, but got 1"),
        ({"a": 1}, lambda f: f.by_name("x", ["a", "b"], Fields.integer), "one entry for each"),
        ({"b": 1, "a": 1}, lambda f: f.by_name("x", ["a", "b"], Fields.integer), "one entry"),
        ({"a": -1}, lambda f: f.by_name("x", ["a"], Fields.integer), "x.a: expected a whole"),
        ([1, -1], lambda f: f.each("x", lambda g, key, _: g.integer(key)), r"x\[1\]: expected"),
        ({"kind": "b"}, lambda f: f.part_of_kind("x", {"a": dict}), "x.kind: expected 'a'"),
        ([], lambda f: f.part("x", lambda s: Fields(s)), "x: expected an object, but got a list"),
    ],
)
def test_a_wrong_value_is_refused_and_named(value, read, match):
    refuses({"x": value}, read, match)


def test_a_field_too_few_or_too_many():
    refuses({}, lambda f: f.number("x"), "x: it is missing")
    refuses({"x": 1, "y": 2}, lambda f: f.number("x"), "a field 'y' that is not known")
    with pytest.raises(InputError, match="expected 'a', but got 'b'"):
        Fields({"kind": "b"}, "a")
    with Fields({"x": None}) as read:
        assert not read.has("x")
        assert not read.has("y")


def test_names_in_shapes_stand_for_one_number():
    with Fields({"x": np.ones((2, 3)), "y": np.ones(3), "z": [1, 2]}, None, C=2) as read:
        read.array("x", ("C", "d"))
        read.array("y", ("d",))
        read.parts("z", lambda s: s, "C")
        assert read.sizes == {"C": 2, "d": 3}
    refuses({"x": np.ones((2, 3))}, lambda f: f.array("x", ("d", "d")), "d=2, d=2")


def test_errors_name_the_way_to_the_field():
    def inner(state, C):
        with Fields(state, "inner", C=C) as read:
            return read.array("mean", ("C",))

    def outer(state):
        with Fields(state, "outer") as read:
            return read.parts("members", {"inner": inner}, C=2)

    good, bad = ({"kind": "inner", "mean": np.ones(n)} for n in (2, 3))
    assert len(outer({"kind": "outer", "members": [good]})) == 1
    with pytest.raises(InputError, match=r"members\[1\].mean: expected numbers of shape \(C=2\)"):
        outer({"kind": "outer", "members": [good, bad]})


@pytest.mark.parametrize("scale", [1e-140, 1.0, 1e140])
def test_covariances_of_any_size(scale):
    rng = np.random.default_rng(0)
    A = rng.normal(size=(3, 5, 2))
    low_rank = scale * A @ np.swapaxes(A, 1, 2)
    with Fields({"x": low_rank}) as read:
        assert read.covariance("x", (3, "l", "l")) is low_rank
    with Fields({"x": np.zeros((1, 0, 0)), "y": np.zeros((2, 2))}) as read:
        read.covariance("x", (1, 0, 0))
        read.covariance("y", (2, 2))
    # All pairs are sound, and yet there is a direction of negative variance.
    refuses(
        {"x": scale * (1.6 * np.eye(3) - 0.6)},
        lambda f: f.covariance("x", (3, 3)),
        "semidefinite",
    )


def test_ranges():
    with Fields({"a": np.array([0.0, np.nan]), "b": np.array([0.0, np.nan])}) as read:
        read.ranges("a", "b", (2,))
    refuses({"a": np.ones(1), "b": np.zeros(1)}, lambda f: f.ranges("a", "b", (1,)), "not above")
    refuses(
        {"a": np.ones(1) * np.nan, "b": np.zeros(1)},
        lambda f: f.ranges("a", "b", (1,)),
        "missing where",
    )


def test_plain_values():
    found = plain({"a": (np.float32(0.5), np.int64(3), np.str_("x"), np.bool_(True)), "b": None})
    assert found == {"a": [0.5, 3, "x", True], "b": None}
    assert [type(v) for v in found["a"]] == [float, int, str, bool]
    for wrong in (b"x", {1: 2}, object(), {1, 2}, 1j, slice(1)):
        with pytest.raises(InputError, match="a setting cannot be saved"):
            plain(wrong, "a setting")
