"""Models on some of the views: as if the others were not there, and nothing fitted twice."""

import numpy as np
import pandas as pd
import pytest

from baldur import MultiView, Preparation
from baldur.datasets import make_multiview
from baldur.evaluation import Model, make_model, nested_cv
from baldur.exceptions import InputError, UnfinishedError
from baldur.preparation import CategoryEncoder
from evaluation import spies

pytestmark = pytest.mark.usefixtures("few_resamples")

RIDGE = {"grid": {"C": [0.1, 1.0]}}
FOLDS = {"outer": 3, "inner": 3}


@pytest.fixture(scope="module")
def sim():
    return make_multiview(60, {"a": 3, "b": 4, "c": 5}, random_state=0)


def ridge(*views):
    return make_model("Ridge logistic", views=list(views) or None, **RIDGE)


def values(result, model):
    """Predictions and selected features of a model, without its name."""
    found = []
    for frame in (result.predictions, result.selection):
        part = frame[frame["model"] == model].drop(columns="model")
        found.append(part.reset_index(drop=True).to_csv())
    return found


def test_a_model_on_some_views_never_sees_the_others(sim):
    both = nested_cv([ridge("c", "a"), ridge()], sim.data, sim.target, **FOLDS)
    alone = nested_cv([ridge()], sim.data.select(["a", "c"]), sim.target, **FOLDS)
    assert both.models == ["Ridge logistic (c, a)", "Ridge logistic"]
    assert values(both, "Ridge logistic (c, a)") == values(alone, "Ridge logistic")
    whole = nested_cv([ridge()], sim.data, sim.target, **FOLDS)
    assert values(both, "Ridge logistic") == values(whole, "Ridge logistic")
    assert values(both, "Ridge logistic") != values(both, "Ridge logistic (c, a)")


def test_a_view_set_is_one_set_of_jobs(sim, tmp_path):
    models = [ridge(), ridge("a", "b", "c"), ridge("a", "b"), ridge("b", "a")]
    states = []
    result = nested_cv(
        models, sim.data, sim.target, store=tmp_path,
        progress=lambda s: states.append((s.done, s.reused, s.total)), **FOLDS,
    )  # fmt: skip
    files = len(list(tmp_path.glob("*/*.job")))
    each = FOLDS["outer"] * 3  # two settings and the fit
    assert files == 2 * each
    assert states[-1] == (4 * each, 2 * each, 4 * each)
    assert values(result, "Ridge logistic") == values(result, "Ridge logistic (a, b, c)")
    assert values(result, "Ridge logistic (a, b)") == values(result, "Ridge logistic (b, a)")
    # Jobs of a set do not depend on views outside of it.
    nested_cv(
        [ridge("a", "b")], sim.data.select(["a", "b"]), sim.target, store=tmp_path,
        progress=lambda s: states.append((s.done, s.reused, s.total)), **FOLDS,
    )  # fmt: skip
    assert states[-1] == (each, each, each)


def sets_of(result):
    """Return the views of every row of a comparison; None where a model gets all of them."""
    return [model.views for model in result.comparison.models]


@pytest.mark.parametrize("n_views", [2, 3, 4])
@pytest.mark.parametrize("n_baseline", [1, 2])
def test_the_sets_hold_every_question_and_none_twice(n_views, n_baseline):
    known = list("abcd")[:n_views]
    baseline = known[:n_baseline]
    if n_baseline == n_views:
        return
    data = MultiView({view: np.zeros((12, 1)) for view in known})
    y = np.arange(12) % 2
    found = sets_of(nested_cv(["Dummy"], data, y, outer=2, inner=2, baseline_views=baseline))
    assert len(set(found)) == len(found)
    assert tuple(known) not in found
    wanted = {tuple(baseline), *((v,) for v in known)}
    wanted |= {tuple(v for v in known if v != one) for one in known}
    wanted |= {tuple(v for v in known if v in baseline or v == one) for one in known}
    assert set(found) == {None, *wanted - {tuple(known)}}


def test_baseline_views_add_the_rows_that_are_not_there(sim, tmp_path):
    models = [ridge("b", "a"), ridge(), make_model("Dummy")]
    result = nested_cv(models, sim.data, sim.target, baseline_views=["a"], store=tmp_path, **FOLDS)
    sets = [m.views for m in result.comparison.models if m.seed_name == "Ridge logistic"]
    assert sets[:2] == [("a", "b"), None]
    single = sets_of(nested_cv(["Dummy"], sim.data, sim.target, baseline_views=["a"], **FOLDS))
    assert set(sets) == set(single)
    assert len(sets) == len(set(sets)) == 7
    files = len(list(tmp_path.glob("*/*.job")))
    assert files == 7 * FOLDS["outer"] * 3 + FOLDS["outer"]


