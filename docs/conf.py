"""Settings of the documentation site; ``make docs`` builds it into ``build/docs``."""

import importlib
import sys
import warnings
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent / "src")]

from figures_of_displays import DisplayScraper  # noqa: E402

import baldur  # noqa: E402

project = "baldur"
author = "The baldur developers"
version = release = baldur.__version__
project_copyright = author
language = "en"

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    # Ours, in _ext:
    "reference_pages",
    "benchmark_page",
    "run_blocks",
    "equation_links",
]
exclude_patterns = ["data/**", "examples/**", "**/README.md", "gallery/**/*.ipynb"]
templates_path = ["_templates"]

# -- Markdown and text -----------------------------------------------------------------------------

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "amsmath", "attrs_inline"]
myst_heading_anchors = 4
default_role = "code"
copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True

# -- The reference ---------------------------------------------------------------------------------

autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "groupwise"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
numpydoc_xref_param_type = False
viewcode_line_numbers = True
# The estimators document the same attributes; a name leads to one of them.
suppress_warnings = ["ref.python"]

# -- The gallery -----------------------------------------------------------------------------------

warnings.filterwarnings("ignore", category=DeprecationWarning)
sphinx_gallery_conf = {
    "examples_dirs": ["examples"],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"\.py$",
    "image_scrapers": (DisplayScraper(),),
    "capture_repr": ("_repr_html_", "__repr__"),
    "doc_module": ("baldur",),
    "reference_url": {"baldur": None},
    "backreferences_dir": "_generated/backreferences",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_memory": False,
    "write_computation_times": False,
    "show_signature": False,
    "min_reported_time": 0,
    "remove_config_comments": True,
    "abort_on_example_error": False,
    "parallel": False,
}

# -- Pages -----------------------------------------------------------------------------------------

html_theme = "pydata_sphinx_theme"
html_title = f"baldur {version}"
html_static_path = ["_static"]
html_css_files = ["baldur.css"]
html_js_files = ["baldur.js"]
html_show_sourcelink = False
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    "logo": {"text": "baldur"},
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    # Buttons that unfold the navigation have no name for screen readers.
    "collapse_navigation": True,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": [], "search": [], "genindex": []}
html_extra_path = ["_generated/site"]

# Formulas are drawn in the page, by a copy of MathJax that lies beside it: no network is needed.
_mathjax = Path(importlib.import_module("sphinx-mathjax-offline").__file__).parent
html_static_path += [str(_mathjax / "static" / "mathjax" / "tex-svg.js")]
mathjax_path = "tex-svg.js"
mathjax3_config = {"options": {"enableMenu": False}}
