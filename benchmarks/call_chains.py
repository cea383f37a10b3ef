"""Count the files and functions of the package that a fit, a prediction and a study run through.

Usage::

    python benchmarks/call_chains.py [--list]

A fit and a prediction are those of `BaldurClassifier` on 80 samples. The study is a simulated one
with two models, from its file to its `report.html`; its jobs run in other processes, which are not
traced. Counted are the functions that are called, and their files; ``--list`` prints the files.
Definitions that run when a module is imported are not counted.
"""

import argparse
import inspect
import sys
import tempfile
import threading
import warnings
from pathlib import Path

import baldur
from baldur import BaldurClassifier
from baldur.datasets import make_multiview
from baldur.study import evaluate_study, load_study, simulate_study

PACKAGE = Path(baldur.__file__).parent
UNNAMED = ("<lambda>", "<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>")


def traced(call):
    """Return the functions of the package that run during a call, as (file, name, line)."""
    functions = set()

    def note(frame, event, argument):
        code = frame.f_code
        # The code of modules and of class bodies, which runs during imports, is not optimised.
        ours = code.co_filename.startswith(str(PACKAGE)) and code.co_flags & inspect.CO_OPTIMIZED
        if event == "call" and ours and code.co_name not in UNNAMED:
            functions.add((code.co_filename, code.co_qualname, code.co_firstlineno))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return functions


def study(folder):
    """Run a small simulated study and write its page."""
    from baldur.report import report_study

    models = ["BALDUR", "Ridge logistic"]
    folds = {"outer": 2, "inner": 2}
    file = simulate_study("biofind", folder, scale=0.001, models=models, folds=folds)
    return traced(lambda: report_study(evaluate_study(load_study(file), n_jobs=2)))


def main():
    """Print the numbers of files and functions of each chain."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--list", action="store_true", help="also print the files")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    sim = make_multiview(80, {"clinic": 8, "genes": 60}, random_state=0)
    model = BaldurClassifier()
    chains = {"fit": traced(lambda: model.fit(sim.data, sim.target))}
    chains["predict_proba"] = traced(lambda: model.predict_proba(sim.data))
    with tempfile.TemporaryDirectory() as folder:
        chains["evaluate to report.html"] = study(folder)
    for name, functions in chains.items():
        files = sorted({Path(file).relative_to(PACKAGE).as_posix() for file, _, _ in functions})
        print(f"{name:<24} {len(files):4} files {len(functions):6} functions")
        if arguments.list:
            print("    " + "\n    ".join(files))


if __name__ == "__main__":
    main()
