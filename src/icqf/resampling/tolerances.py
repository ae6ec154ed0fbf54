"""Tolerances of fits that are only compared with each other; final fits end by their certificate."""

SEARCH = 5e-3  # further iterations would change errors by less than candidates differ
RESAMPLE = 2e-3  # widths of intervals are within 3 % of those of converged fits
SETTLE = 5e-4  # the common start of all resamples must not add to their spread
MAX_ITER = 300  # of fits to parts of the sample
