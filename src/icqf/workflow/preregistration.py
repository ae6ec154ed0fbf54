"""Freeze a plan before the data are seen, and write it under the headings of OSF's form."""

from __future__ import annotations

import textwrap
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from icqf.data.questionnaire import Item, match_names
from icqf.data.settings import BETAS, PENALTIES, RULES, Number, options_in
from icqf.errors import Advice, InputError, counted, did_you_mean, listed
from icqf.io.atomic import write_bytes
from icqf.io.codebook import read_codebook
from icqf.io.preregistration import Preregistration, frozen
from icqf.report import Bullets, Document, Grid, Section
from icqf.report.words import joined
from icqf.screening.missing_codes import number
from icqf.workflow.options import PreregistrationOptions, StudyOptions

PROOF = (
    "The checksum shows that the plan is the text that was registered: quote it in the registration, because "
    "whoever edits the file can compute a new one. It does not show when the plan was made, or that nobody "
    "had seen the data; for the date, there is the time stamp of the registry."
)
EXISTING_DATA = (
    "Registration prior to creation of data",
    "Registration prior to any human observation of the data",
    "Registration prior to accessing the data",
    "Registration prior to analysis of the data",
    "Registration following analysis of the data",
)


@dataclass(frozen=True)
class Question:
    """A question of OSF's form, or a part of one: its page and heading there, and what to write."""

    key: str
    page: str
    heading: str
    about: str
    needed: bool = False
    usual: str = ""


# The questions of "OSF Preregistration", version 3, in its order; two may share a heading.
QUESTIONS = (
    Question("title", "Study Information", "Title", "The working title of the study.", needed=True),
    Question(
        "description",
        "Study Information",
        "Description",
        "Background, purpose and research question in a few sentences.",
    ),
    Question(
        "hypotheses",
        "Study Information",
        "Hypotheses",
        "Specific and testable, such as: the 25 items form five factors, one for each subscale. What a "
        "program can check is repeated under [expected] below.",
        needed=True,
    ),
    Question(
        "study_type",
        "Design Plan",
        "Study type",
        "Experiment, Observational Study, Meta-Analysis or Other.",
        needed=True,
        usual="Observational Study",
    ),
    Question(
        "blinding",
        "Design Plan",
        "Blinding",
        "Who does not know which treatment a participant has.",
        needed=True,
        usual="No blinding is involved in this study.",
    ),
    Question(
        "study_design",
        "Design Plan",
        "Study design",
        "Such as: cross-sectional; everyone fills in the questionnaire once, online.",
        needed=True,
    ),
    Question(
        "randomization",
        "Design Plan",
        "Randomization",
        "How participants are assigned to groups.",
        usual="Not applicable: nobody is assigned to a group.",
    ),
    Question(
        "existing_data",
        "Sampling Plan",
        "Existing Data",
        "One of the five sentences below.",
        needed=True,
    ),
    Question(
        "existing_data_explanation",
        "Sampling Plan",
        "Explanation of existing data",
        "If data exist: who has seen what of them, and how you made sure that you know no results.",
    ),
    Question(
        "data_collection",
        "Sampling Plan",
        "Data collection procedures",
        "Population, recruitment, payment, inclusion and exclusion criteria, dates.",
        needed=True,
    ),
    Question("sample_size", "Sampling Plan", "Sample size", "How many participants.", needed=True),
    Question(
        "sample_size_rationale",
        "Sampling Plan",
        "Sample size rationale",
        "Why this many; icqf plan gives the number for factors that another study would find.",
    ),
    Question(
        "stopping_rule", "Sampling Plan", "Stopping rule", "When data collection ends, whatever is found."
    ),
    Question(
        "manipulated_variables",
        "Variables",
        "Manipulated variables",
        "Treatments and their levels.",
        usual="None.",
    ),
    Question(
        "measured_variables",
        "Variables",
        "Measured variables",
        "What is measured besides the items and confounds, which are filled in.",
    ),
    Question(
        "indices", "Variables", "Indices", "Sums or means of items; the scores of factors are filled in."
    ),
    Question(
        "statistical_models",
        "Analysis Plan",
        "Statistical models",
        "Tests and models besides the factorization, which is filled in.",
    ),
    Question(
        "transformations",
        "Analysis Plan",
        "Transformations",
        "Recoding besides reversed items, which are filled in.",
    ),
    Question(
        "replicated",
        "Analysis Plan",
        "Inference criteria",
        "What counts as a factor that is found again, in another study or in the other half of this one.",
    ),
    Question(
        "confirming",
        "Analysis Plan",
        "Inference criteria",
        "Which results would confirm each hypothesis, and which would refute it.",
        needed=True,
    ),
    Question(
        "data_exclusion",
        "Analysis Plan",
        "Data exclusion",
        "Which participants or answers are left out, by which rule, such as a failed attention check.",
        needed=True,
    ),
    Question(
        "missing_data",
        "Analysis Plan",
        "Missing data",
        "What is done about missing answers besides leaving them out of the fit, which is filled in.",
    ),
    Question(
        "exploratory_analysis",
        "Analysis Plan",
        "Exploratory analysis",
        "What else will be looked at, and reported as exploratory.",
    ),
    Question("other", "Other", "Other", "Literature, related work with the same data, deviations foreseen."),
)
_KNOWN = {question.key: question for question in QUESTIONS}
_EXPECTED = """\
# What a program can check. icqf fit --plan reports for each line whether it was found. Remove the # of the
# lines that you want, and write your own numbers and items.
[expected]
# participants = "300-350"    # fitted, a number or a range
# n_factors = "5"             # a number or a range
# same_factor = [["A1", "A2", "A3"], ["N1", "N2", "N3"]]   # items by the factor with their highest loading
# replication = 0.5           # lowest replication probability of any factor
"""
EXPECTED = ("participants", "n_factors", "same_factor", "replication")
_SHARE = Number(above=0.0, most=1.0)


