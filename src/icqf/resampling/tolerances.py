"""How tightly fits that are compared with each other are solved, each with the reason.

A fit that a user gets ends by its certificate (`ICQF.tol`); these end when their moves have settled.
"""

SEARCH = 5e-3  # candidates differ in their errors by more than the rest of the way would change
RESAMPLE = 2e-3  # intervals' widths come within 3 % of those of fits that are run to the end
SETTLE = 5e-4  # the start that all resamples share: it must not add to their spread
MAX_ITER = 300  # of fits on parts of the sample, where a slow one may end early without harm
