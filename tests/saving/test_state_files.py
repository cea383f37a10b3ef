"""State trees become files and come back; trees that no writer makes are refused in linear time."""

import json
import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from baldur.exceptions import InputError
from baldur.saving.folder_files import STATE_BYTES
from baldur.saving.state_files import (
    DEPTH,
    DTYPES,
    pack_arrays,
    pack_tree,
    read_json,
    unpack_arrays,
    unpack_tree,
    write_json,
)


def to_files(tree):
    value, arrays = pack_tree(tree)
    return write_json(value), pack_arrays(arrays)


def from_files(state, arrays):
    return unpack_tree(read_json(state, STATE_BYTES), unpack_arrays(arrays))


def same(one, two):
    assert type(one) is type(two)
    if isinstance(one, np.ndarray):
        assert one.dtype.kind == two.dtype.kind
        assert one.dtype.kind == "U" or one.dtype == two.dtype
        assert one.shape == two.shape
        np.testing.assert_array_equal(one, two)
        if one.size and one.dtype.kind not in "UO":
            assert one.tobytes() == two.tobytes()  # NaN bits and the sign of zero
    elif isinstance(one, dict):
        assert list(one) == list(two)
        for key in one:
            same(one[key], two[key])
    elif isinstance(one, list):
        assert len(one) == len(two)
        for a, b in zip(one, two, strict=True):
            same(a, b)
    elif isinstance(one, float):
        assert one == two or (math.isnan(one) and math.isnan(two))
        assert math.copysign(1, one) == math.copysign(1, two) or math.isnan(one)
    else:
        assert one == two


printable = st.text(
    st.characters(exclude_categories=("C",), exclude_characters="\u2028\u2029"), max_size=8
)
numbers = st.sampled_from([np.dtype(d) for d in DTYPES]).flatmap(
    lambda dtype: hnp.arrays(
        dtype, hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)
    )
)
texts = hnp.array_shapes(min_dims=1, max_dims=2, min_side=0, max_side=3).flatmap(
    lambda shape: st.lists(printable, min_size=math.prod(shape), max_size=math.prod(shape)).flatmap(
        lambda listed: st.sampled_from([object, str]).map(
            lambda kind: np.array(listed, dtype=kind).reshape(shape)
        )
    )
)
leaves = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats()
    | printable
    | numbers
    | numbers.map(lambda a: np.asfortranarray(a))
    | texts
)
keys = printable | st.sampled_from(["$", "$array", "$$texts", "$float", "kind"])
trees = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=20,
)


@settings(max_examples=150, deadline=None)
@given(trees)
def test_a_tree_comes_back_as_it_was(tree):
    files = to_files(tree)
    again = from_files(*files)
    same(again, tree)
    # The same files, so that a loaded model that is saved has the same identity.
    assert to_files(again) == files


def test_memory_order_stays_so_that_products_round_alike():
    tree = {
        "c": np.ones((3, 4)),
        "f": np.asfortranarray(np.ones((3, 4))),
        "s": np.ones((6, 8))[::2],
    }
    again = from_files(*to_files(tree))
    assert again["c"].flags.c_contiguous
    assert again["f"].flags.f_contiguous
    assert not again["f"].flags.c_contiguous
    assert all(one.flags.aligned for one in again.values())
    big = np.arange(3, dtype=">f8")
    assert from_files(*to_files(big)).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    "wrong",
    [
        object(),
        {1, 2},
        b"bytes",
        1j,
        len,
        slice(1),
        2**64,
        "a\nb",
        {"a\x1b": 1},
        np.array(["a\x00b"]),
        np.array([b"x"]),
        np.array([1j]),
        np.array([object()]),
        np.array(["2024-01-01"], dtype="M8[s]"),
        np.zeros((1,) * 7),
        np.zeros(1, dtype=[("a", float)]),
    ],
)
def test_what_is_not_plain_is_refused_with_its_place(wrong):
    with pytest.raises(InputError, match=r"model\.part\[1\].*cannot be saved"):
        pack_tree({"part": [0, wrong]})


