"""The model in plain loops: slow, obvious, and written from its definition rather than from the package.

    F(W, Q) = Σ_i ω_i ( ½ Σ_j O_ij (X_ij − R_ij)² + β ‖W_i‖ ) + βγ ‖Q‖,    R = [W, C] Qᵀ,
    0 ≤ W ≤ top,  0 ≤ Q_j ≤ ceiling_j,  R_ij ≤ b_j,                          γ = (Σω / m) max b

W is (n, k), Q is (m, k + c), and a missing answer is NaN.
"""

from dataclasses import dataclass

import numpy as np

BISECTIONS = 200


@dataclass(frozen=True)
class Plain:
    """A problem. `top`, `ceiling` and `b_bound` are infinite where a bound is off."""

    X: np.ndarray  # (n, m), 0 is the lowest answer
    b: np.ndarray  # (m,)
    C: np.ndarray  # (n, c)
    omega: np.ndarray  # (n,)
    beta: float
    kind: str
    top: float
    ceiling: np.ndarray  # (m,)
    b_bound: np.ndarray  # (m,)

    @classmethod
    def of(
        cls,
        answers,
        low,
        high,
        *,
        beta,
        confounds=None,
        weights=None,
        kind="l1",
        score_max=1.0,
        loading_max="item_range",
        reconstruction_max="item_range",
        intercept=True,
        scale=1.0,
    ):
        """From answers in their own units; `confounds` are columns in [0, 1] without the ones.
        Items are counted in their own units times `scale`."""
        M = np.asarray(answers, dtype=float)
        n, m = M.shape
        low, high = np.broadcast_to(low, m).astype(float), np.broadcast_to(high, m).astype(float)
        columns = [] if confounds is None else [np.asarray(confounds, dtype=float)]
        if intercept:
            columns.append(np.ones((n, 1)))
        C = np.concatenate(columns, axis=1) if columns else np.zeros((n, 0))
        b = (high - low) * scale
        unbounded = np.full(m, np.inf)
        if loading_max == "item_range":
            ceiling = b
        else:
            ceiling = unbounded if loading_max is None else np.full(m, float(loading_max)) * scale
        return cls(
            X=(M - low) * scale,
            b=b,
            C=C,
            omega=np.ones(n) if weights is None else np.asarray(weights, dtype=float),
            beta=beta,
            kind=kind,
            top=np.inf if score_max is None else score_max,
            ceiling=ceiling,
            b_bound=unbounded if reconstruction_max is None else b,
        )

    @property
    def gamma(self):
        return self.omega.sum() / self.X.shape[1] * self.b.max()

    def reconstruct(self, W, Q):
        return np.concatenate([W, self.C], axis=1) @ Q.T

    def norm(self, row):
        if self.kind == "l1":
            return np.abs(row).sum()
        if self.kind == "l2":
            return 0.5 * (row**2).sum()
        return np.sqrt((row**2).sum())

    def objective(self, W, Q):
        R = self.reconstruct(W, Q)
        total = 0.0
        for i in range(len(W)):
            seen = ~np.isnan(self.X[i])
            half = 0.5 * ((self.X[i] - R[i])[seen] ** 2).sum()
            total += self.omega[i] * (half + self.beta * self.norm(W[i]))
        for j in range(len(Q)):
            total += self.beta * self.gamma * self.norm(Q[j])
        return total

    def violation(self, W, Q):
        """The largest violation of any bound; not positive when all hold."""
        R = self.reconstruct(W, Q)
        return max(
            (-W).max(),
            (W - self.top).max(),
            (-Q).max(),
            (Q - self.ceiling[:, None]).max(),
            (-R).max(),
            (R - self.b_bound).max(),
        )

    def score_steps(self, W, Q):
        """Exact step and gain of every score by itself: two arrays (n, k)."""
        R = self.reconstruct(W, Q)
        steps, gains = np.zeros_like(W), np.zeros_like(W)
        for i in range(W.shape[0]):
            seen = ~np.isnan(self.X[i])
            for r in range(W.shape[1]):
                q, w = Q[:, r], W[i, r]
                highest = min(self.top, w + room(self.b_bound - R[i], q))
                error = self.X[i, seen] - R[i, seen] + w * q[seen]  # what is left for this score
                others = np.delete(W[i], r)
                new, gain = self.best(w, highest, q[seen], error, np.ones(seen.sum()), others, self.beta)
                steps[i, r], gains[i, r] = abs(new - w), self.omega[i] * gain
        return steps, gains

    def loading_steps(self, W, Q):
        """Exact step and gain of every loading by itself: two arrays (m, K)."""
        R, A = self.reconstruct(W, Q), np.concatenate([W, self.C], axis=1)
        steps, gains = np.zeros_like(Q), np.zeros_like(Q)
        for j in range(Q.shape[0]):
            seen = ~np.isnan(self.X[:, j])
            for r in range(Q.shape[1]):
                a, q = A[:, r], Q[j, r]
                highest = min(self.ceiling[j], q + room(self.b_bound[j] - R[:, j], a))
                error = self.X[seen, j] - R[seen, j] + q * a[seen]
                new, gain = self.best(
                    q, highest, a[seen], error, self.omega[seen], np.delete(Q[j], r), self.beta * self.gamma
                )
                steps[j, r], gains[j, r] = abs(new - q), gain
        return steps, gains

    def shares(self, W, Q):
        """Share of each item's variance that each factor and confound column explains (m, K), and of all
        items' variance together (K,): the covariance with the answers of what it adds to them, over those
        who answered the item."""
        A = np.concatenate([W, self.C], axis=1)
        products, squares = np.zeros_like(Q), np.zeros(len(Q))
        for j in range(len(Q)):
            seen = [i for i in range(len(self.X)) if not np.isnan(self.X[i, j])]
            size = sum(self.omega[i] for i in seen)
            x_mean = sum(self.omega[i] * self.X[i, j] for i in seen) / size
            squares[j] = sum(self.omega[i] * (self.X[i, j] - x_mean) ** 2 for i in seen)
            for r in range(Q.shape[1]):
                part = [A[i, r] * Q[j, r] for i in seen]
                mean = sum(self.omega[i] * value for i, value in zip(seen, part, strict=True)) / size
                products[j, r] = sum(
                    self.omega[i] * (self.X[i, j] - x_mean) * (value - mean)
                    for i, value in zip(seen, part, strict=True)
                )
        return products / squares[:, None], products.sum(axis=0) / squares.sum()

    def units(self, W, Q):
        """What steps are measured by: the score's bound (1) and the item's range; without bounds, where the
        scale of a factor is free, its highest score and its highest loading."""
        bounded = np.isfinite(self.top), np.isfinite(self.ceiling).all()
        scores = np.ones(W.shape[1]) if bounded[0] else np.maximum(W.max(axis=0), 1e-12)
        loadings = self.b[:, None] if bounded[1] else np.maximum(Q.max(axis=0), 1e-12)
        return scores, loadings

    def best(self, x, highest, a, error, omega, others, lam):
        """The t in [0, highest] that minimises ½Σω(error − a t)² + λ‖(t, others)‖, and its gain over x."""

        def value(t):
            return 0.5 * (omega * (error - a * t) ** 2).sum() + lam * self.norm(np.append(others, t))

        def slope(t):
            smooth = (omega * a * (a * t - error)).sum()
            if self.kind == "l1":
                return smooth + lam
            if self.kind == "l2":
                return smooth + lam * t
            length = np.sqrt(t**2 + (others**2).sum())
            return smooth + lam * (t / length if length > 0 else 1.0)

        highest = max(highest, x)  # x is allowed already
        if not (omega * a**2).sum() > 0 and lam == 0:
            return x, 0.0  # nothing depends on it
        low, high = 0.0, highest
        if np.isinf(high):
            high = max(x, 1.0)
            while slope(high) < 0:
                high *= 2
        if slope(low) >= 0:
            new = low
        elif slope(high) <= 0:
            new = high
        else:
            for _ in range(BISECTIONS):
                middle = (low + high) / 2
                if slope(middle) > 0:
                    high = middle
                else:
                    low = middle
                if high - low <= 1e-15 * high:
                    break
            new = (low + high) / 2
        return new, value(x) - value(new)


