"""Several processes on one folder: shards, pairs, kills; the same bytes as one undisturbed run."""

import contextlib
import os
import signal
import time

import numpy as np
import pytest

from baldur.cli import app
from baldur.exceptions import InputError, UnfinishedError
from baldur.study import evaluate_study, load_study
from cli.places import copy_of, forked, forked_command, hidden, jobs_in, results, wait_for_jobs

PLACES = 4  # two models on two folds in the quick study


def test_a_pair_of_processes_on_one_folder(quick, tmp_path):
    study, whole = quick
    out = tmp_path / "out"
    call = ["evaluate", study, "--out", out, "--jobs", 1, "--quiet", "--no-report"]
    both = [forked_command(call, tmp_path / f"said{i}") for i in range(2)]
    for i, process in enumerate(both):
        process.join(900)
        err = (tmp_path / f"said{i}.err").read_text()
        assert process.exitcode == 0, err
        assert err == ""
        assert "% Features selected" in (tmp_path / f"said{i}.out").read_text()
    assert results(out) == whole
    assert hidden(out) == []


@pytest.mark.slow
def test_twenty_pairs_of_processes_on_one_folder(quick, tmp_path):
    study, whole = quick
    for i in range(20):
        out = tmp_path / f"out{i}"
        both = [forked(study, out) for _ in range(2)]
        for process in both:
            process.join()
            assert process.exitcode == 0
        assert results(out) == whole
        assert hidden(out) == []
    print("20 pairs: same bytes, nothing left behind")


# -- shards --------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [3, 9])
def test_shards_in_any_order_and_the_last_writes_the_results(quick, tmp_path, count):
    study, whole = quick
    out = tmp_path / "out"
    done = []
    for number in np.random.default_rng(count).permutation(count) + 1:
        assert not (out / "table.csv").exists() or count > PLACES
        before = jobs_in(out)
        with contextlib.suppress(UnfinishedError):
            evaluate_study(
                load_study(study), output=out, shard=f"{number}/{count}",
                progress=lambda state: done.append((state.done, state.reused)),
            )  # fmt: skip
        # A job of one shard is not done by another.
        assert before.items() <= jobs_in(out).items()
    assert results(out) == whole
    assert len(jobs_in(out)) == 3 * PLACES
    assert all(reused == 0 for _, reused in done)


def test_who_comes_without_a_shard_does_what_is_left(quick, tmp_path):
    study, whole = quick
    out = tmp_path / "out"
    with pytest.raises(UnfinishedError, match="Shard 2/3 is done; at least") as caught:
        evaluate_study(load_study(study), output=out, shard="2/3")
    assert caught.value.missing > 0
    before = jobs_in(out)
    evaluate_study(load_study(study), output=out)
    assert results(out) == whole
    assert before.items() <= jobs_in(out).items()


def test_a_failing_model_fails_in_every_way_alike(quick, tmp_path):
    study = quick[0].with_name("failing.toml")
    study.write_text(quick[0].read_text() + '\n[[models]]\nname = "bad"\n'
                     'estimator = "sklearn.svm.NuSVC"\nsettings = { nu = 0.99 }\n')  # fmt: skip
    loaded = load_study(study)
    one = evaluate_study(loaded, output=tmp_path / "one")
    assert "bad" in one.run.failures
    with pytest.raises(UnfinishedError) as caught:
        evaluate_study(loaded, output=tmp_path / "out", shard="1/2")
    assert caught.value.failures == one.run.failures
    evaluate_study(loaded, output=tmp_path / "out", shard="2/2")
    assert results(tmp_path / "out") == results(tmp_path / "one")


def test_wrong_shards_are_refused(quick, tmp_path):
    loaded = load_study(quick[0])
    for text in ("0/3", "4/3", "3", "a/b", "1/0", "-1/3", ""):
        with pytest.raises(InputError, match="3/20"):
            evaluate_study(loaded, output=tmp_path / "out", shard=text)
    for options in (("--shard", "1/2", "--fresh"), ("--scheduler", "tcp://x:1", "--jobs", "2")):
        with pytest.raises(InputError, match=options[0]):
            app(["evaluate", str(quick[0]), *options], standalone_mode=False)


@pytest.mark.slow
def test_four_shards_two_of_them_killed(steady, tmp_path):
    study, whole = steady
    for seed in range(5):
        rng = np.random.default_rng(seed)
        out = tmp_path / f"out{seed}"
        out.mkdir()
        running = {i: forked(study, out, shard=f"{i}/4") for i in range(1, 5)}
        victims = rng.choice(list(running), 2, replace=False)
        for more, victim in enumerate(victims, start=2):
            wait_for_jobs(running[victim], out, more)
            time.sleep(float(rng.uniform(0, 0.05)))
            os.kill(running[victim].pid, signal.SIGKILL)
        for i, process in running.items():
            process.join()
            assert process.exitcode == (-signal.SIGKILL if i in victims else 3)
        assert not (out / "table.csv").exists()
        before = jobs_in(out)
        for victim, code in zip(victims, (3, 0), strict=True):
            process = forked(study, out, shard=f"{victim}/4")
            process.join()
            assert process.exitcode == code
        assert results(out) == whole
        assert hidden(out) == []
        assert before.items() <= jobs_in(out).items()
    print("5 x 4 shards, 10 killed: same bytes, no finished job done again")


# -- what a new run leaves of an old one ----------------------------------------------------------


def test_nothing_of_an_older_run_stays_beside_the_new_one(quick, tmp_path):
    study = copy_of(quick[0], tmp_path / "study")
    text = study.read_text()
    whole = results(evaluate_study(load_study(study), output=tmp_path / "whole").folder)
    study.write_text(text + "\n[report]\npermutations = 1\n")
    out = tmp_path / "out"
    evaluate_study(load_study(study), output=out)
    assert (out / "permutation.csv").exists()
    (out / "mine.txt").write_text("kept")
    study.write_text(text)
    evaluate_study(load_study(study), output=out)
    assert results(out) == {**whole, "mine.txt": b"kept"}


def test_fresh_does_every_job_again(quick, tmp_path):
    study, whole = quick
    out = tmp_path / "out"
    evaluate_study(load_study(study), output=out)
    before = jobs_in(out)
    evaluate_study(load_study(study), output=out, fresh=True)
    after = jobs_in(out)
    assert before.keys() == after.keys()
    assert all(after[name] > when for name, when in before.items())
    assert results(out) == whole