def template() -> str:
    """Return the questions of the registration as a TOML file to fill in.

    Examples
    --------
    >>> from icqf.workflow.preregistration import template
    >>> "hypotheses = \'\'\'" in template()
    True
    """
    lines = [
        "# Answer these questions in any text editor, between the quotation marks. Then:",
        "# icqf preregister --codebook items.csv --decisions THIS_FILE",
        "# and the options of icqf fit that you plan, such as --confounds age sex. The headings are those of",
        "# OSF's form. Questions marked with * need an answer.",
    ]
    page = ""
    for question in QUESTIONS:
        if question.page != page:
            page = question.page
            lines += ["", f"# --- {page} ---"]
        about = f"{question.heading}{' *' * question.needed}: {question.about}"
        lines += ["", *textwrap.wrap(about, 98, initial_indent="# ", subsequent_indent="# ")]
        lines += [f"#   {each}" for each in EXISTING_DATA * (question.key == "existing_data")]
        lines += [f"{question.key} = '''", *([question.usual] if question.usual else [""]), "'''"]
    return "\n".join([*lines, "", "", _EXPECTED])


def read_decisions(path: Path, items: Sequence[Item] = ()) -> tuple[dict[str, str], dict[str, Any]]:
    """Read the filled-in template: answers to the questions, and what is expected."""
    if not path.is_file():
        raise InputError(f"{path}: there is no such file.")
    try:
        content = tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path.name}: this is not valid TOML ({error}).") from None
    expected = content.pop("expected", {})
    for name, value in content.items():
        if name not in _KNOWN:
            hint = did_you_mean(name, _KNOWN)
            raise InputError(f"{path.name}: {name!r} is not a question of the registration.{hint}")
        if not isinstance(value, str):
            raise InputError(f"{path.name}: the answer to {name!r} must be a text in quotation marks.")
    answers = {name: str(content.get(name, "")).strip() for name in _KNOWN}
    empty = [question.key for question in QUESTIONS if question.needed and not answers[question.key]]
    if empty:
        raise InputError(
            f"{path.name}: {counted(len(empty), 'question')} without an answer: {listed(empty, most=20)}.",
            code="unanswered",
            remedy="Answer each, if only by saying that nothing is planned.",
        )
    known = [each for each in EXISTING_DATA if each.lower() == answers["existing_data"].rstrip(".").lower()]
    if not known:
        raise InputError(
            f"{path.name}: existing_data must be one of the five sentences of OSF's form.",
            code="existing-data",
            remedy=f"Copy one of these: {'; '.join(EXISTING_DATA)}.",
        )
    answers["existing_data"] = known[0]
    return {name: text for name, text in answers.items() if text}, _expectations(path.name, expected, items)


