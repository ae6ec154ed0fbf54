"""Hidden answers of a one-scale questionnaire that are mostly zeros: ICQF against a graded model.

Run: python benchmarks/graded_model.py      (one core, about a minute)

Both models are fitted to half of the participants of the PHQ-9 (NHANES); each answer of the other half is
hidden in turn and predicted from the other eight. The graded model is one normal factor behind the answers
(polychoric correlations and thresholds), whose expected answer is taken. All settings are below; none was
changed after a look at the results.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import norm
from threadpoolctl import threadpool_limits

from icqf import ICQF, ICQFCV
from icqf.baselines import FactorAnalysis
from icqf.datasets import load_phq9

SEED = 0
POINTS = np.linspace(-5, 5, 81)  # at which the factor is integrated


def graded(training: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Expected answer (n, m) to each item given the others, by one normal factor learned in training."""
    values = np.arange(int(training.max()) + 1)
    loading = FactorAnalysis(1, correlation="polychoric").fit(training).loadings_[:, 0]
    loading *= np.sign(loading.sum())
    below = np.stack([(training <= value).mean(axis=0) for value in values[:-1]], axis=1)
    cuts = np.pad(norm.ppf(below), ((0, 0), (1, 1)), constant_values=((0, 0), (-np.inf, np.inf)))
    spread = np.sqrt(1 - loading**2)
    z = (cuts[:, :, None] - (loading[:, None] * POINTS)[:, None, :]) / spread[:, None, None]
    chance = np.diff(norm.cdf(z), axis=1)  # item, answer, point
    expected = np.einsum("mvp,v->mp", chance, values)
    given = np.log(np.maximum(chance, 1e-300))
    each = given[np.arange(others.shape[1]), others.astype(int)]  # participant, item, point
    rest = each.sum(axis=1)[:, None, :] - each + norm.logpdf(POINTS)
    weight = np.exp(rest - rest.max(axis=2, keepdims=True))
    return (weight * expected).sum(axis=2) / weight.sum(axis=2)


def factorized(training: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Reconstruction (n, m) of each answer from the others, by ICQF with its defaults."""
    model = ICQFCV(ICQF(item_range=(0, 3)), random_state=SEED).fit(training).best_estimator_
    found = np.empty(others.shape)
    for item in range(others.shape[1]):
        seen = others.copy()
        seen[:, item] = np.nan
        found[:, item] = model.inverse_transform(model.transform(seen))[:, item]
    return found


def main() -> None:
    """Print the root mean square error, in points of the answer scale."""
    answers = load_phq9().keyed_answers().dropna().to_numpy(float)
    order = np.random.default_rng(SEED).permutation(len(answers))
    training, others = np.array_split(answers[order], 2)
    print(f"{len(training)} and {len(others)} participants; {np.mean(answers == 0):.0%} of answers are 0")
    every = {
        "graded model, one factor": graded(training, others),
        "ICQF, defaults": factorized(training, others),
        "mean of the item": np.broadcast_to(training.mean(axis=0), others.shape),
    }
    for name, found in every.items():
        error = others - found
        print(
            f"{name}: {np.sqrt(np.mean(error**2)):.3f} root mean square, {np.abs(error).mean():.3f} absolute"
        )


if __name__ == "__main__":
    with threadpool_limits(limits=1):
        main()
