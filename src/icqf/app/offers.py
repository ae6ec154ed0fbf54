"""What can be done with a study besides fitting it: one entry for each further analysis.

The forms are made from the records of options in `icqf.workflow.options`; an entry says which options a form
shows, and in which order.
"""

from __future__ import annotations

from dataclasses import dataclass

from icqf.data.settings import Settings
from icqf.workflow.options import (
    DiagnosisOptions,
    InvarianceOptions,
    LongitudinalOptions,
    MetaOptions,
    NormsOptions,
    PersonOptions,
    PlanOptions,
    ShortFormOptions,
    StabilityOptions,
    StudyOptions,
)

_MODEL = (
    *("rule", "n_splits", "n_repeats", "item_weight", "intercept", "missing_confounds", "smallest_category"),
    *("n_init", "tol", "max_iter"),
)
_RUNNING = ("jobs", "seed")
_EVALUATION = ("methods", "splits", "n_components", "beta")
_OTHER_FILE = ("id", "missing_codes", "visit")


@dataclass(frozen=True)
class Offer:
    """A further analysis as the app offers it."""

    title: str
    question: str  # that it answers
    about: str
    kind: type[Settings]  # the options of its command
    page: str  # among its results
    button: str  # what starts it
    usual: tuple[str, ...]  # options that are shown
    advanced: tuple[str, ...]  # options that are collapsed
    # What it can begin with: "results" of a fit, a checked "study", one that may have "visits", the "files"
    # of several questionnaires, or a "model" file.
    needs: tuple[str, ...] = ("results",)
    of_study: tuple[
        str, ...
    ] = ()  # further collapsed options where it begins with a study that is not fitted


# By command, in the order in which they are shown.
OFFERS: dict[str, Offer] = {
    "invariance": Offer(
        "Groups",
        "Are the factors the same in every group?",
        "The model is refitted in each group, such as girls and boys, or sites. Factors are rated same, "
        "similar or different; items that load differently, or are answered higher or lower at equal scores, "
        "are listed.",
        InvarianceOptions,
        "groups.html",
        "Compare the groups",
        ("by",),
        ("groups", "weights", "permutations", "bootstrap", "bands", *_RUNNING),
    ),
    "shortform": Offer(
        "Short form",
        "Which few items give nearly the same scores?",
        "Chooses the items that best recover the scores, measures how well (on participants that were not "
        "used), and writes a questionnaire to fill in that scores itself, offline, in any browser.",
        ShortFormOptions,
        "form.html",
        "Choose the items",
        ("max_items", "correlation", "title"),
        ("keep", "drop", "minutes", "max_minutes", "groups", "adaptive_width", "seed"),
    ),
    "norms": Offer(
        "Norms",
        "Is a score high for somebody of this age and sex?",
        "Learns the percentile of each score among participants alike. The norms can then be used on pages "
        "about one person, and by icqf score.",
        NormsOptions,
        "norms.html",
        "Learn the norms",
        ("by", "sample"),
        ("answers", "weights", *_OTHER_FILE),
    ),
    "person": Offer(
        "One person",
        "What do the answers of one person say?",
        "A sheet of A4 to read together: scores with their likely range, the answers that raise them, "
        "answers that do not fit the rest, and the change since the visit before. It holds one person’s "
        "answers, and is never part of the report.",
        PersonOptions,
        "",
        "Make the page",
        ("who", "informant", "norms"),
        ("answers", "visit_column", "id"),
    ),
    "plan": Offer(
        "Plan a study",
        "How many participants does a new study need?",
        "Says how likely a second study of each size finds the same factors, from how well parts of this "
        "study agree, with a sentence for a grant proposal.",
        PlanOptions,
        "plan.html",
        "Plan the study",
        ("sizes", "repeats"),
        _RUNNING,
        ("results", "study", "model"),
        of_study=("n_components", "beta", *_MODEL),
    ),
    "longitudinal": Offer(
        "Visits",
        "Do scores change over visits, and are the factors the same at each?",
        "For a file with one row per visit: one set of factors for all visits, a score at every visit, and a "
        "test whether the factors themselves change.",
        LongitudinalOptions,
        "report.html",
        "Analyse the visits",
        ("id", "age", "confounds", "bins"),
        (
            *("n_components", "beta", "missing_codes", "binning", "within_bin", "smoothness", "permutations"),
            *("weigh_nonresponse", *_MODEL, "bootstrap", *_RUNNING),
        ),
        ("visits",),
    ),
    "stability": Offer(
        "Stability",
        "Would fewer participants have given the same factors?",
        "Fits parts of the study again and again, and compares icqf with other methods. This takes minutes "
        "to hours.",
        StabilityOptions,
        "stability.html",
        "Fit the parts",
        _EVALUATION,
        ("labels", "sizes", *_MODEL, *_RUNNING),
        ("results", "study"),
    ),
    "diagnosis": Offer(
        "Diagnoses",
        "How well do the scores predict diagnoses?",
        "For columns coded 1 and 0: scores of several methods, learned from some participants, predict the "
        "diagnoses of the others. This takes minutes to hours.",
        DiagnosisOptions,
        "diagnosis.html",
        "Predict the diagnoses",
        ("labels", *_EVALUATION),
        ("sizes", *_MODEL, *_RUNNING),
        ("results", "study"),
    ),
    "batch": Offer(
        "Each questionnaire",
        "What are the factors of each questionnaire?",
        "Fits every questionnaire on its own, with a report for each and a table of all.",
        StudyOptions,
        "summary.html",
        "Fit all questionnaires",
        ("confounds", "id"),
        ("n_components", "beta", "missing_codes", *_MODEL, "bootstrap", "figures", *_RUNNING),
        ("files",),
    ),
    "meta": Offer(
        "Across questionnaires",
        "What do the questionnaires have in common?",
        "Fits every questionnaire, and then finds the factors that their scores share. Participants may lack "
        "some questionnaires.",
        MetaOptions,
        "meta.html",
        "Fit and combine",
        ("confounds", "id"),
        ("n_components", "beta", "n_meta", "meta_beta", "compare", "missing_codes", *_MODEL, *_RUNNING),
        ("files",),
    ),
}