def _expectations(source: str, given: Any, items: Sequence[Item]) -> dict[str, Any]:
    """Check what is expected of the results."""
    if not isinstance(given, dict):
        raise InputError(f"{source}: [expected] must be a table with {', '.join(EXPECTED)}.")
    names, expected = [item.name for item in items], {}
    for name, value in given.items():
        expected[name] = value
        try:
            if name in ("participants", "n_factors"):
                span(value)
            elif name == "replication":
                if complaint := _SHARE.complaint(value):
                    raise ValueError(complaint.removeprefix(" must be ").partition(", not ")[0])
            elif name == "same_factor":
                if not (isinstance(value, list) and value and all(_are_names(each) for each in value)):
                    raise ValueError('lists of items, as in [["A1", "A2"], ["N1", "N2"]]')
                expected[name] = [match_names(each, names, source) for each in value]
                if any(len(each) < 2 for each in expected[name]):
                    raise ValueError("lists of two items or more")
            else:
                hint = did_you_mean(name, EXPECTED)
                raise InputError(f"{source}: {name!r} is not something that is checked.{hint}")
        except InputError:
            raise
        except (TypeError, ValueError) as error:
            raise InputError(f"{source}: {name} under [expected] must be {error}, not {value!r}.") from None
    return expected


def _are_names(names: Any) -> bool:
    return isinstance(names, list) and bool(names) and all(isinstance(name, str) for name in names)


def span(value: Any) -> tuple[int, int]:
    """Return the ends of a number or a range such as "300-350"."""
    ends = str(value).replace("–", "-").split("-")
    if isinstance(value, bool) or len(ends) > 2 or not all(end.strip().isdecimal() for end in ends):
        raise ValueError('a whole number or a range such as "300-350"')
    low, high = int(ends[0]), int(ends[-1])
    if not 1 <= low <= high:
        raise ValueError("a number above 0, or a range with the lower end first")
    return low, high


