"""State instrument, sample, licence and citation in a model file, and its card; nothing is refitted."""

from __future__ import annotations

import os
from dataclasses import replace

from icqf.analyses.norms import Norms
from icqf.data.about import About
from icqf.data.settings import parameter_error
from icqf.io.codebook import read_about
from icqf.io.model_file import StoredModel, read_any_model, write_battery_model, write_model
from icqf.models.icqf import ICQF
from icqf.models.meta import MetaICQF
from icqf.report import Document, model_card
from icqf.workflow.new_answers import load_model, model_file


def describe_model(
    model: str | os.PathLike[str], *, about: str | os.PathLike[str] | None = None, **fields: str
) -> About:
    """State what is known about a model in its file, and return all statements.

    Parameters
    ----------
    model : path
        A model file, or its results folder.
    about : path, optional
        TOML file with fields of `icqf.data.About`.
    **fields
        The same by name; they take precedence, and an empty text takes a statement back.

    Examples
    --------
    >>> import tempfile
    >>> from icqf import ICQF
    >>> from icqf.datasets import load_demo
    >>> from icqf.workflow import describe_model
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ICQF(2).fit(load_demo().select(["q00*"])).save(f"{folder}/model.icqf")
    ...     describe_model(f"{folder}/model.icqf", licence="cc-by-4.0").licence
    'CC-BY-4.0'
    """
    path, given = model_file(model), About() if about is None else read_about(about)
    load_model(path)  # refuses a damaged file, which must not be written again
    stored = read_any_model(path)

    def described(one: StoredModel) -> StoredModel:
        stated = one.codebook.about.updated(given).changed(fields)
        return replace(one, codebook=replace(one.codebook, about=stated))

    if isinstance(stored, StoredModel):
        new = described(stored)
        if new != stored:
            write_model(path, new)
        return new.codebook.about
    refuse_instrument(given.changed(fields))
    instruments, meta, n_participants = stored
    models = {name: described(one) for name, one in instruments.items()}
    write_battery_model(path, models, meta, n_participants)
    return next(iter(models.values())).codebook.about


def refuse_instrument(about: About) -> None:
    """Refuse statements about one instrument where there are several."""
    for name, text in vars(about).items():
        if text and name.startswith("instrument"):
            raise parameter_error(name, " is for one instrument, and this is a battery; leave it out.")


def card_of(
    model: str | os.PathLike[str], *, top: int = 5, norms: str | os.PathLike[str] | None = None
) -> Document:
    """Return the card of a model file or results folder, with the reference sample of its norms if given."""
    path = model_file(model)
    fitted = load_model(path)
    if not isinstance(fitted, (ICQF, MetaICQF)):
        fitted = ICQF.load(path)  # raises an error that names the kind of model
    reference = ""
    if norms is not None:
        if not isinstance(fitted, ICQF):
            raise parameter_error("norms", " is for the model of one questionnaire; leave it out.")
        reference = Norms.load(norms).for_model(fitted).reference
    return model_card(fitted, file=path.name, top=top, norms=reference)
