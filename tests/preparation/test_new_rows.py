"""New rows on another scale, or with other alleles: said by name, put right, or refused."""

import warnings

import numpy as np
import pandas as pd
import pytest

from baldur import BaldurClassifier, MultiView
from baldur.datasets import make_multiview
from baldur.evaluation import batch_drift
from baldur.exceptions import InputError, ShiftWarning
from baldur.preparation import CategoryEncoder, Preparation

pytestmark = pytest.mark.usefixtures("one_repeat")

# -- alleles -------------------------------------------------------------------------------------

KNOWN = [("A", "G"), ("C", "T"), ("A", "T"), ("G", "C"), ("AT", "A")]


def genotypes(alleles, cells=None, dtype=np.int8):
    if cells is None:
        cells = np.random.default_rng(0).integers(0, 3, (30, len(alleles)))
        cells[4] = -127
    info = pd.DataFrame(alleles, columns=["allele_1", "allele_2"]).astype("category")
    names = [f"rs{i}" for i in range(len(alleles))]
    return MultiView(
        {"snps": np.asarray(cells).astype(dtype)},
        feature_names={"snps": names},
        feature_info={"snps": info},
    )


def prepared(step, mv):
    return step.transform(mv)["snps"].dense()


@pytest.fixture(scope="module")
def step():
    return Preparation().fit(genotypes(KNOWN))


def test_swapped_alleles_are_turned_round(step):
    cells = genotypes(KNOWN).view("snps").raw()
    swapped = np.where(cells == -127, -127, 2 - cells)
    mixed = cells.copy()
    mixed[:, [0, 4]] = swapped[:, [0, 4]]
    new = [("G", "A"), *KNOWN[1:4], ("A", "AT")]
    want = prepared(step, genotypes(KNOWN))
    np.testing.assert_array_equal(prepared(step, genotypes(new, mixed)), want)
    # Lower case, and single rows.
    lower = [(a.lower(), b.lower()) for a, b in new]
    np.testing.assert_array_equal(prepared(step, genotypes(lower, mixed)[[7, 2]]), want[[7, 2]])


def test_the_other_strand_is_known_by_its_letters(step):
    cells = genotypes(KNOWN).view("snps").raw()
    want = prepared(step, genotypes(KNOWN))
    strand = [("T", "C"), ("G", "A"), *KNOWN[2:4], ("AT", "T")]
    np.testing.assert_array_equal(prepared(step, genotypes(strand, cells)), want)
    both = cells.copy()
    both[:, 0] = np.where(cells[:, 0] == -127, -127, 2 - cells[:, 0])
    swapped = [("C", "T"), *KNOWN[1:]]
    np.testing.assert_array_equal(prepared(step, genotypes(swapped, both)), want)


@pytest.mark.parametrize("pair", [2, 3])
def test_what_is_not_certain_is_refused(step, pair):
    new = list(KNOWN)
    new[pair] = new[pair][::-1]
    with pytest.raises(InputError, match=rf"'snps'.*rs{pair}.*alleles or the strand are swapped"):
        step.transform(genotypes(new))
    new = list(KNOWN)
    new[0] = ("A", "C")
    with pytest.raises(InputError, match=r"rs0.*was A/G and is now A/C: these are not the alleles"):
        step.transform(genotypes(new))


def test_an_allele_that_nobody_has_is_no_other_allele(step):
    cells = genotypes(KNOWN).view("snps").raw().copy()
    cells[:, 0] = 0
    want = prepared(step, genotypes(KNOWN, cells))
    np.testing.assert_array_equal(prepared(step, genotypes([("0", "G"), *KNOWN[1:]], cells)), want)
    # Everybody has two A, and the file counts the other one.
    cells[:, 0] = 2
    want = prepared(step, genotypes(KNOWN, cells))
    cells[:, 0] = 0
    np.testing.assert_array_equal(prepared(step, genotypes([("0", "A"), *KNOWN[1:]], cells)), want)


