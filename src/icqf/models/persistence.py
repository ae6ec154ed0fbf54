"""A fitted model as a plain description, and back."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pandas as pd

from icqf.core.problem import scale_of
from icqf.core.result import Certificate, StartResult
from icqf.core.start import NAMES
from icqf.data.confounds import ConfoundEncoder
from icqf.data.questionnaire import Item, StoredCodebook
from icqf.data.settings import check_parameters
from icqf.io.model_file import StoredModel
from icqf.models.multistart import GIVEN, starts_table
from icqf.models.score_intervals import ScoreDistribution
from icqf.models.summary import FitRecord, FitStatistics, checked_names, default_names
from icqf.resampling.replication import MEASURED, table_of

if TYPE_CHECKING:
    from icqf.models.icqf import ICQF
    from icqf.models.longitudinal import LongitudinalICQF

    Model = TypeVar("Model", bound=ICQF)

_NOT_STORED = ("callback", "random_state", "item_range")  # ranges are stored as an array
_MOST = {"items": 100_000, "starts": 10_000, "factor_names": 10_000, "trace": 100}
_MOST_OF_FEW_ITEMS = 50  # factors of a short form, which may be more than its items
_STATISTICS = ("sse", "sst", "explained")
_NUMBERS = {"converged": bool, "n_iter": int, "n_averaged": int, "n_participants": int}
# Digits of statistics in a file: with few items, answers could be recovered from sums with all digits.
_DIGITS, OBJECTIVE_DIGITS = 3, 6


def description(model: ICQF, names: list[str]) -> StoredModel:
    """The description of a fitted model with these parameters; see `ICQF.describe`."""
    header = {
        "parameters": {name: _plain(name, getattr(model, name)) for name in names if name not in _NOT_STORED},
        "items": list(model.item_range_.index),
        "factor_names": list(model.factor_names_),
        "items_named": hasattr(model, "feature_names_in_"),
        "confounds": model.confound_encoder_.to_dict(),
        "dtype": model.dtype_.name,
        "objective": float(significant(model.objective_, OBJECTIVE_DIGITS)),
        "certificate": {
            name: float(significant(each))
            for name, each in vars(model.certificate_).items()
            if each is not None
        },
        "trace": list(model.trace_.columns),
        "starts": model.starts_["start"].tolist(),
        **{name: kind(getattr(model, f"{name}_")) for name, kind in _NUMBERS.items()},
        "record": asdict(model.record_),
    }
    arrays = {
        "components": model.components_,
        "confound_components": model.confound_components_,
        "item_range": model.item_range_.to_numpy(),
        "item_scale": model.item_scale_,
        "solving_order": model.solving_order_,
        "starts": significant(model.starts_.iloc[:, 1:].to_numpy(dtype=float), OBJECTIVE_DIGITS),
        "replication": significant(_replication(model), OBJECTIVE_DIGITS),
        "missing": model.fit_statistics_.missing,
        **{name: significant(getattr(model.fit_statistics_, name)) for name in _STATISTICS},
        **{f"trace_{name}": significant(model.trace_[name].to_numpy()) for name in model.trace_.columns},
    }
    distribution = model.score_distribution_
    if distribution is not None:
        arrays |= distribution.arrays()
        header |= {"scores_of_more_items": True} if distribution.of_more_items else {}
    return StoredModel(header, arrays, described(model, model.codebook_))


def significant(values: Any, digits: int = _DIGITS) -> np.ndarray:
    """Numbers rounded to significant digits."""
    values = np.asarray(values, dtype=float)
    plain = [float(f"{each:.{digits - 1}e}") for each in values.ravel()]
    return np.array(plain, dtype=float).reshape(values.shape)


def described(model: ICQF | LongitudinalICQF, codebook: StoredCodebook) -> StoredCodebook:
    """The codebook of the model's items and confounds, with the model's ranges."""
    known = {item.name: _in_plain_numbers(item) for item in codebook.items}
    plain = map(_in_plain_numbers, codebook.confounds)  # without ranges, subscales and directions
    about = {
        item.name: Item(item.name, item.wording, missing_codes=item.missing_codes, labels=item.labels)
        for item in plain
    }
    confounds = tuple(
        about[column.name] for column in model.confound_encoder_.columns if column.name in about
    )
    if not known:
        return StoredCodebook(id=str(codebook.id), about=codebook.about)
    ranges = zip(model.item_range_.index, model.item_range_.to_numpy().tolist(), strict=True)
    items = (replace(known.get(name, Item(name)), min=low, max=high) for name, (low, high) in ranges)
    return StoredCodebook(tuple(items), str(codebook.id), confounds, codebook.about)


def _in_plain_numbers(item: Item) -> Item:
    codes = (code if isinstance(code, str) else float(code) for code in item.missing_codes)
    return replace(
        item,
        name=str(item.name),
        wording=str(item.wording),
        subscale=str(item.subscale),
        missing_codes=tuple(codes),
        labels=tuple((float(value), str(text)) for value, text in item.labels),
        reverse=bool(item.reverse),
    )


def _plain(name: str, value: Any) -> Any:
    if name == "init" and not isinstance(value, str):
        return "nndsvd"  # the scores of a start are participants' data
    if name == "dtype" and value != "auto":
        return np.dtype(value).name
    if name == "confound_ranges" and value is not None:
        return {str(key): [float(end) for end in ends] for key, ends in value.items()}
    if name == "item_weight" and value is not None and not isinstance(value, str):
        return [float(weight) for weight in value]
    return value.item() if isinstance(value, np.generic) else value


def rebuild(kind: type[Model], stored: StoredModel) -> Model:
    """The fitted model of this class from its description; any error means that this is not valid."""
    header, arrays = stored.header, stored.arrays
    for name, most in _MOST.items():
        if len(header[name]) > most:
            raise ValueError(
                f"it has {len(header[name])} {name.replace('_', ' ')}, more than any model needs"
            )
    items = [str(name) for name in header["items"]]
    _check_confounds(header["confounds"]["columns"])
    encoder = ConfoundEncoder.from_dict(header["confounds"])
    _check_arrays(arrays, len(items), len(encoder.names), header["starts"])
    k, n = len(arrays["components"]), int(header["n_participants"])
    if k > min(n, max(len(items), _MOST_OF_FEW_ITEMS)):
        raise ValueError(f"it has {k} factors, more than {len(items)} items and {n} participants allow")
    ranges = pd.DataFrame(arrays["item_range"], index=items, columns=["min", "max"])
    model = kind(**_own_parameters(kind, {**header["parameters"]}), item_range=ranges)
    check_parameters(model)
    model.n_features_in_ = len(items)
    if header["items_named"]:
        model.feature_names_in_ = np.array(items, dtype=object)
    model.item_range_ = ranges
    model.item_scale_ = arrays["item_scale"]
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
    model.factor_names_ = [str(name) for name in header["factor_names"]]
    model.starts_ = _starts(header["starts"], arrays["starts"], model.factor_names_)
    model.replication_ = _replication_table(arrays["replication"], model.get_feature_names_out())
    for name, kind_of in _NUMBERS.items():
        setattr(model, f"{name}_", kind_of(header[name]))
    model.fit_statistics_ = FitStatistics(**{name: arrays[name] for name in (*_STATISTICS, "missing")})
    if "score_zeros" in arrays:  # older files have none
        model.score_distribution_ = ScoreDistribution.from_arrays(
            arrays, len(model.components_), len(items), bool(header.get("scores_of_more_items"))
        )
    model.record_ = FitRecord.of(header["record"])
    model.codebook_ = stored.codebook
    _check_model(model, stored)
    return model


def _starts(names: list[str], numbers: np.ndarray, factors: list[str]) -> pd.DataFrame:
    """The table of starts, refused if it is not valid."""
    starts = tuple(
        StartResult(str(name), float(objective), int(n_iter), bool(converged), tuple(factors.tolist()))
        for name, (objective, n_iter, converged, *_), factors in zip(
            names, numbers, numbers[:, 3:], strict=True
        )
    )
    table = starts_table(starts, factors)
    right = {*names} <= {*NAMES, GIVEN} and np.isfinite(numbers).all() and (numbers[:, :2] >= 0).all()
    if not right or not (np.abs(numbers[:, 3:]) <= 1).all():
        raise ValueError("the starts are not valid")
    if not np.array_equal(table.iloc[:, 1:].to_numpy(dtype=float), numbers):
        raise ValueError("it has an invalid field 'starts'")
    return table


def _replication(model: ICQF) -> np.ndarray:
    """Replication statistics of each factor (k, 5); no rows if not estimated."""
    table = model.replication_
    return np.empty((0, len(MEASURED))) if table is None else table[list(MEASURED)].to_numpy()


def _replication_table(numbers: np.ndarray, names: np.ndarray) -> pd.DataFrame | None:
    """The table of replication, refused if it is not valid."""
    if not len(numbers):
        return None
    correlations, shares = numbers[:, :3], numbers[:, 3:]
    if not (np.abs(correlations) <= 1 + 1e-9).all() or not ((shares >= 0) & (shares <= 1)).all():
        raise ValueError("the agreement of halves is not valid")
    return table_of(numbers, names)


def _check_model(model: ICQF, stored: StoredModel) -> None:
    """Refuse a description that the model would not give, and impossible numbers."""
    check_description(model.describe(), stored)
    names, fit, certificate = model.item_range_.index, model.fit_statistics_, model.certificate_
    span = np.ptp(model.item_range_.to_numpy(), axis=1)
    highest = span if model.loading_max == "item_range" else model.loading_max
    loadings = np.concatenate([model.components_, model.confound_components_])
    laws = {
        "the items' weights do not agree with their scale": _scale_valid(
            model.item_weight, model.item_scale_, span
        ),
        "two items have the same name, or one has none": names.is_unique and all(names),
        "the names of the factors are not valid": _names_valid(model),
        "the number of factors is not that of its loadings": model.n_components == len(model.components_) > 0,
        "its number of participants or iterations is not valid": model.n_participants_ > 0
        and model.n_iter_ >= 0,
        "the number of averaged fits is not valid": model.n_averaged_ == 0 or model.n_averaged_ > 1,
        "the objective is not valid": model.objective_ >= 0
        and np.isfinite([each for each in vars(certificate).values() if each is not None]).all()
        and np.isfinite(model.objective_),
        "the arithmetic is not known": model.dtype_.name in ("float32", "float64"),
        "a loading is below 0": (loadings >= 0).all(),
        "a loading is above its bound": highest is None or (loadings <= highest).all(),
        "a squared error is not valid": np.isfinite([fit.sse, fit.sst, *fit.explained]).all()
        and (fit.sse >= 0).all()
        and (fit.sst >= 0).all(),
        # sse = sst − 2 Σ explained + the reconstruction's own squares, which are not below 0
        "the explained shares contradict the squared errors": (
            2 * fit.explained.sum(axis=0) >= (1 - 1e-2) * fit.sst - (1 + 1e-2) * fit.sse
        ).all(),
        "the missing answers are miscounted": bool(
            ((fit.missing >= 0) & (fit.missing <= model.n_participants_)).all()
            and (fit.missing % 1 == 0).all()
        ),
    }
    broken = [law for law, holds in laws.items() if not holds]
    if broken:
        raise ValueError(broken[0])


def check_description(again: StoredModel, stored: StoredModel) -> None:
    """Refuse a description that differs in any field from that of the model built from it."""
    if {*again.arrays} != {*stored.arrays}:
        raise ValueError("its arrays are not those of a model")
    ours, theirs = (
        {name: json.dumps(value, sort_keys=True) for name, value in each.items()}
        for each in ({**one.header, "codebook": asdict(one.codebook)} for one in (again, stored))
    )
    for name in sorted({*ours, *theirs}):
        if ours.get(name) != theirs.get(name):
            raise ValueError(f"it has an invalid field {name!r}")


def _names_valid(model: ICQF) -> bool:
    """Whether the factors' names are valid."""
    k, names = len(model.components_), model.factor_names_
    return len(names) == k and checked_names(default_names(k), names, taken=model.confound_names_) == names