def room(slack, a):
    """How far a coordinate with the effects `a` can rise before one of the slacks is used up."""
    rising = a > 0
    return max(0.0, (slack[rising] / a[rising]).min()) if rising.any() else np.inf


def feasible_moves(plain, W, Q, rng, count):
    """Random moves of one number inside all bounds: pairs (W, Q) that differ from the given in one place."""
    R, A = plain.reconstruct(W, Q), np.concatenate([W, plain.C], axis=1)
    for _ in range(count):
        W_new, Q_new = W.copy(), Q.copy()
        share = rng.random() ** 3  # most tries are short, some go all the way
        if rng.random() < 0.5 and W.size:
            i, r = rng.integers(W.shape[0]), rng.integers(W.shape[1])
            up = min(plain.top - W[i, r], room(plain.b_bound - R[i], Q[:, r]), 10.0)
            W_new[i, r] += share * (up if rng.random() < 0.5 else -W[i, r])
        else:
            j, r = rng.integers(Q.shape[0]), rng.integers(Q.shape[1])
            up = min(plain.ceiling[j] - Q[j, r], room(plain.b_bound[j] - R[:, j], A[:, r]), 10.0 * plain.b[j])
            Q_new[j, r] += share * (up if rng.random() < 0.5 else -Q[j, r])
        yield W_new, Q_new
