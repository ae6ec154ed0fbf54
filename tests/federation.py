"""A study of three hospitals, and a federated fit of them in one process."""

import json
import threading
import zipfile
from io import BytesIO

import numpy as np
import pandas as pd

from icqf.data import Item
from icqf.io.exchange import Exchange
from icqf.workflow import answer_requests, draw_up_plan, fit_federated, site_participants
from icqf.workflow.federate_site import read_for_plan

SITES = ("Hospital A", "Hospital B", "Hôpital C")
SIZES = (83, 61, 47)  # no other length in the fits is one of these
M, K = 11, 2
ITEMS = tuple(
    Item(f"q{j:02d}", min=1, max=2 if j == 3 else 5, reverse=j in (2, 6), missing_codes=(9,))
    for j in range(M)
)


def table():
    """Answers with gaps, age, sex and weights; q03 has two answers, the others five."""
    rng = np.random.default_rng(7)
    n = sum(SIZES)
    scores = rng.gamma(0.6, 0.5, (n, K)).clip(0, 1)
    loadings = np.zeros((K, M))
    loadings[0, :6], loadings[1, 5:] = 4, 3.5
    age, sex = rng.uniform(6, 18, n).round(1), rng.integers(0, 2, n)
    raw = scores @ loadings + 0.04 * (age - 6)[:, None] + 0.3 * sex[:, None] + rng.normal(0, 0.7, (n, M))
    answers = np.clip(np.rint(raw), 0, 4) + 1
    answers[:, 3] = 1 + (raw[:, 3] > 1.5)
    answers[:, [2, 6]] = 6 - answers[:, [2, 6]]
    frame = pd.DataFrame(answers, columns=[item.name for item in ITEMS])
    frame = frame.mask(rng.random((n, M)) < 0.07)
    frame.insert(0, "code", [f"PERSON-{i:04d}" for i in range(n)])
    frame["age"], frame["sex"] = age, np.where(sex == 1, "female", "male")
    frame["weight"] = rng.uniform(0.5, 2, n).round(2)
    return frame


def plan_of(**settings):
    usual = {
        "sites": SITES,
        "confound_ranges": {"age": (5, 19)},
        "categories": {"sex": ["male", "female"]},
        "weights": "weight",
        "n_components": K,
        "beta": 0.2,
        "n_init": 1,
        "smallest_site": 40,
        "smallest_category": 10,
    }
    return draw_up_plan(ITEMS, **usual | settings)


def write_sites(folder, frame):
    """One file of answers for each hospital."""
    edges = np.cumsum([0, *SIZES])
    paths = [folder / f"answers-{at}.csv" for at in range(len(SIZES))]
    for path, first, last in zip(paths, edges[:-1], edges[1:], strict=True):
        frame.iloc[first:last].to_csv(path, index=False)
    return paths


def here(plan, path):
    return site_participants(plan, read_for_plan(plan, path))


def shared(folder, *, patience=30.0):
    (folder / "shared").mkdir(exist_ok=True)
    return Exchange(folder / "shared", patience=patience, settled=0.05)


def federate(plan, folder, paths, **options):
    """Fit with every hospital in a thread of its own; the logs stand beside the shared folder."""
    exchange, failed = shared(folder), []

    def take_part(name, participants):
        try:
            answer_requests(plan, participants, exchange, name=name, log=folder / f"log {name}")
        except Exception as error:  # noqa: BLE001 - told by the test
            failed.append(error)

    sites = [(name, here(plan, path)) for name, path in zip(plan.sites, paths, strict=True)]
    threads = [threading.Thread(target=take_part, args=site) for site in sites]
    for thread in threads:
        thread.start()
    try:
        return fit_federated(plan, exchange, **options)
    finally:
        exchange.end.touch()
        for thread in threads:
            thread.join()
        if failed:
            raise failed[0]


def unzipped(path):
    """The members of a file, by name."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def arrays_in(path):
    return {
        name.removesuffix(".npy"): np.load(BytesIO(content))
        for name, content in unzipped(path).items()
        if name.endswith(".npy")
    }


def header_of(path):
    return json.loads(unzipped(path)["message.json"])
