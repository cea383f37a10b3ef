"""Collect the figures of Display objects for the gallery; pyplot does not manage them."""

from pathlib import Path

from sphinx_gallery.scrapers import figure_rst

from baldur.plots import Display


class DisplayScraper:
    """Save every Display that a block of an example has drawn, with its sentence as the text."""

    def __repr__(self):
        return "DisplayScraper()"  # the same on every run, so that pages are not built again

    def __call__(self, block, block_vars, gallery_conf):
        """Return the figures of one block as reStructuredText."""
        names = []
        for one in _displays(block_vars["example_globals"].values()):
            path = Path(next(block_vars["image_path_iterator"]))
            path.write_bytes(one.png(dpi=160))
            one.in_gallery_ = True
            names.append((str(path), one.alt_text))
        return "".join(
            figure_rst([name], gallery_conf["src_dir"], fig_titles=text) for name, text in names
        )


def _displays(values):
    """Return drawn displays that are not in the gallery yet, each once."""
    found = {}
    for value in values:
        drawn = isinstance(value, Display) and hasattr(value, "figure_")
        if drawn and not hasattr(value, "in_gallery_"):
            found[id(value)] = value
    return found.values()
