"""Models that are fitted: the statement of a problem, its starts, and what a fitted model knows."""
