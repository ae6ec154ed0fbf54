"""Which columns of a table are items, and why the others are not.

Without a codebook a column is recognised by name and values together: the name alone would drop the item
``sex_drive``, values alone would keep sex coded 1 and 2. A column that the user names is always an item."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from icqf.errors import Note, counted, listed, short
from icqf.screening.column_names import is_total, named_kind, redcap_columns, stem
from icqf.screening.missing_codes import number
from icqf.screening.ranges import Families, families_of
from icqf.screening.value_counts import ValueCounts

Array = NDArray[np.float64]

# Thresholds of items.
MOST_ANSWERS = 20  # different answers to an item, or points of its range
FEWEST_NUMBERED = 9  # more rows with different whole numbers are ids
FEWEST_ROWS = 10  # fewer do not show that a column is constant, or that all texts differ
WIDEST_ALONE = 11  # width of a scale that only one column has, from which it is a count
FEWEST_ALIKE = 3  # items that make a matrix
FEWEST_BESIDE = 5  # items on one scale, before columns on other scales are left out
# Thresholds of sums.
MOST_ROWS = 2000  # that are used
SPARE_ROWS = 10  # beyond twice the number of columns that may be added
FEWEST_VALUES = 4  # of a sum; fewer are matched by chance
ROUNDED = 0.006  # error of a mean written with two decimals
ADDED, EQUAL, NOT_ADDED = 0.2, 0.05, 0.02  # relative to the largest weight: added, equal to it, not added


def sums_among(
    columns: Mapping[str, Array], items: Sequence[str], counts: Mapping[str, ValueCounts] | None = None
) -> dict[str, tuple[str, ...]]:
    """Return the columns that are sums, differences or means of at least two items, and these items.

    Reversed items are allowed: their weights are negative, with a constant. Only complete rows are used, as
    programs treat gaps differently, and only columns that are wider than each item or hold fractions.
    """
    known = {name: (counts or {}).get(name) or ValueCounts.of(values) for name, values in columns.items()}
    widths = {name: float(np.ptp(each.values)) for name, each in known.items()}
    fractions = {name: bool((each.values != np.rint(each.values)).any()) for name, each in known.items()}
    whole = [name for name in items if not fractions[name]]
    sums: dict[str, tuple[str, ...]] = {}
    # Narrow ones first, so that a subscale's sum is no longer among the items when the total is tested.
    suspects = sorted(columns, key=lambda name: widths[name])
    for block in _blocks(whole, widths):
        candidates = [
            name
            for name in suspects
            if name not in sums
            and name not in block
            and (fractions[name] or widths[name] > max(widths[item] for item in block))
        ]
        sums |= _sums(columns, [item for item in block if item not in sums], candidates, fractions)
    return sums


def _blocks(items: Sequence[str], widths: Mapping[str, float]) -> Iterator[list[str]]:
    """Items that may be added up: with the same stem, then of equal width, then up to each width."""
    seen: set[tuple[str, ...]] = set()
    by_stem: dict[str, list[str]] = {}
    by_width: dict[float, list[str]] = {}
    for name in items:
        by_stem.setdefault(stem(name), []).append(name)
        by_width.setdefault(widths[name], []).append(name)
    wider = [[name for name in items if widths[name] <= width] for width in sorted(by_width)]
    for block in (*by_stem.values(), *(by_width[width] for width in sorted(by_width)), *wider):
        if len(block) > 1 and tuple(block) not in seen:
            seen.add(tuple(block))
            yield block


def _sums(
    columns: Mapping[str, Array], block: Sequence[str], candidates: list[str], fractions: Mapping[str, bool]
) -> dict[str, tuple[str, ...]]:
    """The candidates that are sums of items of a block, with these items."""
    if len(block) < 2 or not candidates:
        return {}
    parts, full = _complete_rows([columns[name] for name in block])
    sums: dict[str, tuple[str, ...]] = {}
    for name in candidates:
        rows = full[np.isfinite(columns[name][full])][:MOST_ROWS]
        y = columns[name][rows]
        if len(rows) < 2 * len(block) + SPARE_ROWS or len(np.unique(y)) < FEWEST_VALUES:
            continue
        X = np.column_stack([parts[rows], np.ones(len(rows))])
        few = slice(0, len(block) + SPARE_ROWS)
        if _weights(X[few], y[few], fractions[name]) is None:
            continue
        weights = _weights(X, y, fractions[name])
        if weights is None or not np.abs(weights[:-1]).max() > 0:
            continue
        sizes = np.abs(weights[:-1])
        sizes /= sizes.max()
        used = sizes > ADDED
        if used.sum() > 1 and np.ptp(sizes[used]) < EQUAL and (sizes[~used] < NOT_ADDED).all():
            sums[name] = tuple(item for item, is_used in zip(block, used, strict=True) if is_used)
    return sums


def _complete_rows(columns: Sequence[Array]) -> tuple[Array, NDArray[np.intp]]:
    """The columns as one array, and its complete rows; of a long table, only as many as needed."""
    n = len(columns[0])
    for many in (4 * MOST_ROWS, n):
        parts = np.column_stack([values[:many] for values in columns])
        full = np.flatnonzero(np.isfinite(parts).all(axis=1))
        if many >= n or len(full) >= MOST_ROWS // 4 + 4 * len(columns):
            break
    return parts, full


def _weights(X: Array, y: Array, fractions: bool) -> Array | None:
    """The weights of the columns with which their sum equals y; None if there are none."""
    weights = np.asarray(np.linalg.lstsq(X, y)[0], dtype=np.float64)
    most = ROUNDED if fractions else 1e-6 * max(1.0, float(np.abs(y).max()))
    return weights if np.abs(y - X @ weights).max() < most else None


_DATE = re.compile(r"\s*(\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([T ].*)?|\d{1,2}:\d\d(:\d\d.*)?)\s*")

# Codes of reasons, and how a sentence about such columns begins.
REASONS = {
    "id": "Left out as participant ids or row numbers",
    "demographic": "Left out as demographic columns",
    "date": "Left out as dates, times or durations",
    "visit": "Left out because they identify visits",
    "site": "Left out because they identify sites, groups or weights",
    "text": "Left out because they hold text rather than numbers",
    "words": "Left out because their answers are words",
    "constant": "Left out because all answers in them are the same",
    "empty": "Left out because they are empty",
    "sum": "Left out because they are sums or means of other columns",
    "score": "Left out as scores, by their names and ranges",
    "other scale": "Left out because no other columns share their answer scale",
    "identifying": "Left out because the dictionary marks them as identifying participants",
    "metadata": "Left out because the survey program adds them to every export",
    "not a question": "Left out because the file does not describe them as questions with one answer",
    "not in the codebook": "Left out because they are not in the codebook",
    "not selected": "Left out as not selected",
    "confound": "Used as confounds",
    "group": "Used as groups",
    "weight": "Used as weights",
}


@dataclass(frozen=True)
class LeftOut:
    """A column that is not an item, with the reason (one of `REASONS`) and perhaps a detail."""

    name: str
    reason: str
    detail: str = ""

    @property
    def sentence(self) -> str:
        """Why this column is not an item."""
        return sentences([self])[0]


@dataclass(frozen=True)
class Columns:
    """The columns that are items, and the others with the reason for each, all in the table's order."""

    items: tuple[str, ...]
    left_out: tuple[LeftOut, ...] = ()