def test_shards_share_the_view_sets(sim, tmp_path):
    one = make_model("Ridge logistic", settings={"C": 1.0})
    arguments = ([one], sim.data.select(["a", "b"]), sim.target)
    keywords = {"baseline_views": ["a"], **FOLDS}
    whole = nested_cv(*arguments, **keywords)
    for shard in ("1/3", "2/3"):
        with pytest.raises(UnfinishedError):
            nested_cv(*arguments, store=tmp_path, shard=shard, **keywords)
    last = nested_cv(*arguments, store=tmp_path, shard="3/3", **keywords)
    assert last.predictions.to_csv() == whole.predictions.to_csv()


def test_who_has_none_of_the_views_is_predicted_and_not_trained_on(sim):
    has = np.ones(60, dtype=bool)
    has[::4] = False
    views = {v: sim.data.view(v).read() for v in sim.data.view_names}
    data = MultiView(views, present={"b": has})
    spies.SEEN.clear()
    spy = make_model("spy", estimator=spies.Spy(), grid={"c": [1.0, 2.0]}, views=["b"])
    result = nested_cv([spy], data, sim.target, **FOLDS)
    fitted = [ids for what, ids, _ in spies.SEEN if what == "fit"]
    assert fitted
    assert all(has[np.array(ids, dtype=int)].all() for ids in fitted)
    assert sorted(result.predictions["sample"].astype(int)) == list(range(60))
    # With all views everyone counts, also who lacks one of them.
    spies.SEEN.clear()
    nested_cv({"spy": spies.Spy()}, data, sim.target, **FOLDS)
    fitted = [ids for what, ids, _ in spies.SEEN if what == "fit"]
    assert any(not has[np.array(ids, dtype=int)].all() for ids in fitted)


ALWAYS = []


class Always(spies.Spy):
    """Notes which features it was told to select."""

    def __init__(self, c=1.0, always=None, views=None, random_state=None):
        super().__init__(c, views, random_state)
        self.always = always

    def fit(self, X, y):
        ALWAYS.append((list(X.n_features), self.always))
        return super().fit(X, y)


def test_parameters_that_name_other_views_are_restricted(sim):
    frame = pd.DataFrame({"age": np.arange(60.0), "sex": ["f", "m"] * 30})
    data = MultiView({"who": frame, "b": sim.data.view("b").read()})
    named = ["age", "sex", "who:age", "b_0"]
    for views, left in ((("b",), named[3:]), (("who",), named[:3]), (("who", "b"), named)):
        ALWAYS.clear()
        nested_cv([Model("spy", Always(always=named), views=views)], data, sim.target, **FOLDS)
        assert [(list(views), left)] * len(ALWAYS) == ALWAYS
        assert ALWAYS
    steps = [CategoryEncoder(views=["who"])]
    found = nested_cv(
        [ridge("b"), ridge("who")], data, sim.target, preparation=Preparation(steps=steps), **FOLDS
    )
    assert found.failures == {}
    used = found.selection.groupby("model")["view"].unique()
    assert [list(views) for views in used] == [["b"], ["who"]]


@pytest.mark.parametrize(
    ("models", "keywords", "said"),
    [
        (lambda: ridge("a", "d"), {}, "there is no view 'd'"),
        (lambda: ridge("a", "a"), {}, "different names"),
        (lambda: make_model("Dummy", views="a"), {}, "views must be a list"),
        (lambda: make_model("Dummy", views=[]), {}, "views must be a list"),
        (ridge, {"baseline_views": ["aa"]}, "did you mean 'a'"),
        (ridge, {"baseline_views": ["a", "b", "c"]}, "none to add"),
        (lambda: ridge("a"), {"baseline_views": ["a"]}, "needs a model with all views"),
    ],
)
def test_wrong_views_are_explained(sim, models, keywords, said):
    with pytest.raises(InputError, match=said):
        nested_cv([models()], sim.data, sim.target, **FOLDS, **keywords)


def test_rows_with_some_views_leave_the_tests_of_the_others_alone(sim):
    models = [ridge(), make_model("Dummy"), make_model("MV-PLS", grid={"n_components": [1]})]
    plain = nested_cv(models, sim.data, sim.target, **FOLDS).compare()
    more = nested_cv([*models, ridge("a"), ridge("b")], sim.data, sim.target, **FOLDS).compare()
    names = [m.name for m in models]
    same = more[more["model_a"].isin(names) & more["model_b"].isin(names)].reset_index(drop=True)
    pd.testing.assert_frame_equal(same, plain)
    assert len(more) == 10
    assert more["p_holm"].notna().all()
