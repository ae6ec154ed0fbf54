"""How the code is put together: which names are public and where they live."""

import importlib
import pkgutil

import pytest

import icqf

PACKAGES = [
    "icqf",
    *(module.name for module in pkgutil.walk_packages(icqf.__path__, "icqf.") if module.ispkg),
]


@pytest.mark.parametrize("package", PACKAGES)
def test_public_names_are_in_dir_and_can_be_had(package):
    package = importlib.import_module(package)
    for name in getattr(package, "__all__", ()):
        assert name in dir(package)
        assert getattr(package, name) is not None


@pytest.mark.parametrize("package", PACKAGES)
def test_no_module_shares_its_name_with_a_public_function_or_class(package):
    package = importlib.import_module(package)
    modules = {module.name for module in pkgutil.iter_modules(package.__path__)}
    subpackages = {module.name for module in pkgutil.iter_modules(package.__path__) if module.ispkg}
    assert not (modules - subpackages) & set(getattr(package, "__all__", ()))
