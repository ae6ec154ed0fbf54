"""Freeze a plan before the data are seen, and write it under the headings of OSF's form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from icqf.data.questionnaire import Item, match_names
from icqf.data.settings import BETAS, PENALTIES, RULES, options_in
from icqf.errors import Advice, InputError, counted, did_you_mean, listed
from icqf.io.atomic import write_bytes
from icqf.io.codebook import read_codebook
from icqf.io.preregistration import QUESTIONS, Preregistration, frozen, read_decisions, span
from icqf.report import Bullets, Document, Grid, Section
from icqf.report.words import joined
from icqf.screening.missing_codes import number
from icqf.workflow.options import PreregistrationOptions, StudyOptions

PROOF = (
    "The checksum shows that the plan is the text that was registered: quote it in the registration, because "
    "whoever edits the file can compute a new one. It does not show when the plan was made, or that nobody "
    "had seen the data; for the date, there is the time stamp of the registry."
)
_WEIGHTS = {
    "range": "Answers are divided by the width of the item's answer range.",
    "variance": "Answers are divided by the standard deviation of the item's answers.",
    "none": "Answers are analysed in points.",
}
_DOUBLED = {"first": "the first is used", "last": "the last is used", "leave-out": "all are left out"}


def preregister(options: PreregistrationOptions) -> Preregistration:
    """Freeze a plan: the planned options with all defaults, the codebook's items, and the decisions.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from icqf.datasets import demo_paths
    >>> from icqf.io.preregistration import EXISTING_DATA, template
    >>> from icqf.workflow import PreregistrationOptions, preregister
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     decisions = pathlib.Path(folder, "decisions.toml")
    ...     text = template().replace("'''\\n\\n'''", "'Planned.'")
    ...     text = text.replace("data = 'Planned.'", f"data = '{EXISTING_DATA[0]}'", 1)
    ...     size = decisions.write_text(text, encoding="utf-8")
    ...     options = {"codebook": demo_paths().codebook, "decisions": decisions, "n_components": 8}
    ...     plan = preregister(PreregistrationOptions.of(options))
    >>> len(plan.items), plan.options["n_components"], len(plan.sha256)
    (119, [8], 64)
    """
    if options.decisions is None:
        raise InputError(
            "No decisions are given: a plan holds the hypotheses, the sample and the exclusions, too.",
            code="no-decisions",
            remedy=Advice(
                "Write the questions with icqf.io.preregistration.template(), and give the answers with "
                "{decisions}.",
                typed="Write the questions with 'icqf preregister --template decisions.toml', answer them, "
                "and add --decisions decisions.toml.",
            ),
        )
    if options.codebook is None:
        name = "The dictionary" if options.dictionary is None else options.dictionary.name
        raise InputError(
            f"{name}: this is a dictionary, and a plan needs a codebook, which says which columns are items.",
            code="dictionary",
            remedy="Make one from a few test records: icqf codebook RECORDS --dictionary DICTIONARY --out "
            "items.csv.",
        )
    items, book = read_codebook(options.codebook), options.codebook.name
    names, scales = [item.name for item in items], {item.subscale for item in items if item.subscale}
    if all(item == Item(item.name) for item in items):
        raise InputError(
            f"{book}: nothing is said of the items but their names ({listed(names)}).",
            code="not-described",
            remedy="Give a codebook with wordings or ranges. A table of answers is not one: its names would "
            "be published with the plan.",
        )
    for patterns in (options.items, _reversed_too(options)):
        match_names(patterns, names, book)
    for scale in options.subscales:
        if scale not in scales:
            raise InputError(f"{book}: there is no subscale {scale!r}.{did_you_mean(scale, scales)}")
    decisions, expected = read_decisions(options.decisions, items)
    declared, planned = options_in(StudyOptions), options.planned
    usual = {name: f" [usually: {declared[name].usual}]" * bool(declared[name].usual) for name in planned}
    made = datetime.now(UTC).isoformat(timespec="seconds")
    plan = Preregistration(decisions, expected, planned, items, book, made)
    return frozen(plan, {name: declared[name].help + usual[name] for name in planned})


def _reversed_too(options: StudyOptions) -> tuple[str, ...]:
    """Items that are reversed although the codebook does not say so, by name or pattern."""
    return () if options.reverse == ("auto",) else options.reverse


def planned_items(plan: Preregistration, options: StudyOptions) -> list[Item]:
    """The items of a plan that its options choose for the analysis."""
    chosen = {
        item.name
        for item in plan.items
        if item.subscale in options.subscales
        or any(item.name == each or fnmatchcase(item.name, each) for each in options.items)
    }
    everything = not options.items and not options.subscales
    others = {*options.about_participants, *([options.id] if options.id else [])}
    return [item for item in plan.items if (everything or item.name in chosen) and item.name not in others]


def planned_options(plan: Preregistration) -> StudyOptions:
    """The options of a fit that follows the plan."""
    return StudyOptions.of({"answers": "-"} | {k: v for k, v in plan.options.items() if v not in ("", [])})


def write_preregistration(plan: Preregistration, path: Path) -> list[Path]:
    """Write the frozen plan, and the same as text for OSF's form, in Markdown and for Word."""
    page = osf_form(plan)
    contents = {".toml": plan.text.encode(), ".md": page.as_markdown().encode(), ".docx": page.as_word()}
    for ending, content in contents.items():
        write_bytes(path.with_suffix(ending), content)
    return [path.with_suffix(ending) for ending in contents]