def _scale_valid(item_weight: Any, scale: np.ndarray, span: np.ndarray) -> bool:
    """Whether the items' scale follows from their weights and ranges."""
    if isinstance(item_weight, str) and item_weight == "variance":  # learned from the answers
        widest = span.max() if (scale > 0).all() else np.nan
        return bool(np.isfinite(scale).all() and np.isclose((scale * span).max(), widest, rtol=1e-9))
    expected = scale_of(item_weight, span)
    return bool((scale == (1.0 if expected is None else expected)).all())


def _check_confounds(columns: list[dict[str, Any]]) -> None:
    names = [column["name"] for column in columns]
    if len({*names}) < len(names):
        raise ValueError("two confounds have the same name")
    for column in columns:
        categories, shares = column["categories"], np.asarray(column["shares"], dtype=float)
        low, mean, high = (float(column[name]) for name in ("low", "mean", "high"))
        if not (-np.inf < low < high < np.inf and (low <= mean <= high)):
            raise ValueError(f"the range of the confound {column['name']!r} is not valid")
        if categories is not None and not (
            isinstance(categories, list)
            and 0 < len(categories) == len({*categories}) == len(shares)
            and all(isinstance(category, (str, bool, int, float)) for category in categories)
            and (shares >= 0).all()
            and abs(shares.sum() - 1) < 1e-6
        ):
            raise ValueError(f"the categories of the confound {column['name']!r} are not valid")


