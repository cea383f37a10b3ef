"""Every Python block of the pages runs, in order, page by page."""

import re
import shutil
import warnings
from pathlib import Path

import example_folder
import pytest

from baldur.evaluation.clinical.bootstrap_intervals import Bootstrap
from baldur.inference import inner_folds
from baldur.saving.folder_files import read_folder

DOCS = Path(__file__).parents[1]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.M | re.S)
PAGES = sorted(
    page
    for page in [*DOCS.glob("[a-z]*/*.md"), DOCS.parent / "README.md"]
    if BLOCK.search(page.read_text("utf-8")) and "data" not in page.relative_to(DOCS.parent).parts
)
NEEDS_A_CLUSTER = ("dask_jobqueue", "dask_kubernetes", "LocalCluster")
"""Blocks with these words need machines that a test does not have; they are only compiled. Tests of
the package run a study on local Dask workers."""
IDENTITY = "5f0c..."  # stands on a page for the identity of the reader's own model


@pytest.fixture(scope="session")
def prepared(tmp_path_factory):
    """Return the folder and the objects that pages use, made with quick fits."""
    whole = Bootstrap.__init__

    def few(self, units, resamples=100, level=0.95, random_state=0):
        whole(self, units, min(resamples, 100), level, random_state)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inner_folds, "MOST_REPEATS", 1)
        patch.setattr(Bootstrap, "__init__", few)
        folder = tmp_path_factory.mktemp("pages")
        example_folder.fill(folder)
        yield folder, example_folder.objects(folder)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS.parent).as_posix())
def test_the_blocks_of_a_page_run(page, prepared, tmp_path, monkeypatch):
    folder, objects = prepared
    here = shutil.copytree(folder, tmp_path / "here")
    monkeypatch.chdir(here)
    blocks = BLOCK.findall(page.read_text("utf-8"))
    saves_anew = any('model.save("model")' in code for code in blocks)
    if saves_anew:
        shutil.rmtree("model")
    space = {"__name__": "page", **objects}
    for number, code in enumerate(blocks):
        if IDENTITY in code:
            code = code.replace(IDENTITY, read_folder(Path("model"))[0]["identity"])
        compiled = compile(code, f"{page.name}, block {number + 1}", "exec")
        if any(word in code for word in NEEDS_A_CLUSTER):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(compiled, space)