def osf_form(plan: Preregistration) -> Document:
    """Return the plan under the headings of OSF's form "OSF Preregistration", ready to copy."""
    written = _generated(plan)
    pages: dict[str, dict[str, list[Any]]] = {}
    for key, page, heading, _ in QUESTIONS:
        blocks = pages.setdefault(page, {}).setdefault(heading, [])
        blocks += written.pop(heading, [])
        blocks += [part.strip() for part in plan.decisions.get(key, "").split("\n\n") if part.strip()]
    expected = expected_sentences(plan.expected)
    if expected:
        blocks = pages["Study Information"]["Hypotheses"]
        blocks += ["Checked by the program when the plan is followed:", Bullets(expected)]
    sections = [
        Section(page, [Section(heading, blocks or ["Not stated."]) for heading, blocks in parts.items()])
        for page, parts in pages.items()
    ]
    lead = (
        "The text below follows the headings of the form “OSF Preregistration” (version 3), to be copied "
        "into it part by part; Title and Description belong to the registration's metadata. Upload the plan "
        "itself (the .toml file) with it."
    )
    title = f"Preregistration: {plan.decisions['title']}"
    return Document(title, [lead], sections, footer=f"Written by icqf {plan.version}, {plan.day}.")


def expected_sentences(expected: Mapping[str, Any]) -> list[str]:
    """What is expected, one sentence each."""
    lines = []
    if "participants" in expected:
        lines.append(f"{span_words(expected['participants'])} participants are fitted.")
    if "n_factors" in expected:
        lines.append(f"The number of factors is {span_words(expected['n_factors'])}.")
    groups = expected.get("same_factor", [])
    lines += [f"These items have their highest loading on the same factor: {', '.join(g)}." for g in groups]
    if len(groups) > 1:
        lines.append("Each of these groups of items has a factor of its own.")
    if "replication" in expected:
        lines.append(f"Every factor has a replication probability of at least {expected['replication']:g}.")
    return lines


def span_words(value: Any) -> str:
    """A number or a range in words."""
    low, high = span(value)
    return str(low) if low == high else f"{low} to {high}"


def _generated(plan: Preregistration) -> dict[str, list[Any]]:
    """What the form says about the settings, by heading."""
    options = planned_options(plan)
    items = planned_items(plan, options)
    exclusion = _exclusion(options)
    return {
        "Measured variables": _variables(options, items),
        "Indices": [
            "Every participant with at least one answer gets a score between 0 and 1 on each factor, "
            "estimated with the loadings of the model."
        ],
        "Statistical models": [_model(options, items, plan.version), _choice(options)],
        "Transformations": [_transformations(options, items)],
        "Inference criteria": [_inference(options)],
        "Data exclusion": [exclusion] if exclusion else [],
        "Missing data": [_missing(options, items)],
        "Other": [
            "The complete settings, with all defaults, and the content of the codebook are in the frozen "
            f"plan, made with icqf {plan.version} on {plan.day}. SHA-256 checksum of the plan: "
            f"{plan.sha256}. The analysis will be run with icqf fit --plan, whose report lists deviations "
            "from this plan.",
        ],
    }


def _variables(options: StudyOptions, items: Sequence[Item]) -> list[Any]:
    columns = {
        "Item": [item.name for item in items],
        "Wording": [item.wording for item in items],
        "Answers": [f"{i.min:g} to {i.max:g}" if i.declared else "not declared" for i in items],
        "Reversed": ["yes" if item.reverse else "no" for item in items],
        "Subscale": [item.subscale for item in items],
    }
    columns = {name: cells for name, cells in columns.items() if any(cells)}
    ranges = {name: f" ({low:g} to {high:g})" for name, low, high in options.confound_ranges}
    roles = {
        "Confounds": joined([name + ranges.get(name, "") for name in options.confounds]),
        "Families, classes or sites": options.groups,
        "Survey weights": options.weights,
    }
    return [
        f"{counted(len(items), 'item')}, as in the table.",
        *(f"{role}: {columns_}." for role, columns_ in roles.items() if columns_),
        Grid("Items", list(columns), [list(row) for row in zip(*columns.values(), strict=True)]),
    ]


