"""How the code is put together: who imports whom, which names are public, and where they live."""

import ast
import importlib
import importlib.util
import inspect
import pkgutil
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

import icqf

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "icqf"
FILES = sorted(SOURCE.rglob("*.py"))
SATELLITES = sorted((ROOT / "experiments" / "src").rglob("*.py"))
PACKAGES = [
    "icqf",
    *(module.name for module in pkgutil.walk_packages(icqf.__path__, "icqf.") if module.ispkg),
]
NAMED_TUPLES = {"_asdict", "_fields", "_make", "_replace"}  # public, whatever they look like


@cache
def script(name):
    """One of the scripts in docs/, as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def parsed(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def public_names(package):
    found = importlib.import_module(package)
    return {name: getattr(found, name) for name in getattr(found, "__all__", ())}


@pytest.fixture(scope="module")
def made():
    return script("make_map")


@pytest.fixture(scope="module")
def graph(made):
    return made.import_graph()


# --- imports ----------------------------------------------------------------------------------------------


def test_no_module_imports_itself_by_a_detour(made, graph):
    assert made.cycles(graph) == []


def test_no_package_imports_itself_by_a_detour(made, graph):
    assert made.cycles(made.package_graph(graph)) == []


def test_imports_point_one_way(made, graph):
    assert made.against_the_order(graph) == []


def test_every_package_has_its_place_in_the_order(made, graph):
    assert set(made.package_graph(graph)) <= set(made.ROW)


def test_the_map_is_drawn_from_the_code_as_it_is(made, graph):
    drawn = made.picture(made.reduced(made.package_graph(graph)), made.boxes())
    assert made.PICTURE.read_text(encoding="utf-8") == drawn, "run `python docs/make_map.py`"


def test_the_checks_of_the_order_can_fail(made):
    graph = {"icqf.data.a": {"icqf.models.b"}, "icqf.models.b": {"icqf.data.c"}, "icqf.data.c": set()}
    assert made.cycles(graph) == []
    assert made.cycles(made.package_graph(graph)) == [["data", "models"]]
    assert made.against_the_order(graph) == ["icqf.data.a imports icqf.models.b"]


def test_the_package_does_not_know_its_satellites():
    assert SATELLITES
    for path in FILES:
        assert "icqf_experiments" not in path.read_text(encoding="utf-8"), path


def third_party(nodes):
    """The packages from elsewhere that these statements import."""
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module]
    return {name.split(".")[0] for name in names} - {"icqf", *sys.stdlib_module_names}


def test_the_mathematics_knows_no_tables_files_visits_or_clusters(graph):
    for path in FILES:
        if path.parent.name == "core":
            assert third_party(ast.walk(parsed(path))) <= {"numpy", "scipy", "array_api_compat"}, path
            assert not re.search("dask|visit|age bin", path.read_text(encoding="utf-8"), re.IGNORECASE), path
    used = {other for name in graph if name.startswith("icqf.core.") for other in graph[name]}
    assert {other.split(".")[1] for other in used} == {"core"}


def on_demand(path):
    """Whether a module is imported only where an engine or the app is asked for that needs it."""
    return path.parent.name == "app" or (path.parent.name == "engines" and path.stem.startswith("torch"))


def test_what_is_imported_on_demand_is_imported_inside_functions_alone():
    own = {f"icqf.{path.parent.name}.{path.stem}" for path in FILES if on_demand(path)}
    for path in FILES:
        nodes = [] if on_demand(path) else parsed(path).body
        imported = {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
        imported |= {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
        assert not imported & own, path


def test_what_is_imported_is_declared_and_what_is_declared_is_imported():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    core, optional = (
        {re.split("[<>=]", line)[0].replace("-", "_") for line in lines}
        for lines in (
            project["dependencies"],
            [line for name in ("io", "app", "cluster", "gpu", "examples") for line in extras[name]],
        )
    )
    everywhere = third_party([node for path in FILES for node in ast.walk(parsed(path))])
    at_once = third_party([node for path in FILES if not on_demand(path) for node in parsed(path).body])
    called = {"sklearn": "scikit_learn", "docx": "python_docx"}
    called |= {"triton": "torch", "h11": "uvicorn", "fontTools": "matplotlib"}  # which bring them along
    assert {called.get(name, name) for name in everywhere} - optional == core
    assert not at_once & optional


# --- what is loaded ---------------------------------------------------------------------------------------

MOST_MODULES = 45  # of ours, that a fit of an array loads
FIT = """
import sys
from icqf import ICQF
ICQF(1, item_range=(0, 2)).fit([[0, 1], [2, 2], [0, 0]])
print(*(name for name in sys.modules if name.split(".")[0] == "icqf"))
"""


def test_a_fit_of_an_array_loads_few_modules_and_no_reader():
    done = subprocess.run([sys.executable, "-c", FIT], capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    assert "icqf.models.icqf" in loaded
    assert len(loaded) <= MOST_MODULES, sorted(loaded)
    apart = ("icqf.io", "icqf.models.sources", "icqf.models.persistence")
    assert [name for name in loaded if name.startswith(apart)] == []


# --- names ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("package", PACKAGES)
def test_public_names_are_in_dir_and_can_be_had(package):
    assert set(public_names(package)) <= set(dir(importlib.import_module(package)))


@pytest.mark.parametrize("package", PACKAGES)
def test_no_module_shares_its_name_with_a_public_function_or_class(package):
    paths = importlib.import_module(package).__path__
    modules = {module.name for module in pkgutil.iter_modules(paths) if not module.ispkg}
    assert not modules & set(public_names(package))


def private(name):
    return name.startswith("_") and not name.startswith("__")


def private_uses(tree):
    """Private names that a module takes from elsewhere, with their lines."""
    nodes = list(ast.walk(tree))
    own = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    own |= {getattr(node, "id", getattr(node, "attr", "")) for node in nodes if stored(node)}
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("icqf"):
            parts = [*(node.module or "").split("."), *(alias.name for alias in node.names)]
            yield from ((node.lineno, name) for name in parts if private(name))
        elif isinstance(node, ast.Attribute) and private(node.attr) and node.attr not in own | NAMED_TUPLES:
            yield from [(node.lineno, node.attr)] if ast.unparse(node.value) not in ("self", "cls") else []


def stored(node):
    return isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store)


def test_nothing_outside_a_module_uses_its_private_names():
    uses = [(path, *use) for path in FILES + SATELLITES for use in private_uses(parsed(path))]
    assert [f"{path.relative_to(ROOT)}:{line} {name}" for path, line, name in uses] == []


def test_the_check_of_private_names_can_fail():
    code = "from icqf.a import _b\nfrom icqf._c import d\nd.x._e\nself._f\nd._g = 1\nd._g\nt._fields"
    assert list(private_uses(ast.parse(code))) == [(1, "_b"), (2, "_c"), (3, "_e")]


# --- files ------------------------------------------------------------------------------------------------


def test_files_name_no_place_of_one_machine():
    for path in FILES + SATELLITES:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"[\"'\s](/work|/home|/tmp|/Users)/", text), path


# --- documentation ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("package", [package for package in PACKAGES if package != "icqf.cli"])
def test_every_public_name_has_a_summary_and_an_example(package):
    api = script("make_api")
    for name, thing in public_names(package).items():
        if not inspect.ismodule(thing):
            assert api.summary(thing).endswith((".", "?")), name
            assert ">>>" in api.example(thing), name


def test_the_reference_lists_every_public_name():
    api = script("make_api")
    offering = {package for package in PACKAGES if public_names(package)} - {"icqf.cli"}
    assert offering == set(api.PACKAGES)
    assert api.PAGE.read_text(encoding="utf-8") == api.page(), "run `python docs/make_api.py`"
