"use strict";
(() => {
  const found = (id) => document.getElementById(id);
  const known = JSON.parse(found("arithmetic").textContent);
  const form = found("form");
  const sum = (values) => values.reduce((total, value) => total + value, 0);
  const dot = (a, b) => sum(a.map((value, at) => value * b[at]));

  // Each answer minus the item's lowest, in the model's units; null if missing.
  function answers() {
    return known.items.map((item, at) => {
      const field = form.elements.namedItem(`i${at}`);
      const text = field.value.trim();
      const value = Number(text);
      if (text === "" || !(value >= item.low && value <= item.high)) return null;
      const keyed = item.reversed ? Math.min(Math.max(item.low + item.high - value, item.low), item.high) : value;
      return (keyed - item.low) * known.scale[at];
    });
  }

  // The columns of the confounds, each between 0 and 1; null if one is missing that may not be.
  function design() {
    const columns = [];
    for (const [at, confound] of known.confounds.entries()) {
      const text = found(`c${at}`).value.trim();
      const missing = text === "" || !Number.isFinite(Number(text));
      if (missing && !known.fill) return null;
      if (confound.categories) {
        columns.push(...confound.categories.map((_, kind) => (missing ? confound.shares[kind] : Number(kind === Number(text)))));
      } else {
        const value = Math.min(Math.max(missing ? confound.mean : Number(text), confound.low), confound.high);
        const x = (value - confound.low) / (confound.high - confound.low);
        columns.push(x, 1 - x);
      }
    }
    if (known.intercept) columns.push(1);
    return columns;
  }

  // min ½wᵀHw − pᵀw + penalty over 0 ≤ w ≤ top with every reconstructed answer inside its range: coordinate
  // descent, with a multiplier for each answer at its upper bound (augmented Lagrangian).
  function solve(given, columns) {
    const Q = known.loadings;
    const k = Q.length;
    const offset = given.map((_, j) => sum(columns.map((value, c) => value * known.offsets[c][j])));
    const asked = [...given.keys()].filter((j) => given[j] !== null);
    const H = Q.map((a) => Q.map((b) => sum(asked.map((j) => a[j] * b[j]))));
    const p = Q.map((a) => sum(asked.map((j) => a[j] * (given[j] - offset[j]))));
    const top = known.top === null ? Infinity : known.top;
    const room = known.room === null ? null : known.room.map((highest, j) => Math.max(highest - offset[j], 0));
    const grouped = known.penalty === "l21";
    const linear = known.penalty === "l1" ? known.beta : 0;
    const w = new Array(k).fill(0);
    const R = given.map(() => 0);
    const multiplier = given.map(() => 0);
    const stiff = Q.map((a) => sum(a.map((value) => value * value)));
    let sigma = 0;

    if (grouped) {
      const pull = p.map((value) => Math.max(value, 0));
      const length = Math.sqrt(dot(pull, pull));
      if (length <= known.beta) return w;
      const way = pull.map((value) => value / length);
      const bend = Math.max(dot(way, H.map((row) => dot(row, way))), 1e-12);
      way.forEach((value, r) => { w[r] = Math.min((value * (length - known.beta)) / bend, top); });
      R.forEach((_, j) => { R[j] = sum(w.map((value, r) => value * Q[r][j])); });
    }
    const ridge = () => {
      if (grouped) return known.beta / Math.max(Math.sqrt(dot(w, w)), 1e-9);
      return known.penalty === "l2" ? known.beta : 0;
    };
    function descend() {
      for (let sweep = 0; sweep < 20000; sweep += 1) {
        const bent = ridge();
        let most = 0;
        for (let r = 0; r < k; r += 1) {
          let gradient = dot(H[r], w) - p[r] + linear + bent * w[r];
          if (sigma > 0) {
            gradient += sum(R.map((value, j) => Q[r][j] * Math.max(0, multiplier[j] + sigma * (value - room[j]))));
          }
          const curvature = Math.max(H[r][r] + bent + sigma * stiff[r], 1e-12);
          const next = Math.min(Math.max(w[r] - gradient / curvature, 0), top);
          const step = next - w[r];
          if (step !== 0) {
            w[r] = next;
            R.forEach((_, j) => { R[j] += step * Q[r][j]; });
          }
          most = Math.max(most, Math.abs(step));
        }
        if (most < 1e-12) break;
      }
    }
    descend();
    if (room !== null && R.some((value, j) => value > room[j])) {
      sigma = 1;
      for (let round = 0; round < 2000; round += 1) {
        descend();
        let most = 0;
        R.forEach((value, j) => {
          const next = Math.max(0, multiplier[j] + sigma * (value - room[j]));
          most = Math.max(most, Math.abs(next - multiplier[j]));
          multiplier[j] = next;
        });
        if (most < 1e-9) break;
      }
    }
    return w;
  }

  function between(x, knots, values) {
    const last = knots.length - 1;
    if (x >= knots[last]) return values[last];
    const at = Math.max(knots.findIndex((knot) => knot > x) - 1, 0);
    const share = (x - knots[at]) / (knots[at + 1] - knots[at]);
    return values[at] + share * (values[at + 1] - values[at]);
  }

  function say(text, shown) {
    found("status").textContent = text;
    found("profile").hidden = !shown;
  }

  function show() {
    const given = answers();
    const number = given.filter((answer) => answer !== null).length;
    const columns = design();
    if (number === 0) return say("No question is answered yet.", false);
    if (columns === null) return say("Fill in the fields at the top of the page to see the profile.", false);
    const left = given.length - number;
    const solved = solve(given, columns);
    const highest = known.top === null ? Math.max(1, ...solved) : known.top;
    [...found("profile").tBodies[0].rows].forEach((row, r) => {
      const score = solved[known.place[r]];
      const low = Math.max(score + between(score, known.knots[r], known.below[r]), 0);
      const high = Math.min(score + between(score, known.knots[r], known.above[r]), highest);
      row.dataset.score = score.toFixed(6);
      row.cells[2].textContent = score.toFixed(2);
      row.cells[3].textContent = left === 0 ? `${low.toFixed(2)}–${high.toFixed(2)}` : "–";
      const [bar, line] = row.querySelectorAll(".bar i, .bar b");
      bar.style.width = `${(100 * score) / highest}%`;
      line.hidden = left > 0;
      line.style.left = `${(100 * low) / highest}%`;
      line.style.width = `${(100 * (high - low)) / highest}%`;
    });
    const all = `All ${given.length} questions are answered.`;
    const some = `${number} of ${given.length} questions are answered; the profile is based on these. Intervals are shown once all are answered.`;
    return say(left === 0 ? all : some, true);
  }

  form.addEventListener("input", show);
  form.addEventListener("reset", () => setTimeout(show));
  form.addEventListener("submit", (event) => event.preventDefault());
  form.reset();
  show();
})();