def test_a_model_predicts_the_same_from_a_swapped_file():
    rng = np.random.default_rng(1)
    cells = rng.integers(0, 3, (60, 4)).astype(np.int8)
    y = (cells[:, 0] + rng.normal(size=60) > 1).astype(int)
    alleles = [("A", "G"), ("C", "A"), ("T", "G"), ("A", "T")]
    turned = [(b, a) for a, b in alleles[:3]] + [alleles[3]]
    other = cells.copy()
    other[:, :3] = 2 - other[:, :3]
    ages = pd.DataFrame({"age": rng.normal(size=60)})
    for regress_out in ([], ["age"]):
        one = genotypes(alleles, cells).with_samples(ages)
        two = genotypes(turned, other).with_samples(ages)
        preparation = Preparation(regress_out=regress_out)
        model = BaldurClassifier(members=("pooled",), preparation=preparation).fit(one, y)
        np.testing.assert_array_equal(model.predict_proba(two), model.predict_proba(one))


# -- scale ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cohort():
    sim = make_multiview(90, {"clinic": 3, "blood": 6}, informative={"clinic": 2}, random_state=0)
    cells = {v: 20.0 + 3.0 * sim.data.view(v).read() for v in sim.data.view_names}
    model = BaldurClassifier(members=("pooled",), margin=0.0)
    return model.fit(MultiView(cells)[:60], sim.target[:60]), {v: c[60:] for v, c in cells.items()}


def test_a_view_in_other_units_is_named(cohort):
    model, cells = cohort
    with warnings.catch_warnings():
        warnings.simplefilter("error", ShiftWarning)
        model.predict_proba(MultiView(cells))
        model.predict_proba(MultiView(cells)[:1])
    other = {**cells, "blood": cells["blood"] * 1000}
    with pytest.warns(ShiftWarning, match=r"View 'blood': 'blood_0', .*training had .*units"):
        model.predict(MultiView(other))
    sentinel = {v: c.copy() for v, c in cells.items()}
    sentinel["clinic"][:20, 1] = -999
    with pytest.warns(ShiftWarning, match=r"View 'clinic': 'clinic_1' lie.*-999"):
        model.predict_proba(MultiView(sentinel))


def test_a_value_that_repeats_far_outside_may_be_a_code_for_missing(cohort):
    model, cells = cohort
    for rows in (2, 20):
        sentinel = {v: c.copy() for v, c in cells.items()}
        sentinel["clinic"][:rows, [0, 1]] = -999
        text = rf"The value -999 occurs {2 * rows} times in 'clinic_0', 'clinic_1'; .*missing = \["
        with pytest.warns(ShiftWarning, match=text + r'"-999"\]') as caught:
            model.predict_proba(MultiView(sentinel))
        assert len(caught) == 1
    # Other units, and one typing mistake, are no codes.
    for change in ("units", "mistake"):
        other = {v: c.copy() for v, c in cells.items()}
        if change == "units":
            other["blood"] *= 1000
        else:
            other["blood"][3, 2] = 540.0
        with pytest.warns(ShiftWarning) as caught:
            model.predict_proba(MultiView(other))
        assert "code for" not in str(caught[0].message)


def test_one_absurd_value_in_a_batch_is_named_with_its_sample(cohort):
    model, cells = cohort
    extreme = {v: c.copy() for v, c in cells.items()}
    extreme["blood"][3, 2] = 540.0
    text = r"View 'blood': values far outside .*: sample '3' has blood_2 = 540 \(training: \d.* to"
    with pytest.warns(ShiftWarning, match=text) as caught:
        model.predict_proba(MultiView(extreme))
    assert len(caught) == 1


def test_a_code_for_missing_values_does_not_hide_an_absurd_value(cohort):
    model, cells = cohort
    extreme = {v: c.copy() for v, c in cells.items()}
    extreme["blood"][:9, 1] = -999.0
    extreme["blood"][12, 2] = 540.0
    with pytest.warns(ShiftWarning, match=r"sample '12' has blood_2 = 540.* and 5 more values"):
        model.predict_proba(MultiView(extreme))


