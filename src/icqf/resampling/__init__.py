"""Folds, splits, halves, bootstrap, the error on hidden answers, and the matching of factors."""