def _model(options: StudyOptions, items: Sequence[Item], version: str) -> str:
    confounds = f"the confound{'s' * (len(options.confounds) > 1)} {joined(options.confounds)}"
    parts = [*([confounds] if options.confounds else []), *(["an intercept"] if options.intercept else [])]
    sentences = [
        f"The answers to {counted(len(items), 'item')} will be analysed with Interpretability Constrained "
        f"Questionnaire Factorization (ICQF; Lam et al., 2026; icqf {version}). The model describes answers "
        "as sums of factors, with scores between 0 and 1, loadings between 0 and the width of the item's "
        f"answer range, reconstructed answers within the answer range, and "
        f"{PENALTIES.load(options.penalty).description} on scores and loadings.",
        f"The penalty of the loadings is {options.loading_beta:g}."
        if options.loading_beta is not None
        else "",
        "The settings of the original publication are used (--paper)." * options.paper,
        f"Besides the factors, the model has {joined(parts)}." * bool(parts),
        "Loadings are averages over fits to resampled participants." * options.consensus,
    ]
    return " ".join(filter(None, sentences))


def _choice(options: StudyOptions) -> str:
    """How the number of factors and the penalty are found."""
    ks, betas, repeats = options.n_components, options.beta, options.n_repeats
    factors = "numbers of factors around the one that parallel analysis suggests (and further ones while the "
    factors = f"{_counts(ks)} factors" if ks else f"{factors}best lies at the edge)"
    strengths = (
        _listed(betas) if betas else f"{_listed(BETAS)} (and stronger ones while the strongest is best)"
    )
    fixed = [f"the number of factors is set in advance to {ks[0]}"] if len(ks) == 1 else []
    fixed += [f"the penalty β is set in advance to {betas[0]:g}"] if len(betas) == 1 else []
    searched = {"the number of factors": factors} if len(ks) != 1 else {}
    searched |= {"the penalty β": f"the penalties β = {strengths}"} if len(betas) != 1 else {}
    sentences = [joined(fixed)]
    if searched:
        again = ", repeated with other folds for the candidates close to the best"
        if not isinstance(repeats, str):
            again = f", repeated {repeats} times" * (repeats > 1)
        sentences.append(
            f"{joined([*searched])} {'is' if len(searched) == 1 else 'are'} chosen by "
            f"{options.n_splits}-fold blockwise cross-validation of hidden answers{again}, among "
            f"{joined([*searched.values()])}"
        )
        if len(ks) != 1:
            sentences.append(f"The chosen number of factors {RULES.load(options.rule).description}")
        if options.groups:
            sentences.append(f"Members of one group ({options.groups}) are never in different folds")
    return " ".join(f"{text[0].upper()}{text[1:]}." for text in sentences if text)


def _listed(numbers: Sequence[float]) -> str:
    return ", ".join(f"{number:g}" for number in numbers)


def _counts(ks: Sequence[int]) -> str:
    return f"{ks[0]} to {ks[-1]}" if list(ks) == [*range(ks[0], ks[-1] + 1)] else ", ".join(map(str, ks))


def _transformations(options: StudyOptions, items: Sequence[Item]) -> str:
    names = [item.name for item in items if item.reverse]
    names += match_names(_reversed_too(options), [item.name for item in items])
    known = f"Reversed before the analysis: {joined(list(dict.fromkeys(names)))}."
    found = " Items that run against the others are reversed, and listed." * (options.reverse == ("auto",))
    return f"{known if names else 'No item is declared reversed.'}{found} {_WEIGHTS[options.item_weight]}"


def _inference(options: StudyOptions) -> str:
    if not options.bootstrap:
        return "No intervals and no replication probabilities are computed."
    return (
        f"Loadings get 95% intervals from {options.bootstrap} resamples of the participants. Each factor "
        "gets a replication probability: how likely another study like this one, with as many participants "
        "and fitted with as many factors, finds a factor whose loadings correlate at least 0.8 with it. How "
        "well the model predicts is measured on answers hidden from it (R²)."
    )


def _exclusion(options: StudyOptions) -> str:
    kept = joined([f"{name} = {value}" for name, value in options.visit])
    sentences = [
        f"Only one visit is analysed: {kept}." * bool(kept),
        f"Of several rows of one participant, {_DOUBLED[options.doubled]}." if options.doubled else "",
        "Rows without an id are left out." * (options.without_id == "leave-out"),
    ]
    return " ".join(filter(None, sentences))


def _missing(options: StudyOptions, items: Sequence[Item]) -> str:
    codes = [*options.missing_codes, *(code for item in items for code in item.missing_codes)]
    named = ", ".join(dict.fromkeys(map(number, codes)))
    confounds = "not accepted: such participants must be completed or excluded, which is a deviation"
    if options.missing_confounds == "mean":
        confounds = "replaced by the mean of the sample"
    sentences = [
        "Missing answers are left out of the fit, and not imputed. Participants without any answer are not "
        "fitted and get no scores.",
        f"Values that mean no answer: {named}." * bool(named),
        "Questions that an earlier answer rules out count as answered with the lowest answer."
        * (options.not_asked == "lowest"),
        f"Missing confounds are {confounds}." * bool(options.confounds),
    ]
    return " ".join(filter(None, sentences))
