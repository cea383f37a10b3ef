"""Folders of every schema, as they were once written: they load, and predict what they did.

``python tests/persist/test_archives.py`` writes the archive of the present schema, once.
"""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest

import baldur
from baldur.exceptions import InputError
from baldur.persist import SCHEMA, load_model
from baldur.views import MultiView

ARCHIVES = Path(__file__).parent / "archives"
EXPECTED = json.loads((ARCHIVES / "expected.json").read_text())


def rows():
    return MultiView({v: np.array(cells) for v, cells in EXPECTED["rows"].items()})


@pytest.mark.parametrize("name", [n for n in EXPECTED if n.startswith("schema2")])
def test_open_folders_load_for_ever(name):
    found = load_model(ARCHIVES / name)
    p = found.estimator.predict_proba(rows())[:, 1]
    np.testing.assert_allclose(p, EXPECTED[name], rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", [n for n in EXPECTED if n.startswith("schema1")])
def test_pickled_folders_load_where_they_are_trusted_and_versions_allow(name):
    with pytest.raises(InputError, match="trust=True"):
        baldur.load(ARCHIVES / name)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of scikit-learn, about its version
            model = baldur.load(ARCHIVES / name, trust=True)
            p = model.predict_proba(rows())[:, 1]
    except InputError as error:
        # A pickle is bound to the versions it was made with; the message names them.
        assert "saved with baldur" in str(error)  # noqa: PT017
        pytest.skip(str(error))
    np.testing.assert_allclose(p, EXPECTED[name], rtol=0, atol=1e-6)


def test_every_schema_has_an_archive():
    assert {int(n[6]) for n in EXPECTED if n.startswith("schema")} == set(range(1, SCHEMA + 1))


def write():
    """Add the folders of the present schema: a model of ours, a wrapped one and a baseline."""
    from baldur import BaldurClassifier
    from baldur.baselines import BASELINES
    from baldur.datasets import make_multiview

    sim = make_multiview(60, {"a": 3, "b": 4}, informative={"a": 2}, random_state=0)
    X, y = sim.data[:50], sim.target[:50]
    made = {
        "baldur": BaldurClassifier().fit(X, y),
        "grams": BaldurClassifier(members=("pooled",), margin=0.0).fit(X[:6], y[:6]),
        "rank": BaldurClassifier(members=("pooled",), scale="rank").fit(X, y),
        "ridge": BASELINES["Ridge logistic"].make().fit(X, y),
    }
    for kind, model in made.items():
        EXPECTED[f"schema{SCHEMA}_{kind}"] = model.predict_proba(rows())[:, 1].tolist()
        folder = baldur.save(model, ARCHIVES / f"schema{SCHEMA}_{kind}")
        for name in (".lock", "card.R", "score.py", "score.R", "score.js"):
            (folder / name).unlink(missing_ok=True)  # programs are not for the tests to collect
    (ARCHIVES / "expected.json").write_text(json.dumps(EXPECTED, indent=0) + "\n")


if __name__ == "__main__":
    write()
