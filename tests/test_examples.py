"""Every example runs, draws its picture and prints what the documentation site shows."""

import importlib.util
import re
from pathlib import Path

import pytest
from matplotlib import image

ROOT = Path(__file__).parent.parent
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


@pytest.fixture(scope="module")
def made():
    spec = importlib.util.spec_from_file_location("make_examples", ROOT / "docs" / "make_examples.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.filterwarnings("ignore:PyTorch and Triton find no CUDA GPU")
def test_examples_print_and_draw_what_the_site_shows(made, tmp_path):
    assert len(made.examples()) >= 4
    for path in made.examples():
        printed = made.run(path, tmp_path)
        shown = (made.OUTPUT / f"{path.stem}.txt").read_text(encoding="utf-8")
        # Another processor may round the last digit shown differently.
        assert NUMBER.sub("#", printed) == NUMBER.sub("#", shown), (
            f"run `python docs/make_examples.py {path.stem}`"
        )
        assert floats(printed) == pytest.approx(floats(shown), abs=0.0101), path.stem
        assert image.imread(tmp_path / f"{path.stem}.png").std() > 0.01  # not an empty sheet
        assert (made.OUTPUT / f"{path.stem}.png").is_file()


def test_every_example_is_in_the_gallery(made):
    gallery = (made.EXAMPLES / "README.md").read_text(encoding="utf-8")
    for path in made.examples():
        assert f"]({path.name})" in gallery and f"](output/{path.stem}.png)" in gallery, path.name


def test_the_page_for_r_names_functions_of_the_package():
    named = set(
        re.findall(r"`(icqf_\w+|as_fa)\(", (ROOT / "docs" / "r-users.md").read_text(encoding="utf-8"))
    )
    exported = re.findall(r"^export\((\w+)\)$", (ROOT / "r" / "NAMESPACE").read_text("utf-8"), re.MULTILINE)
    assert len(named) > 5 and named <= set(exported)


def floats(text):
    return [float(number) for number in NUMBER.findall(text)]