def _own_parameters(kind: type[ICQF], parameters: dict[str, Any]) -> dict[str, Any]:
    """The parameters that can be set; the others must have the value fixed by the class."""
    settable = kind().get_params(deep=False)
    for name in [name for name in parameters if name not in settable and hasattr(kind, name)]:
        value, fixed = parameters.pop(name), getattr(kind, name)
        if value != fixed:
            raise ValueError(
                f"it has {name}={value!r}, and every {kind.__name__} has {fixed!r}: use ICQF.load"
            )
    return parameters


def _check_arrays(arrays: dict[str, Any], m: int, c: int, names: list[str]) -> None:
    k = len(arrays["components"])
    shapes = {
        "components": (k, m),
        "confound_components": (c, m),
        "item_range": (m, 2),
        "item_scale": (m,),
        "explained": (k + c, m),
        "solving_order": (k,),
        "starts": (len(names), 3 + k),
        "replication": (k if len(arrays.get("replication", ())) else 0, len(MEASURED)),
        **dict.fromkeys(("sse", "sst", "missing"), (m,)),
    }
    for name, shape in shapes.items():
        if name not in arrays:
            raise ValueError(f"it lacks the array {name!r}")
        if arrays[name].shape != shape:
            raise ValueError(f"the array {name!r} has the shape {arrays[name].shape} instead of {shape}")
    if not (np.isfinite(arrays["components"]).all() and np.isfinite(arrays["confound_components"]).all()):
        raise ValueError("a loading is not a finite number")
    if sorted(arrays["solving_order"].tolist()) != list(range(k)):
        raise ValueError("the order of the factors is not valid")
    low, high = arrays["item_range"].T
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()):
        raise ValueError("the range of an item is not valid")