def test_features_and_views_that_differ_are_named(cohort):
    model, cells = cohort
    with pytest.raises(InputError, match="'blood' missing"):
        model.predict(MultiView({"clinic": cells["clinic"]}))
    with pytest.raises(InputError, match=r"View 'blood': X has 5 features"):
        model.predict(MultiView({**cells, "blood": cells["blood"][:, :5]}))
    names = {v: [f"{v}_{i}" for i in range(c.shape[1])] for v, c in cells.items()}
    named = BaldurClassifier(members=("pooled",))
    y = np.tile([0, 1], 15)
    named.fit(MultiView(cells, feature_names=names), y)
    turned = {v: n[::-1] for v, n in names.items()}
    with pytest.raises(InputError, match="the features of fit in the same order"):
        named.predict(MultiView(cells, feature_names=turned))


def test_near_names_of_features_and_views_are_suggested(cohort):
    model, cells = cohort
    with pytest.raises(InputError, match=r"Did you mean 'blood' by 'Blood'\?"):
        model.predict(MultiView({"clinic": cells["clinic"], "Blood": cells["blood"]}))
    frame = pd.DataFrame(cells["clinic"], columns=["Grade", "age", "dose"])
    y = np.tile([0, 1], 15)
    for X in (frame, frame.assign(site=["Oslo", "Rome"] * 15)):
        named = BaldurClassifier(members=("pooled",)).fit(X, y)
        with pytest.raises(InputError, match=r"Did you mean 'Grade' by 'grade'\?"):
            named.predict(X.rename(columns={"Grade": "grade"}))
        inside = MultiView.from_columns(X)
        stored = BaldurClassifier(members=("pooled",)).fit(inside, y)
        with pytest.raises(InputError, match=r"Did you mean 'Grade' by 'grade'\?"):
            stored.predict(MultiView.from_columns(X.rename(columns={"Grade": "grade"})))
    with pytest.raises(InputError, match=r"no column 'Ages'.*Did you mean 'age' by 'Ages'\?"):
        BaldurClassifier({"a": ["Ages", "dose"]}).fit(frame, y)


# -- flags of samples -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def patients():
    rng = np.random.default_rng(3)
    table = pd.DataFrame(
        {
            "age": rng.uniform(40, 80, 80).round(),
            "crp": rng.exponential(size=80),
            "unused": rng.normal(size=80),
            "site": rng.choice(["Lima", "Oslo", "Bern"], 80),
        },
        index=[f"p{i}" for i in range(80)],
    )
    genes = pd.DataFrame(rng.normal(size=(80, 4)), index=table.index).add_prefix("gene")
    return table, genes


@pytest.fixture(scope="module")
def flagged(patients):
    """Return flags of five samples by a model that does not use one column."""
    table, genes = patients
    y = np.tile([0, 1], 40)
    model = BaldurClassifier(members=("pooled",), margin=0.0)
    model.fit(MultiView.from_dict({"clinic": table, "genes": genes}), y)
    prepared = model.preparation_.columns_
    names = {v: np.asarray(model.feature_names_[v])[c] for v, c in prepared.items()}
    masks = {v: n != "unused" for v, n in names.items()}
    model.preparation_.mark_needed(masks)
    new, other = table[:5].copy(), genes[:5].copy()
    new.loc["p0", "age"] = 540.0
    new.loc["p1", "site"] = "Rome"
    new.loc["p2", ["crp", "site"]] = [np.nan, None]
    other.loc["p3"] = np.nan
    new.loc["p4", "unused"] = 1e9
    mv = MultiView.from_dict({"clinic": new, "genes": other})
    return model, mv, model.flag_samples(mv)


