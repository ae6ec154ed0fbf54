"""Searches by the names of all their settings, whether they are the search's own or the model's."""

from icqf import ICQF, ICQFCV


def search_for(ks, **options):
    """A search that fits every candidate in every fold, unless `n_repeats` says otherwise."""
    options = {"n_repeats": 1} | options
    own = ICQFCV().get_params(deep=False)
    model = ICQF(**{name: value for name, value in options.items() if name not in own})
    return ICQFCV(model, n_components=ks, **{name: value for name, value in options.items() if name in own})
