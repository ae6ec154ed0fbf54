"""A fitted model as a plain description, and back: what a model file holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pandas as pd

from icqf.data.confounds import ConfoundEncoder
from icqf.data.parameters import check_parameters
from icqf.io.modelfile import StoredModel
from icqf.solvers.result import Certificate
from icqf.summary import FitStatistics

if TYPE_CHECKING:
    from icqf.fitted import FittedModel

    Model = TypeVar("Model", bound=FittedModel)

_NOT_STORED = ("callback", "random_state", "item_range")  # the ranges that were used are stored as an array
_STATISTICS = ("sse", "sst", "removal", "missing")


def description(model: FittedModel, names: list[str]) -> StoredModel:
    """The description of a fitted model whose parameters have these names; see `ICQF.describe`."""
    header = {
        "parameters": {name: _plain(name, getattr(model, name)) for name in names if _is_stored(model, name)},
        "items": list(model.item_range_.index),
        "items_named": hasattr(model, "feature_names_in_"),
        "confounds": model.confound_encoder_.to_dict(),
        "dtype": model.dtype_.name,
        "objective": model.objective_,
        "certificate": vars(model.certificate_),
        "trace": list(model.trace_.columns),
        "converged": bool(model.converged_),
        "n_iter": int(model.n_iter_),
        "n_participants": int(model.n_participants_),
    }
    arrays = {
        "components": model.components_,
        "confound_components": model.confound_components_,
        "item_range": model.item_range_.to_numpy(),
        "solving_order": model.solving_order_,
        **{name: getattr(model.fit_statistics_, name) for name in _STATISTICS},
        **{f"trace_{name}": model.trace_[name].to_numpy() for name in model.trace_.columns},
    }
    return StoredModel(header, arrays)


def _is_stored(model: FittedModel, name: str) -> bool:
    return name not in _NOT_STORED and (name != "init" or isinstance(model.init, str))


def _plain(name: str, value: Any) -> Any:
    if name == "dtype" and value != "auto":
        return np.dtype(value).name
    if name == "confound_ranges" and value is not None:
        return {str(key): [float(end) for end in ends] for key, ends in value.items()}
    return value.item() if isinstance(value, np.generic) else value


def rebuild(kind: type[Model], stored: StoredModel) -> Model:
    """The fitted model that `description` described, as one of this class.

    Raises errors of all kinds for a description that makes no sense.
    """
    header, arrays = stored.header, stored.arrays
    items = [str(name) for name in header["items"]]
    encoder = ConfoundEncoder.from_dict(header["confounds"])
    _check_arrays(arrays, len(items), len(encoder.names))
    ranges = pd.DataFrame(arrays["item_range"], index=items, columns=["min", "max"])
    model = kind(**_own_parameters(kind, {**header["parameters"]}), item_range=ranges)
    check_parameters(model)
    model.n_features_in_ = len(items)
    if header["items_named"]:
        model.feature_names_in_ = np.array(items, dtype=object)
    model.item_range_ = ranges
    model.confound_encoder_ = encoder
    model.confound_names_ = list(encoder.names)
    model.components_ = arrays["components"]
    model.confound_components_ = arrays["confound_components"]
    model.solving_order_ = arrays["solving_order"].astype(int)
    model.dtype_ = np.dtype(header["dtype"])
    model.objective_ = float(header["objective"])
    model.certificate_ = Certificate(**{name: float(v) for name, v in header["certificate"].items()})
    trace = {str(name): arrays[f"trace_{name}"] for name in header["trace"]}
    model.trace_ = pd.DataFrame(trace).rename_axis("iteration")
    model.converged_ = bool(header["converged"])
    model.n_iter_ = int(header["n_iter"])
    model.n_participants_ = int(header["n_participants"])
    model.fit_statistics_ = FitStatistics(**{name: arrays[name] for name in _STATISTICS})
    return model


def _own_parameters(kind: type[FittedModel], parameters: dict[str, Any]) -> dict[str, Any]:
    """Those that the class lets one set; the others must be what they always are in it."""
    settable = kind().get_params(deep=False)
    for name in [name for name in parameters if name not in settable and hasattr(kind, name)]:
        value, fixed = parameters.pop(name), getattr(kind, name)
        if value != fixed:
            raise ValueError(
                f"it has {name}={value!r}, and every {kind.__name__} has {fixed!r}: use ICQF.load"
            )
    return parameters


def _check_arrays(arrays: dict[str, Any], m: int, c: int) -> None:
    k = len(arrays["components"])
    shapes = {
        "components": (k, m),
        "confound_components": (c, m),
        "item_range": (m, 2),
        "removal": (k, m),
        "solving_order": (k,),
        **dict.fromkeys(("sse", "sst", "missing"), (m,)),
    }
    for name, shape in shapes.items():
        if arrays[name].shape != shape:
            raise ValueError(f"the array {name!r} has the shape {arrays[name].shape} instead of {shape}")
    if not (np.isfinite(arrays["components"]).all() and np.isfinite(arrays["confound_components"]).all()):
        raise ValueError("a loading is not a finite number")
    if sorted(arrays["solving_order"].tolist()) != list(range(k)):
        raise ValueError("the order of the factors is not one")
    low, high = arrays["item_range"].T
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()):
        raise ValueError("the range of an item is not one")