def test_a_part_that_holds_itself_is_refused():
    loop = []
    loop.append(loop)
    with pytest.raises(InputError, match="nested too deeply"):
        pack_tree(loop)


# -- hostile trees -------------------------------------------------------------------------------

A = {"a0": np.zeros(2)}
LETTERS = np.frombuffer(b"abc", dtype=np.uint8)


def texts_node(**changes):
    return {"$texts": "a0", "ends": "a1", "shape": [2], "dtype": "U", **changes}


def letters(ends=(1, 3), data=LETTERS):
    return {"a0": data, "a1": np.array(ends, dtype=np.int64)}


HOSTILE = {
    "array not there": ({"$array": "a1"}, A),
    "array twice": ([{"$array": "a0"}, {"$array": "a0"}], A),
    "array without a name": ({"$array": None}, A),
    "name is a list": ({"$array": ["a0"]}, A),
    "array of nothing": ([], A),
    "order": ({"$array": "a0", "order": "C"}, A),
    "more keys": ({"$array": "a0", "shape": [2]}, A),
    "unknown": ({"$object": "os.system"}, {}),
    "dollar": ({"$": 1}, {}),
    "special inside": ({"a": 1, "$array": "a0"}, A),
    "reference": ({"$same": 3}, {}),
    "float": ({"$float": "1e999"}, {}),
    "float of a list": ({"$float": []}, {}),
    "large number": (2**64, {}),
    "control characters": ("\x1b[31m", {}),
    "control characters in a key": ({"\x1b[31m": 1}, {}),
    "texts: ends": (texts_node(), letters((3, 1))),
    "texts: beyond": (texts_node(), letters((1, 4))),
    "texts: short": (texts_node(), letters((1, 2))),
    "texts: negative": (texts_node(), letters((-1, 3))),
    "texts: shape": (texts_node(shape=[3]), letters()),
    "texts: huge shape": (texts_node(shape=[2**40] * 6), letters()),
    "texts: long shape": (texts_node(shape=[1] * 100_000), letters()),
    "texts: negative shape": (texts_node(shape=[-1, -2]), letters()),
    "texts: no shape": (texts_node(shape=None), letters()),
    "texts: true": (texts_node(shape=[True, 2]), letters()),
    "texts: pickle": (texts_node(dtype="V"), letters()),
    "texts: list as type": (texts_node(dtype=[]), letters()),
    "texts: not UTF-8": (texts_node(), letters(data=np.frombuffer(b"\xff\xfe\xfd", np.uint8))),
    "texts: control": (texts_node(), letters(data=np.frombuffer(b"a\x1bb", np.uint8))),
    "texts: floats": (texts_node(), {"a0": np.zeros(3), "a1": np.array([1, 3])}),
    "texts: two axes": (texts_node(), {"a0": LETTERS[None], "a1": np.array([1, 3])}),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_trees_are_refused(name):
    value, arrays = HOSTILE[name]
    with pytest.raises(InputError):
        unpack_tree(value, arrays)


def test_a_name_of_great_length_does_not_widen_all_the_others():
    long = np.full(300_000_000 // 1000, 120, dtype=np.uint8)
    ends = np.full(1000, len(long), dtype=np.int64)
    found = unpack_tree(texts_node(shape=[1000]), {"a0": long, "a1": ends})
    assert found.dtype == object
    assert len(found[0]) == len(long)
    assert found[1] == ""


HOSTILE_JSON = {
    "empty": b"",
    "not UTF-8": b'"\xff"',
    "a key twice": b'{"a": 1, "a": 2}',
    "NaN": b"[NaN]",
    "Infinity": b"[-Infinity]",
    "too large": b"[1e999]",
    "digits": b"1" * 5000,
    "deep lists": b"[" * 500_000,
    "deep objects": b'{"a":' * 500_000,
    "closed": b"[" * 100_000 + b"]" * 100_000,
    "many values": b"[" + b"0," * 3_000_000 + b"0]",
    "many lists": b"[" + b"[],".join([b""] * 3_000_000) + b"[]]",
    "long": b" " * (STATE_BYTES + 1),
    "cut": b'{"a": [1, 2',
}


@pytest.mark.parametrize("name", HOSTILE_JSON)
def test_hostile_json_is_refused_at_once(name):
    started = time.process_time()
    with pytest.raises(InputError) as caught:
        unpack_tree(read_json(HOSTILE_JSON[name], STATE_BYTES), {})
    assert len(str(caught.value)) < 300
    assert time.process_time() - started < 2


def test_trees_deeper_than_models_are_refused():
    for make in (lambda t: [t], lambda t: {"a": t}):
        tree = 0
        for _ in range(DEPTH + 1):
            tree = make(tree)
        with pytest.raises(InputError, match="nested"):
            unpack_tree(tree, {})


# -- array files ---------------------------------------------------------------------------------


def with_header(content, change):
    """The bytes of an array file with a changed header."""
    size = int.from_bytes(content[:8], "little")
    about = json.loads(content[8 : 8 + size])
    change(about)
    raw = json.dumps(about).encode()
    return len(raw).to_bytes(8, "little") + raw + content[8 + size :]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda h: h["a"].update(shape=[1 << 40, 1 << 40]), "not an array file"),
        (lambda h: h["a"].update(shape=[1 << 50]), "not an array file"),
        (lambda h: h["a"].update(shape=[1] * 10, data_offsets=[0, 8]), "not an array file"),
        (lambda h: h["a"].update(shape=[-1]), "not an array file"),
        (lambda h: h["a"].update(shape=[3.0]), "not an array file"),
        (lambda h: h["a"].update(shape=[True] * 3), "not an array file"),
        (lambda h: h["a"].update(shape="3"), "not an array file"),
        (lambda h: h["a"].update(data_offsets=[0, 1 << 60]), "not an array file"),
        (lambda h: h["a"].update(data_offsets=[0, 1 << 39]), "not an array file"),
        (lambda h: h["a"].update(data_offsets=[0]), "not an array file"),
        (lambda h: h["a"].update(dtype="PICKLE"), "not an array file"),
        (lambda h: h["a"].update(dtype=[]), "not an array file"),
        (lambda h: h["a"].pop("shape"), "not an array file"),
        (lambda h: h.update(a=None), "not an array file"),
        (lambda h: h["b"].update(data_offsets=[0, 16]), "not an array file"),
        (lambda h: h.pop("b"), "not an array file"),
        (lambda h: h.update({"../a": h.pop("a")}), "has the name"),
        (lambda h: h.update(__metadata__={"x": "y"}), "does not list"),
    ],
)
def test_headers_that_lie_are_refused_at_once(change, said):
    content = pack_arrays({"a": np.arange(3.0), "b": np.arange(2.0)})
    unpack_arrays(content)
    forged = with_header(content, change)
    started = time.process_time()
    with pytest.raises(InputError, match=said):
        unpack_arrays(forged)
    assert time.process_time() - started < 1


def test_an_array_of_nothing_with_a_long_side_is_refused():
    forged = with_header(
        pack_arrays({"a": np.zeros(0)}), lambda h: h["a"].update(shape=[0, 1 << 39])
    )
    with pytest.raises(InputError, match="is empty, but one"):
        unpack_arrays(forged)


def test_an_array_file_that_is_cut_or_has_more_is_refused():
    content = pack_arrays({"a": np.arange(3.0), "b": np.arange(2.0)})
    for cut in range(len(content)):
        with pytest.raises(InputError):
            unpack_arrays(content[:cut])
    with pytest.raises(InputError):
        unpack_arrays(content + b"\0")
    with pytest.raises(InputError):
        unpack_arrays(b"\xff" * 8 + content)
    with pytest.raises(InputError, match="not a table"):
        unpack_arrays((2).to_bytes(8, "little") + b"[]")


def test_many_arrays_take_linear_time():
    """A header of the most arrays that are read: seconds, and not minutes."""
    arrays = {f"a{i}": np.zeros(1) for i in range(20_000)}
    content = pack_arrays(arrays)
    started = time.process_time()
    assert len(unpack_arrays(content)) == 20_000
    assert time.process_time() - started < 2
