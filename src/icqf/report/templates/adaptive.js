"use strict";
// Which question to ask next, and what the answers given say: the arithmetic of icqf.analyses.AdaptiveForm.
// `minimise(H, p, w, beta)` solves for the scores w of one person, in place.
const adaptiveForm = (known, top, minimise) => {
  const numbers = ({ low, step, size, bytes }) => {
    const text = atob(bytes);
    const n = text.length / size / low.length;
    return low.map((first, row) => Float64Array.from({ length: n }, (_, i) => {
      const at = (row * n + i) * size;
      return first + step[row] * (text.charCodeAt(at) + (size > 1 ? 256 * text.charCodeAt(at + 1) : 0));
    }));
  };
  const [scores, others, residuals] = [known.scores, known.others, known.residuals].map(numbers);
  const n = scores[0].length;
  const k = scores.length;
  const total = (values) => values.reduce((sum, value) => sum + value, 0);

  // Scores (k arrays of n) of the full form, from what the answers contribute (k arrays of n).
  function solved(pull, start) {
    const found = start.map((row) => Float64Array.from(row));
    const p = new Float64Array(k);
    const w = new Float64Array(k);
    for (let i = 0; i < n; i += 1) {
      for (let r = 0; r < k; r += 1) { p[r] = pull[r][i]; w[r] = found[r][i]; }
      minimise(known.gram, p, w, known.beta);
      for (let r = 0; r < k; r += 1) found[r][i] = w[r];
    }
    return found;
  }
  const firstPull = others.map((row, r) => row.map((value, i) => value + total(residuals.map((own, j) => known.pulls[r][j] * own[i]))));
  const firstFull = solved(firstPull, others.map(() => new Float64Array(n)));

  // By item and answer, its probability for each simulated person; kept until the confounds change.
  let kept = { key: null };
  function chancesFor(columns) {
    const key = columns.join();
    if (kept.key === key) return kept;
    const offset = residuals.map((_, j) => total(columns.map((value, c) => value * known.offsets[c][j])));
    const chances = known.chances.map((table, j) => {
      const last = table.length - 1;
      const found = table[0].map(() => new Float64Array(n));
      for (let i = 0; i < n; i += 1) {
        let expected = offset[j];
        for (let r = 0; r < k; r += 1) expected += scores[r][i] * known.loadings[r][j];
        const place = Math.min(Math.max(expected, 0), 1) * last;
        const first = Math.min(Math.trunc(place), last - 1);
        const along = place - first;
        found.forEach((row, c) => { row[i] = (1 - along) * table[first][c] + along * table[first + 1][c]; });
      }
      return found;
    });
    kept = { key, offset, chances };
    return kept;
  }

  // Linear interpolation, the nearest value outside.
  function at(x, places, values) {
    let high = places.findIndex((place) => place > x);
    if (high === 0) return values[0];
    if (high < 0) return values[values.length - 1];
    const share = (x - places[high - 1]) / (places[high] - places[high - 1]);
    return values[high - 1] + share * (values[high] - values[high - 1]);
  }

  function interval(values, weights) {
    const tail = (1 - known.covered) / 2;
    const order = [...values.keys()].sort((a, b) => values[a] - values[b]);
    const ranked = order.map((i) => values[i]);
    let sum = 0;
    let bottom = 0;
    let highest = 0;
    const middles = order.map((i) => {
      sum += weights[i];
      if (values[i] <= 1e-9) bottom += weights[i];
      if (values[i] >= top - 1e-9) highest += weights[i];
      return sum - weights[i] / 2;
    });
    const [atBottom, atTop] = [bottom >= tail, highest >= tail];
    return [
      atBottom ? 0 : at(atTop ? 2 * tail : tail, middles, ranked),
      atTop ? top : at(1 - (atBottom ? 2 * tail : tail), middles, ranked),
    ];
  }

  // `given`: for each item an answer from 0 to 1, or null; `left`: items that may be asked.
  return function state(given, columns, left, width) {
    const { offset, chances } = chancesFor(columns);
    const logs = new Float64Array(n);
    const pull = firstPull.map((row) => Float64Array.from(row));
    given.forEach((answer, j) => {
      if (answer === null) return;
      const row = chances[j][Math.floor(answer * (chances[j].length - 1) + 0.5)];
      for (let i = 0; i < n; i += 1) {
        logs[i] += Math.log(row[i]);
        for (let r = 0; r < k; r += 1) pull[r][i] += known.pulls[r][j] * (answer - offset[j] - residuals[j][i]);
      }
    });
    const most = logs.reduce((a, b) => Math.max(a, b));
    const raw = logs.map((value) => Math.exp(value - most));
    const sum = total(raw);
    const weights = raw.map((value) => value / sum);
    const full = given.every((answer) => answer === null) ? firstFull : solved(pull, firstFull);
    const expected = full.map((row) => total(row.map((value, i) => value * weights[i])));
    const ends = full.map((row) => interval(row, weights));
    const widths = ends.map(([low, high]) => high - low);
    const excess = (values) => total(values.map((value) => Math.max(value - width, 0)));
    const missing = excess(widths);
    // A factor none of whose own items is answered would be inferred from the others alone: it gets one of them.
    const inferred = known.own.map((items) => !items.some((j) => given[j] !== null));
    const own = known.own.flatMap((items, r) => (inferred[r] ? items.filter((j) => left.includes(j)) : []));
    const result = { expected, ends, widths, inferred, next: own.length > 0 ? own[0] : null, reached: missing <= 0 };
    if (missing <= 0 || left.length === 0) return result;

    const ratio = full.map((row, r) => {
      const square = total(row.map((value, i) => value * value * weights[i]));
      return widths[r] / Math.max(Math.sqrt(Math.max(square - expected[r] ** 2, 0)), 1e-12);
    });
    let least = Infinity;
    let best = null;
    for (const j of left) {
      let after = 0;
      chances[j].forEach((row, c) => {
        const answer = c / (chances[j].length - 1) - offset[j];
        const first = new Float64Array(k);
        const second = new Float64Array(k);
        let chance = 0;
        for (let i = 0; i < n; i += 1) {
          const joint = row[i] * weights[i];
          chance += joint;
          for (let r = 0; r < k; r += 1) {
            const now = full[r][i];
            const inside = now > 1e-9 && now < top - 1e-9;
            const then = inside ? now + known.gains[r][j] * (answer - residuals[j][i]) : now;
            first[r] += joint * then;
            second[r] += joint * then * then;
          }
        }
        const then = ratio.map((value, r) => value * Math.sqrt(Math.max(second[r] / chance - (first[r] / chance) ** 2, 0)));
        after += chance * excess(then);
      });
      after = Math.round(after * 1e9) / 1e9;
      if (after < least) { least = after; best = j; }
    }
    return missing - least < known.least ? result : { ...result, next: best };
  };
};
