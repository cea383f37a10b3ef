"""Copy the page of a finished reproduction into the documentation.

``python docs/copy_reproduction.py FOLDER`` takes the folder that ``baldur reproduce`` wrote. Its
``reproduction.md`` becomes ``docs/understand/reproduction/STUDY.md``, and its figures replace those
of the same study in the folder ``figures`` beside it. Nothing in the page is changed.
"""

import argparse
import json
import shutil
from pathlib import Path

PAGES = Path(__file__).resolve().parent / "understand" / "reproduction"


def copy_page(folder, pages=PAGES):
    """Copy page and figures; return the new page."""
    page = folder / "reproduction.md"
    if not page.is_file():
        raise SystemExit(f"{page} is missing: run baldur reproduce to its end first.")
    study = json.loads((folder / "reproduction.json").read_text(encoding="utf-8"))["study"]
    (pages / "figures").mkdir(parents=True, exist_ok=True)
    for old in (pages / "figures").glob(f"{study}-*.png"):
        old.unlink()
    for figure in sorted((folder / "figures").glob(f"{study}-*.png")):
        shutil.copyfile(figure, pages / "figures" / figure.name)
    return shutil.copyfile(page, pages / f"{study}.md")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="folder that baldur reproduce wrote")
    print(copy_page(parser.parse_args().folder))