def sentences(left_out: Iterable[LeftOut], *, most: int = 5) -> list[Note]:
    """Return one sentence per reason, naming or counting its columns."""
    by_reason: dict[str, list[LeftOut]] = {}
    for column in left_out:
        by_reason.setdefault(column.reason, []).append(column)
    notes = []
    for reason, columns in by_reason.items():
        texts = [
            f"{short(column.name)!r} ({column.detail})" if column.detail else repr(short(column.name))
            for column in columns
        ]
        rest = len(texts) - most
        names = ", ".join(texts[:most]) + (f" and {rest} more" if rest > 0 else "")
        notes.append(Note(reason, f"{REASONS[reason]}: {names}."))
    return notes


@dataclass(frozen=True, eq=False)
class _Content:
    """The numbers of a column, or the reason why it cannot be an item."""

    counts: ValueCounts | None = None
    values: Array | None = field(default=None, repr=False)
    reason: str = ""


def recognise(
    frame: pd.DataFrame,
    *,
    roles: Mapping[str, str] | None = None,
    ids: Collection[str] = (),
    questions: Collection[str] | None = None,
    texts: Mapping[str, Sequence[str]] | None = None,
    declared: Collection[str] = (),
    metadata: Collection[str] = (),
    identifying: Collection[str] = (),
) -> Columns:
    """Distinguish the items of a table from its other columns."""
    roles, texts = roles or {}, texts or {}
    names = [str(name) for name in frame.columns]
    reasons: dict[str, LeftOut] = {name: LeftOut(name, roles[name]) for name in names if name in roles}
    reasons |= {name: LeftOut(name, "id") for name in names if name in ids and name not in roles}
    columns: dict[str, _Content] = {}
    for name in names:
        if name not in reasons:
            column = _column(frame[name], many=name in declared, parts=name in (questions or ()))
            if name in declared and column.reason in ("constant", "empty", "text"):
                column = _Content(column.counts, column.values)  # the file itself calls it a question
            columns[name] = column
    answered = {name: each.counts for name, each in columns.items() if not each.reason and each.counts}
    families = families_of(answered)
    kinds = {name: named_kind(name, texts.get(name, ())) for name in columns}
    status = redcap_columns(frame)
    inside = _inside_matrix(families, [name for name in names if name in columns], kinds)
    for name, column in columns.items():
        if name in identifying:
            reasons[name] = LeftOut(name, "identifying")
        elif name in status or name in metadata:
            reasons[name] = LeftOut(name, "metadata")
        elif column.reason == "date":
            reasons[name] = LeftOut(name, "date")
        elif kinds[name] and not (name in inside and not _is_sex(kinds[name], column)):
            reasons[name] = LeftOut(name, str(kinds[name]).partition(" ")[0])
        elif column.reason:
            reasons[name] = LeftOut(name, column.reason)
        elif questions is not None and name not in questions:
            reasons[name] = LeftOut(name, "not a question")
    _leave_out_scores(columns, families, reasons, declared)
    items = tuple(name for name in names if name not in reasons)
    return Columns(items, tuple(reasons[name] for name in names if name in reasons))


