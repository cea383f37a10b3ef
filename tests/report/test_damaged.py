"""Damaged results folders: one line, or a page that says what is missing; nothing else."""

import filecmp
from contextlib import nullcontext

import pytest

from baldur.exceptions import InputError
from baldur.report import report_folder
from pages import without_figures
from report.damage import damaged_folders


def outcome(place, page):
    """Return "refused" or "page", or fail."""
    try:
        report_folder(place, page)
    except InputError as error:
        text = str(error)
        assert "\n" not in text
        assert str(place) in text
        assert len(text) < 600
        return "refused"
    return "page"


def check(folder, tmp_path, count, seed, draw_every=0):
    found = {"refused": 0, "page": 0}
    page = tmp_path / "page.html"
    for i, (name, place) in enumerate(damaged_folders(folder, tmp_path / "damaged", count, seed)):
        # Figures have a guard of their own.
        drawn = bool(draw_every) and i % draw_every == 0
        with nullcontext() if drawn else without_figures():
            try:
                what = outcome(place, page)
            except Exception as error:
                pytest.fail(f"{name}: {type(error).__name__}: {error}")
        found[what] += 1
        table = name.split()[0]
        unchanged = (place / table).is_file() and filecmp.cmp(
            place / table, folder / table, shallow=False
        )
        if what == "page" and table != "run.json" and not unchanged:
            lines = [x for x in page.read_text().splitlines() if 'href="#check-B14"' in x]
            assert any(table in line for line in lines), name
    return found


def test_damaged_folders_are_named(folder, tmp_path):
    found = check(folder, tmp_path, 60, seed=1)
    assert min(found.values()) > 5


@pytest.mark.slow
def test_many_damaged_folders_are_named(folder, tmp_path):
    found = check(folder, tmp_path, 560, seed=2, draw_every=12)
    print(found)
    assert min(found.values()) > 100