def test_flags_name_what_is_wrong_with_each_sample(patients, flagged):
    table, _ = patients
    low, high = table["age"].min(), table["age"].max()
    _, _, found = flagged
    assert found.index.tolist() == ["p0", "p1", "p2", "p3", "p4"]
    assert found.loc["p0", "out_of_range"] == f"clinic: age = 540 (training: {low:g} to {high:g})"
    levels = "known levels: 'Bern', 'Lima', 'Oslo'"
    assert found.loc["p1", "unknown_category"] == f"clinic: site = 'Rome' ({levels})"
    assert found.loc["p1", "imputed"] == ""
    assert found.loc["p2", "imputed"] == "clinic: crp, clinic: site"
    assert found.loc["p3", "missing_views"] == "genes"
    assert found["flags"].tolist() == [
        f"outside the training range: clinic: age = 540 (training: {low:g} to {high:g})",
        f"unknown category: clinic: site = 'Rome' ({levels})",
        "imputed: clinic: crp, clinic: site",
        "missing view: genes",
        "",
    ]


def test_training_samples_have_no_flags(patients, flagged):
    table, genes = patients
    found = flagged[0].flag_samples(MultiView.from_dict({"clinic": table, "genes": genes}))
    assert (found == "").all(axis=None)


def test_an_unknown_level_is_named_with_the_sample_and_the_known_levels(flagged):
    model, mv, _ = flagged
    with pytest.warns(ShiftWarning) as caught:
        model.predict(mv)
    (told,) = [str(w.message) for w in caught if "site" in str(w.message)]
    assert "site = 'Rome' (known levels: 'Bern', 'Lima', 'Oslo')" in told
    assert "counts as missing. Samples: 'p1'." in told
    encoder = CategoryEncoder(unknown="error").fit(mv[[0, 3, 4]])
    with pytest.raises(InputError, match=r"sample 'p1' has site = 'Rome' \(known levels: "):
        encoder.transform(mv)


def test_covariates_that_differ_are_flagged_and_named():
    rng = np.random.default_rng(0)
    people = pd.DataFrame(
        {"age": rng.uniform(40, 80, 60).round(), "sex": rng.choice(["f", "m"], 60)}
    )
    mv = MultiView({"v": rng.normal(size=(60, 3))}, samples=people)
    preparation = Preparation(regress_out=["age", "sex"])
    model = BaldurClassifier(members=("pooled",), margin=0.0, preparation=preparation)
    model.fit(mv, rng.integers(0, 2, 60))
    assert (model.flag_samples(mv)["flags"] == "").all()
    new = people[:4].astype({"age": float})
    new.loc[0, "age"], new.loc[1, "sex"], new.loc[2, "age"] = 540.0, "x", np.nan
    changed = mv[:4].with_samples(new)
    found = model.flag_samples(changed)
    assert found["out_of_range"][0].startswith("covariate age = 540 (training: mean ")
    assert found["unknown_category"][1] == "covariate sex = 'x' (known levels: 'f', 'm')"
    assert found["imputed"][2] == "covariate age"
    assert found["flags"][3] == ""
    with pytest.warns(ShiftWarning) as caught:
        model.predict(changed)
    told = " ".join(str(w.message) for w in caught)
    assert "Covariates far from the training mean: sample '0' has age = 540" in told
    assert "Covariate sex = 'x' (known levels: 'f', 'm') did not occur in training" in told


def test_flags_of_many_cells_are_short_and_few_samples_are_listed():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 30))
    model = BaldurClassifier(members=("pooled",), margin=0.0).fit(X, rng.integers(0, 2, 60))
    found = model.flag_samples(np.vstack([np.full(30, np.nan), X[0] + 100.0, X[1]]))
    assert found["missing_views"].tolist() == ["X", "", ""]
    assert found["out_of_range"].iloc[1].endswith("and 25 more")
    assert found["flags"].iloc[2] == ""


def test_a_batch_is_compared_with_training(cohort):
    model, cells = cohort
    views, features = batch_drift(model, MultiView({**cells, "blood": cells["blood"] + 30.0}))
    table = views.set_index("view")
    assert table.loc["blood", "far"] == 6
    assert table.loc["blood", "outside"] == 1.0
    assert abs(table.loc["clinic", "mean_shift"]) < 0.5
    assert set(features["view"]) == {"clinic", "blood"}
    with pytest.raises(InputError, match="no statistics of training samples"):
        batch_drift(BaldurClassifier(), MultiView(cells))