def _column(column: pd.Series, *, many: bool, parts: bool) -> _Content:
    """The content of a column; with `many`, it may have many different values, with `parts` fractions."""
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        return _Content(reason="date")
    if pd.api.types.is_numeric_dtype(column.dtype):  # including true/false
        values = column.to_numpy(dtype=float, na_value=np.nan)
    else:
        texts = column.dropna().astype(str).str.strip()
        if texts.empty:
            return _Content(reason="empty")
        places, different = pd.factorize(texts)  # converts each different text once
        numbers = pd.to_numeric(pd.Series(different, dtype=object), errors="coerce").to_numpy(dtype=float)
        values = pd.Series(numbers[places], index=texts.index).reindex(column.index).to_numpy(dtype=float)
        if np.isfinite(values).sum() <= 0.5 * len(texts):
            dates = texts.iloc[:100].map(lambda text: _DATE.fullmatch(text) is not None).all()
            unique = len(texts) >= FEWEST_ROWS and texts.is_unique and not texts.str.contains(" ").any()
            return _Content(reason="date" if dates else "id" if unique else "text")
    return _numeric(values, many=many, parts=parts)


def _numeric(values: Array, *, many: bool, parts: bool) -> _Content:
    low, high = np.fmin.reduce(values, initial=np.nan), np.fmax.reduce(values, initial=np.nan)
    if np.isnan(low):
        return _Content(reason="empty")
    if not (np.isfinite(low) and np.isfinite(high)):
        known = values[np.isfinite(values)]  # infinite cells are errors, not another scale
        if not known.size:
            return _Content(reason="other scale")
        low, high = known.min(), known.max()
    counts = ValueCounts.of(values)
    different = len(counts.values)
    if different == 1 and np.isfinite(values).sum() >= FEWEST_ROWS:
        return _Content(counts, values, "constant")
    whole = bool((counts.values == np.rint(counts.values)).all())
    if whole and different == len(values) > FEWEST_NUMBERED and not many:
        return _Content(reason="id")
    few = different <= MOST_ANSWERS or (whole and high - low < MOST_ANSWERS)
    if not many and not (few and (whole or parts)):
        return _Content(counts, values, "other scale")
    return _Content(counts, values)


