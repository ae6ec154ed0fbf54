"""The answer to "how many factors?", with the numbers behind it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class FactorCount:
    """How many factors a method chose, and why.

    Attributes
    ----------
    method : str
        Name of the method, such as "Parallel analysis".
    n_components : int
        The number of factors chosen; 0 means that no factor stands out.
    curve : DataFrame
        One row per number of factors looked at: column `n_components` and one or more named value columns.
    reason : str
        One plain sentence saying why this number was chosen.
    value : str
        The column of `curve` that the method compares. Default: the first one after `n_components`.
    better : {"lower", "higher"} or None
        Whether a lower or a higher value is better; None when the values are held against `reference`.
    reference : str or None
        A column of `curve` to hold `value` against, such as the eigenvalues of random data.
    spread : str or None
        A column of `curve` with the uncertainty of `value`, such as its standard error.

    Examples
    --------
    >>> import pandas as pd
    >>> curve = pd.DataFrame({"n_components": [1, 2, 3], "error": [0.9, 0.4, 0.5]})
    >>> count = FactorCount("Cross-validation", 2, curve, "Two factors predict hidden answers best.",
    ...                     better="lower")
    >>> count
    FactorCount(method='Cross-validation', n_components=2)
    >>> print(count)
    Cross-validation: 2 factors. Two factors predict hidden answers best.
    """

    method: str
    n_components: int
    curve: pd.DataFrame
    reason: str
    value: str = ""
    better: Literal["lower", "higher"] | None = None
    reference: str | None = None
    spread: str | None = None

    def __post_init__(self) -> None:
        columns = [str(name) for name in self.curve.columns]
        if "n_components" not in columns or len(columns) < 2:
            raise ValueError(
                f"The curve of {self.method!r} has the columns {columns}; it needs 'n_components' and at "
                "least one column of values."
            )
        if not self.value:
            object.__setattr__(self, "value", next(name for name in columns if name != "n_components"))
        for name in (self.value, self.reference, self.spread):
            if name is not None and name not in columns:
                raise ValueError(f"The curve of {self.method!r} has no column {name!r}, only {columns}.")
        if self.better not in ("lower", "higher", None):
            raise ValueError(f"better is {self.better!r}; choose 'lower', 'higher' or None.")
        object.__setattr__(self, "n_components", int(self.n_components))

    def __repr__(self) -> str:
        return f"FactorCount(method={self.method!r}, n_components={self.n_components})"

    def __str__(self) -> str:
        unit = "factor" if self.n_components == 1 else "factors"
        return f"{self.method}: {self.n_components} {unit}. {self.reason}"
