"""What the parameters of a model may be."""

from __future__ import annotations

import math
import numbers
import warnings
from typing import Any

import numpy as np

from icqf.errors import InputError
from icqf.solvers.admm import SMALLEST_RHO


def check_parameters(model: Any) -> None:
    """Refuse parameters of a model that mean nothing, and warn where ADMM need not converge."""
    _check_choice("penalty", model.penalty, ("l1", "l2", "l21"))
    _check_choice("solver", model.solver, ("fast", "admm"))
    _check_choice("inner", model.inner, ("cd", "fista", "admm"))
    _check_choice("missing_confounds", model.missing_confounds, ("error", "mean"))
    _check_choice("reconstruction_max", model.reconstruction_max, ("item_range", None))
    _check_choice("dtype", _dtype_name(model.dtype), ("auto", "float32", "float64"))
    if isinstance(model.init, str):
        _check_choice("init", model.init, ("nndsvd", "rotated", "random"))
    if model.n_components is not None:
        _check_number("n_components", model.n_components, whole=True, least=1)
    _check_number("beta", model.beta, least=0.0)
    _check_number("n_init", model.n_init, whole=True, least=1)
    _check_number("max_iter", model.max_iter, whole=True, least=1)
    _check_number("tol", model.tol, above=0.0)
    if model.score_max is not None:
        _check_number("score_max", model.score_max, above=0.0)
    if model.loading_max is not None and model.loading_max != "item_range":
        _check_number("loading_max", model.loading_max, above=0.0)
    if model.penalty == "l21" and model.solver == "admm" and model.inner != "cd":
        raise InputError(f"penalty='l21' is solved by inner='cd' only, not by inner={model.inner!r}.")
    if model.rho != "adaptive":
        _check_number("rho", model.rho, above=0.0)
        if model.solver == "admm" and model.rho < SMALLEST_RHO:
            warnings.warn(
                f"rho={model.rho:g} is below √2, where ADMM is not known to converge; use rho=3.0.",
                stacklevel=4,
            )


def _check_choice(name: str, value: Any, choices: tuple[Any, ...]) -> None:
    if value not in choices:
        raise InputError(f"{name}={value!r} is not known; choose one of {', '.join(map(repr, choices))}.")


def _dtype_name(dtype: Any) -> Any:
    try:
        return np.dtype(dtype).name
    except TypeError:
        return dtype


def check_start(init: Any, *shapes: tuple[int, int]) -> None:
    """Refuse arrays that cannot be a start."""
    wanted = (
        f"init must be a name or two arrays of the shapes {shapes[0]} (scores) and {shapes[1]} (loadings)"
    )
    try:
        arrays = [np.asarray(part, dtype=float) for part in init]
    except (TypeError, ValueError):
        raise InputError(f"{wanted}, not {type(init).__name__}.") from None
    found = tuple(array.shape for array in arrays)
    if found != shapes:
        raise InputError(f"{wanted}; it has {' and '.join(map(str, found))}.")
    if not all(np.isfinite(array).all() and (array >= 0).all() for array in arrays):
        raise InputError("init must not hold negative, infinite or missing numbers.")


def _check_number(
    name: str, value: Any, *, whole: bool = False, least: float | None = None, above: float | None = None
) -> None:
    kind = numbers.Integral if whole else numbers.Real
    right_kind = isinstance(value, kind) and not isinstance(value, bool) and math.isfinite(value)
    if right_kind and (least is None or value >= least) and (above is None or value > above):
        return
    wanted = "a whole number" if whole else "a number"
    limit = f" of at least {least:g}" if least is not None else f" above {above:g}"
    raise InputError(f"{name} must be {wanted}{limit}, not {value!r}.")