def _inside_matrix(families: Families, names: Sequence[str], kinds: Mapping[str, str | None]) -> set[str]:
    """Columns between items of one family with the same answers, which are items whatever their names."""
    home = {name: family for family in families.families for name in family.items}
    plain = [name for name in names if not kinds[name]]
    place = {name: at for at, name in enumerate(names)}
    inside = set()
    for name in names:
        if not kinds[name] or name not in home:
            continue
        before = [other for other in plain if place[other] < place[name]]
        after = [other for other in plain if place[other] > place[name]]
        alike = [other for other in home[name].items if not kinds[other]]
        both = before and after and before[-1] in alike and after[0] in alike
        if both and len(alike) >= FEWEST_ALIKE:
            inside.add(name)
    return inside


def _is_sex(kind: str | None, column: _Content) -> bool:
    """Whether a column named like sex has two or three values, even between other yes/no columns."""
    return kind == "demographic sex" and column.counts is not None and len(column.counts.values) <= 3


def _leave_out_scores(
    columns: Mapping[str, _Content],
    families: Families,
    reasons: dict[str, LeftOut],
    declared: Collection[str],
) -> None:
    """Add sums and means of other columns, scores by name, and lone wide scales to `reasons`."""
    home = {name: family for family in families.families for name in family.items}
    open_ = {name for name in columns if name not in reasons}
    numbers = {
        name: column.values
        for name, column in columns.items()
        if column.values is not None and (name in open_ or reasons[name].reason == "other scale")
    }
    counts = {name: each.counts for name, each in columns.items() if each.counts is not None}
    for name, parts in sums_among(numbers, [name for name in numbers if name in open_], counts).items():
        reasons[name] = LeftOut(name, "sum", f"of {counted(len(parts), 'column')}, {listed(parts, most=2)}")
        open_.discard(name)
    ends = {name: (home[name].low, home[name].high) for name in columns if name in open_ and name in home}
    sizes = Counter(ends.values())  # ties go to the first column
    if not sizes or max(sizes.values()) < FEWEST_ALIKE:
        return
    (usual_low, usual_high), most = sizes.most_common(1)[0]
    for name, (low, high) in ends.items():
        if name in declared:
            continue
        width, alike = high - low, sizes[low, high]
        if is_total(name) and width > usual_high - usual_low:
            reasons[name] = LeftOut(name, "score")
        elif (alike == 1 and width >= WIDEST_ALONE) or _is_unrelated(name, alike, width, most, open_):
            reasons[name] = LeftOut(name, "other scale")


def _is_unrelated(name: str, alike: int, width: float, most: int, others: Collection[str]) -> bool:
    """Whether few columns share this one's scale, most have another, and none shares its stem."""
    few = (alike < FEWEST_ALIKE and most >= FEWEST_BESIDE) or alike == width == 1
    return few and not any(stem(other) == stem(name) for other in others if other != name)


_MOST_BARS = 20
_BINS = 12
_MOST_TEXTS = 8
_TOO_MANY_TEXTS = 40


def bars_of(cells: pd.Series) -> tuple[tuple[str, int], ...]:
    """Return the bars of a column's histogram, each with its label and number of cells.

    Few whole numbers have a bar each, also where nobody has one between them; other numbers are binned.
    Texts have a bar each, the most frequent first, and one for all others; very many have none.
    """
    values = pd.to_numeric(cells, errors="coerce")
    if values.notna().sum() < cells.notna().sum():
        return _text_bars(cells.dropna().astype(str))
    counts = ValueCounts.of(values.to_numpy(dtype=float, na_value=np.nan))
    low, high = counts.ends
    if not counts.values.size:
        return ()
    whole = bool((counts.values == np.rint(counts.values)).all())
    if whole and high - low < _MOST_BARS:
        return tuple((number(value), int(counts.count(value))) for value in np.arange(low, high + 1))
    if counts.values.size <= _BINS:
        return tuple((number(value), int(n)) for value, n in zip(counts.values, counts.counts, strict=True))
    heights, edges = np.histogram(counts.values, bins=_BINS, weights=counts.counts)
    ends = [f"{edge:.4g}" for edge in edges]
    return tuple((f"{a} to {b}", int(n)) for a, b, n in zip(ends, ends[1:], heights, strict=False))


def _text_bars(cells: pd.Series) -> tuple[tuple[str, int], ...]:
    counts = cells.value_counts()
    if len(counts) > _TOO_MANY_TEXTS:  # ids, families, remarks
        return ()
    bars = [(str(text), int(n)) for text, n in counts.head(_MOST_TEXTS).items()]
    others = len(counts) - len(bars)
    return (*bars, (f"{others} others", int(counts.iloc[_MOST_TEXTS:].sum()))) if others else tuple(bars)
