"""How Sphinx builds the documentation site; docs/make_site.py gathers its pages."""

import json
from collections import Counter
from pathlib import Path

from sphinx.search.en import SearchEnglish

import icqf

project = "icqf"
author = "The icqf developers"
copyright = author
version = release = icqf.__version__
root_doc = "index"
language = "en"

extensions = ["myst_parser", "sphinx.ext.autodoc", "numpydoc"]
source_suffix = {".md": "markdown"}
highlight_language = "none"  # a block that names no language is what a terminal shows
default_role = "code"  # docstrings write `names` as Markdown does

myst_heading_anchors = 3  # as GitHub makes them, so that one link serves both
myst_enable_extensions = ["colon_fence"]

autodoc_typehints = "none"  # the docstrings say types and shapes in words
autodoc_member_order = "bysource"
autosummary_generate = False
numpydoc_show_class_members = False  # methods follow with their own docstrings

nitpicky = True  # a link to a name that the reference does not have is an error
nitpick_ignore_regex = [
    ("py:class", ".*"),
    ("py:obj", r"\w+"),
]  # bases of other packages; properties listed by numpydoc

html_theme = "pydata_sphinx_theme"
html_title = "icqf"
html_favicon = "static/icon.svg"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_use_index = False
html_search_scorer = str(Path(__file__).with_name("scorer.js"))
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_context = {"default_mode": "auto"}
html_sidebars = {"index": [], "search": []}
html_theme_options = {
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "navbar_persistent": ["search-button"],
    "header_links_before_dropdown": 6,
    "show_nav_level": 1,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["licence"],
    "footer_end": [],
    "back_to_top_button": False,
    "show_prev_next": True,
}
templates_path = ["templates"]


def left_out(app, what, name, thing, skip, options):
    """Methods that scikit-learn adds for metadata routing; its own pages describe them."""
    return True if name.endswith("_request") else None


words = {}  # of every page, how often each stem occurs


def count_words(app, doctree, docname):
    english = SearchEnglish({})
    words[docname] = Counter(english.stem(word.lower()) for word in english.split(doctree.astext()))


def write_words(app, failed):
    """Put the counts into the index of the search, for scorer.js."""
    index = Path(app.outdir) / "searchindex.js"
    if failed or not words or not index.is_file():
        return
    counts = {}
    for at, page in enumerate(words.values()):
        for stem, count in page.items():
            if not stem.isdigit():
                counts.setdefault(stem, {})[at] = count
    lengths = [(name, page.total()) for name, page in words.items()]
    mean = sum(length for _, length in lengths) / len(lengths)
    found = json.dumps({"pages": lengths, "mean": mean, "counts": counts}, separators=(",", ":"))
    index.write_text(f"var SearchWords = {found};\n{index.read_text(encoding='utf-8')}", encoding="utf-8")


def setup(app):
    app.connect("autodoc-skip-member", left_out)
    app.connect("doctree-resolved", count_words)
    app.connect("build-finished", write_words)