def preregister(options: PreregistrationOptions) -> Preregistration:
    """Freeze a plan: the planned options with all defaults, the codebook's items, and the decisions.

    Parameters
    ----------
    options : PreregistrationOptions

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from icqf.datasets import demo_paths
    >>> from icqf.workflow import PreregistrationOptions, preregister
    >>> from icqf.workflow.preregistration import EXISTING_DATA, QUESTIONS
    >>> needed = {question.key: "Planned." for question in QUESTIONS if question.needed}
    >>> answers = needed | {"existing_data": EXISTING_DATA[0]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     decisions = pathlib.Path(folder, "decisions.toml")
    ...     text = "".join(f"{key} = '{text}'\\n" for key, text in answers.items())
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
                "Write the questions with icqf.workflow.preregistration.template(), and give the answers "
                "with {decisions}.",
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
    items = read_codebook(options.codebook)
    _refuse_unknown_items(options, items)
    decisions, expected = read_decisions(options.decisions, items)
    declared = options_in(StudyOptions)
    comments = {
        name: declared[name].help + (f" [usually: {declared[name].usual}]" if declared[name].usual else "")
        for name in options.planned
    }
    made = datetime.now(UTC).isoformat(timespec="seconds")
    book = options.codebook.name
    return frozen(Preregistration(decisions, expected, options.planned, items, book, made), comments)


def _refuse_unknown_items(options: StudyOptions, items: Sequence[Item]) -> None:
    """Refuse names of items, subscales or reversed items that the codebook does not have."""
    source = "" if options.codebook is None else options.codebook.name
    names, scales = [item.name for item in items], {item.subscale for item in items if item.subscale}
    if options.items:
        match_names(options.items, names, source)
    if options.reverse and options.reverse != ("auto",):
        match_names(options.reverse, names, source)
    for scale in options.subscales:
        if scale not in scales:
            raise InputError(f"{source}: there is no subscale {scale!r}.{did_you_mean(scale, scales)}")


def planned_items(plan: Preregistration, options: StudyOptions) -> list[Item]:
    """The items of a plan that its options choose for the analysis."""
    names = [item.name for item in plan.items]
    chosen = set(match_names(options.items, names)) if options.items else set()
    chosen |= {item.name for item in plan.items if item.subscale in options.subscales}
    everything = not options.items and not options.subscales
    others = {*options.about_participants, *([options.id] if options.id else [])}
    return [item for item in plan.items if (everything or item.name in chosen) and item.name not in others]


def write_preregistration(plan: Preregistration, path: Path) -> list[Path]:
    """Write the frozen plan, and the same as text for OSF's form, in Markdown and for Word."""
    page = osf_form(plan)
    files = [path, path.with_suffix(".md"), path.with_suffix(".docx")]
    for file, content in zip(
        files, (plan.text.encode(), page.as_markdown().encode(), page.as_word()), strict=True
    ):
        write_bytes(file, content)
    return files


def osf_form(plan: Preregistration) -> Document:
    """Return the plan under the headings of OSF's form "OSF Preregistration", ready to copy.

    Parameters
    ----------
    plan : Preregistration
    """
    written = _generated(plan)
    pages: dict[str, dict[str, list[Any]]] = {}
    for question in QUESTIONS:
        blocks = pages.setdefault(question.page, {}).setdefault(question.heading, [])
        if not blocks:
            blocks += written.get(question.heading, [])
        answer = plan.decisions.get(question.key, "")
        blocks += [part.strip() for part in answer.split("\n\n") if part.strip()]
    pages["Study Information"]["Hypotheses"] += _expected_words(plan.expected)
    sections = [
        Section(page, [Section(heading, blocks or ["Not stated."]) for heading, blocks in parts.items()])
        for page, parts in pages.items()
    ]
    lead = [
        "The text below follows the headings of the form “OSF Preregistration” (version 3), to be copied "
        "into it part by part; Title and Description belong to the registration's metadata. Upload the plan "
        "itself (the .toml file) with it.",
    ]
    title = f"Preregistration: {plan.decisions['title']}"
    return Document(title, lead, sections, footer=f"Written by icqf {plan.version}, {plan.day}.")


def _generated(plan: Preregistration) -> dict[str, list[Any]]:
    """What the form says about the settings, by heading."""
    options = StudyOptions.of({"answers": "-"} | {k: v for k, v in plan.options.items() if v not in ("", [])})
    items = planned_items(plan, options)
    return {
        "Measured variables": _variables(options, items),
        "Indices": [
            "Every participant with at least one answer gets a score between 0 and 1 on each factor, "
            "estimated with the loadings of the model."
        ],
        "Statistical models": _model(options, items, plan.version),
        "Transformations": _transformations(options, items),
        "Inference criteria": [_inference(options)],
        "Data exclusion": _exclusion(options),
        "Missing data": _missing(options, items),
        "Other": [
            "The complete settings, with all defaults, and the content of the codebook are in the frozen "
            f"plan, made with icqf {plan.version} on {plan.day}. SHA-256 checksum of the plan: "
            f"{plan.sha256}. The analysis will be run with icqf fit --plan, whose report lists deviations "
            "from this plan.",
        ],
    }


def _expected_words(expected: Mapping[str, Any]) -> list[Any]:
    """The expectations that a program checks, as a list."""
    lines = expected_sentences(expected)
    return ["Checked by the program when the plan is followed:", Bullets(lines)] if lines else []


def expected_sentences(expected: Mapping[str, Any]) -> list[str]:
    """What is expected, one sentence each."""
    lines = []
    if "participants" in expected:
        lines.append(f"{_span_words(expected['participants'])} participants are fitted.")
    if "n_factors" in expected:
        lines.append(f"The number of factors is {_span_words(expected['n_factors'])}.")
    groups = expected.get("same_factor", [])
    lines += [f"These items have their highest loading on the same factor: {', '.join(g)}." for g in groups]
    if len(groups) > 1:
        lines.append("Each of these groups of items has a factor of its own.")
    if "replication" in expected:
        lines.append(f"Every factor has a replication probability of at least {expected['replication']:g}.")
    return lines


def _span_words(value: Any) -> str:
    low, high = span(value)
    return str(low) if low == high else f"{low} to {high}"


def _variables(options: StudyOptions, items: Sequence[Item]) -> list[Any]:
    rows = [
        [
            item.name,
            item.wording,
            "not declared" if item.min is None or item.max is None else f"{item.min:g} to {item.max:g}",
            "yes" if item.reverse else "no",
            item.subscale,
        ]
        for item in items
    ]
    sentences: list[Any] = [f"{counted(len(items), 'item')}, as in the table."]
    if options.confounds:
        ranges = {name: f" ({low:g} to {high:g})" for name, low, high in options.confound_ranges}
        named = joined([name + ranges.get(name, "") for name in options.confounds])
        sentences.append(f"Confounds: {named}.")
    if options.groups:
        sentences.append(f"Families, classes or sites: {options.groups}.")
    if options.weights:
        sentences.append(f"Survey weights: {options.weights}.")
    head = ["Item", "Wording", "Answers", "Reversed", "Subscale"]
    empty = [at for at in (1, 4) if not any(row[at] for row in rows)]
    kept = [at for at in range(5) if at not in empty]
    table = Grid("Items", [head[at] for at in kept], [[row[at] for at in kept] for row in rows])
    return [*sentences, table]


def _model(options: StudyOptions, items: Sequence[Item], version: str) -> list[Any]:
    kind = PENALTIES.load(options.penalty).description
    sentences = [
        f"The answers to {counted(len(items), 'item')} will be analysed with Interpretability Constrained "
        f"Questionnaire Factorization (ICQF; Lam et al., 2026; icqf {version}). The model describes answers "
        "as sums of factors, with scores between 0 and 1, loadings between 0 and the width of the item's "
        f"answer range, reconstructed answers within the answer range, and {kind} on scores and loadings."
    ]
    if options.loading_beta is not None:
        sentences.append(f"The penalty of the loadings is {options.loading_beta:g}.")
    if options.paper:
        sentences.append("The settings of the original publication are used (--paper).")
    confounds = f"the confound{'s' * (len(options.confounds) > 1)} {joined(options.confounds)}"
    parts = [*([confounds] if options.confounds else []), *(["an intercept"] if options.intercept else [])]
    if parts:
        sentences.append(f"Besides the factors, the model has {joined(parts)}.")
    if options.consensus:
        sentences.append("Loadings are averages over fits to resampled participants.")
    return [" ".join(sentences), _choice(options)]


def _choice(options: StudyOptions) -> str:
    """How the number of factors and the penalty are found."""
    ks, betas = options.n_components, options.beta
    around = "numbers of factors around the one that parallel analysis suggests (and further ones while the "
    factors = f"{_counts(ks)} factors" if ks else f"{around}best lies at the edge)"
    usual = f"{_listed(BETAS)} (and stronger ones while the strongest is best)"
    strengths = f"the penalties β = {_listed(betas) if betas else usual}"
    fixed = [f"the number of factors is set in advance to {ks[0]}"] if len(ks) == 1 else []
    fixed += [f"the penalty β is set in advance to {betas[0]:g}"] if len(betas) == 1 else []
    start = f"{joined(fixed)}." if fixed else ""
    start = start[:1].upper() + start[1:]
    if not options.searches:
        return start
    searched = [
        *([] if len(ks) == 1 else [("the number of factors", factors)]),
        *([] if len(betas) == 1 else [("the penalty β", strengths)]),
    ]
    what = joined([name for name, _ in searched])
    verb = "is" if len(searched) == 1 else "are"
    repeats = options.n_repeats
    again = (
        ", repeated with other folds for the candidates close to the best"
        if isinstance(repeats, str)
        else f", repeated {repeats} times" * (repeats > 1)
    )
    rule = "" if len(ks) == 1 else f" The chosen number of factors {RULES.load(options.rule).description}."
    folds = f" Members of one group ({options.groups}) are never in different folds." * bool(options.groups)
    return (
        f"{start} {what[:1].upper()}{what[1:]} {verb} chosen by {options.n_splits}-fold blockwise "
        f"cross-validation of hidden answers{again}, among {joined([among for _, among in searched])}."
        f"{rule}{folds}"
    ).strip()


def _listed(numbers: Sequence[float]) -> str:
    return ", ".join(f"{number:g}" for number in numbers)


def _counts(ks: Sequence[int]) -> str:
    return f"{ks[0]} to {ks[-1]}" if list(ks) == [*range(ks[0], ks[-1] + 1)] else ", ".join(map(str, ks))


def _transformations(options: StudyOptions, items: Sequence[Item]) -> list[Any]:
    reversed_items = [item.name for item in items if item.reverse]
    if options.reverse and options.reverse != ("auto",):
        reversed_items += match_names(options.reverse, [item.name for item in items])
    names = joined(list(dict.fromkeys(reversed_items)))
    sentences = [f"Reversed before the analysis: {names}." if names else "No item is declared reversed."]
    if options.reverse == ("auto",):
        sentences.append("Items that run against the others are reversed, and listed.")
    sentences.append(
        {
            "range": "Answers are divided by the width of the item's answer range.",
            "variance": "Answers are divided by the standard deviation of the item's answers.",
            "none": "Answers are analysed in points.",
        }[options.item_weight]
    )
    return [" ".join(sentences)]


def _inference(options: StudyOptions) -> str:
    if not options.bootstrap:
        return "No intervals and no replication probabilities are computed."
    return (
        f"Loadings get 95% intervals from {options.bootstrap} resamples of the participants. Each factor "
        "gets a replication probability: how likely another study like this one, with as many participants "
        "and fitted with as many factors, finds a factor whose loadings correlate at least 0.8 with it. How "
        "well the model predicts is measured on answers hidden from it (R²)."
    )


def _exclusion(options: StudyOptions) -> list[Any]:
    sentences = []
    if options.visit:
        kept = joined([f"{name} = {value}" for name, value in options.visit])
        sentences.append(f"Only one visit is analysed: {kept}.")
    if options.doubled is not None:
        which = {"first": "the first is used", "last": "the last is used", "leave-out": "all are left out"}
        sentences.append(f"Of several rows of one participant, {which[options.doubled]}.")
    if options.without_id == "leave-out":
        sentences.append("Rows without an id are left out.")
    return [" ".join(sentences)] if sentences else []


def _missing(options: StudyOptions, items: Sequence[Item]) -> list[Any]:
    codes = [*options.missing_codes, *(code for item in items for code in item.missing_codes)]
    named = ", ".join(dict.fromkeys(map(number, codes)))
    sentences = [
        "Missing answers are left out of the fit, and not imputed. Participants without any answer are not "
        "fitted and get no scores."
    ]
    if named:
        sentences.append(f"Values that mean no answer: {named}.")
    if options.not_asked == "lowest":
        sentences.append(
            "Questions that an earlier answer rules out count as answered with the lowest answer."
        )
    if options.confounds:
        mean = "replaced by the mean of the sample"
        refused = "not accepted: such participants must be completed or excluded, which is a deviation"
        sentences.append(f"Missing confounds are {mean if options.missing_confounds == 'mean' else refused}.")
    return [" ".join(sentences)]
