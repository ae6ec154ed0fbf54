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

  const top = known.top === null ? Infinity : known.top;

  // min ½wᵀHw − pᵀw + penalty over 0 ≤ w ≤ top by coordinate descent, in place; `bound` adds to slope and curvature.
  function descend(H, p, w, beta, bound) {
    const k = w.length;
    const linear = known.penalty === "l1" ? beta : 0;
    for (let sweep = 0; sweep < 20000; sweep += 1) {
      let ridge = known.penalty === "l2" ? beta : 0;
      if (known.penalty === "l21") {
        let square = 0;
        for (let r = 0; r < k; r += 1) square += w[r] * w[r];
        ridge = beta / Math.max(Math.sqrt(square), 1e-9);
      }
      let most = 0;
      for (let r = 0; r < k; r += 1) {
        let slope = linear + ridge * w[r] - p[r];
        for (let s = 0; s < k; s += 1) slope += H[r][s] * w[s];
        let curvature = H[r][r] + ridge;
        if (bound) { slope += bound.slope(r); curvature += bound.curvature(r); }
        const next = Math.min(Math.max(w[r] - slope / Math.max(curvature, 1e-12), 0), top);
        const step = next - w[r];
        w[r] = next;
        if (bound && step !== 0) bound.moved(r, step);
        most = Math.max(most, Math.abs(step));
      }
      if (most < 1e-12) break;
    }
  }

  function minimise(H, p, w, beta) {
    if (known.penalty === "l21") {
      const pull = [...p].map((value) => Math.max(value, 0));
      const length = Math.sqrt(dot(pull, pull));
      if (length <= beta) { w.fill(0); return; }
      const way = pull.map((value) => value / length);
      const bend = Math.max(dot(way, H.map((row) => dot(row, way))), 1e-12);
      way.forEach((value, r) => { w[r] = Math.min((value * (length - beta)) / bend, top); });
    }
    descend(H, p, w, beta, null);
  }

  // The scores, with every reconstructed answer inside its range: a multiplier for each answer at its upper bound
  // (augmented Lagrangian).
  function solve(given, columns) {
    const Q = known.loadings;
    const offset = given.map((_, j) => sum(columns.map((value, c) => value * known.offsets[c][j])));
    const asked = [...given.keys()].filter((j) => given[j] !== null);
    const H = Q.map((a) => Q.map((b) => sum(asked.map((j) => a[j] * b[j]))));
    const p = Q.map((a) => sum(asked.map((j) => a[j] * (given[j] - offset[j]))));
    const room = known.room === null ? null : known.room.map((highest, j) => Math.max(highest - offset[j], 0));
    const w = new Array(Q.length).fill(0);
    minimise(H, p, w, known.beta);
    const R = given.map((_, j) => sum(w.map((value, r) => value * Q[r][j])));
    if (room === null || !R.some((value, j) => value > room[j])) return w;
    const multiplier = given.map(() => 0);
    const stiff = Q.map((a) => dot(a, a));
    const bound = {
      slope: (r) => sum(R.map((value, j) => Q[r][j] * Math.max(0, multiplier[j] + value - room[j]))),
      curvature: (r) => stiff[r],
      moved: (r, step) => R.forEach((_, j) => { R[j] += step * Q[r][j]; }),
    };
    for (let round = 0; round < 2000; round += 1) {
      descend(H, p, w, known.beta, bound);
      let most = 0;
      R.forEach((value, j) => {
        const next = Math.max(0, multiplier[j] + value - room[j]);
        most = Math.max(most, Math.abs(next - multiplier[j]));
        multiplier[j] = next;
      });
      if (most < 1e-9) break;
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

  // One row per factor; an interval is null if there is none. `expected` scores of the full form are drawn if known.
  function draw(scores, intervals, expected) {
    const drawn = expected || scores;
    const highest = known.top === null ? Math.max(1, ...drawn, ...intervals.flatMap((ends) => ends || [])) : known.top;
    [...found("profile").tBodies[0].rows].forEach((row, r) => {
      const [score, ends] = [scores[r], intervals[r]];
      const [low, high] = ends || [0, 0];
      row.dataset.score = score.toFixed(6);
      row.dataset.interval = ends === null ? "" : `${low.toFixed(6)} ${high.toFixed(6)}`;
      row.cells[2].textContent = score.toFixed(2);
      if (expected) {
        row.dataset.expected = expected[r].toFixed(6);
        row.cells[3].textContent = expected[r].toFixed(2);
      }
      row.cells[row.cells.length - 1].textContent = ends === null ? "–" : `${low.toFixed(2)}–${high.toFixed(2)}`;
      const [bar, line] = row.querySelectorAll(".bar i, .bar b");
      bar.style.width = `${(100 * drawn[r]) / highest}%`;
      line.hidden = ends === null;
      line.style.left = `${(100 * low) / highest}%`;
      line.style.width = `${(100 * (high - low)) / highest}%`;
    });
  }

  const NOT_YET = "Fill in the fields at the top of the page to see the profile.";

  function show() {
    const given = answers();
    const number = given.filter((answer) => answer !== null).length;
    const columns = design();
    if (number === 0) return say("No question is answered yet.", false);
    if (columns === null) return say(NOT_YET, false);
    const left = given.length - number;
    profile(given, columns);
    const all = `All ${given.length} questions are answered.`;
    const later = known.adaptive ? "" : " Intervals are shown once all are answered.";
    const some = `${number} of ${given.length} questions are answered; the profile is based on these.${later}`;
    return say(left === 0 ? all : some, true);
  }

  // The scores of these answers. If the page knows the full form, what to expect of it, however the questions were
  // asked; if not, the interval around the score of a complete form.
  let kept = null;
  const state = (...of) => { kept = kept || adaptiveForm(known.adaptive, top, minimise); return kept(...of); };
  const shares = (given) => given.map((value, j) => {
    const { low, high } = known.items[j];
    return value === null ? null : value / (known.scale[j] * (high - low));
  });
  function profile(given, columns) {
    const solved = solve(given, columns);
    const scores = known.place.map((at) => solved[at]);
    if (known.adaptive) {
      const { ends, expected } = state(shares(given), columns, [], 1);
      draw(scores, ends, expected);
      return;
    }
    const highest = known.top === null ? Math.max(1, ...scores) : known.top;
    draw(scores, scores.map((score, r) => {
      if (given.includes(null)) return null;
      const [low, high] = [known.below, known.above].map((ends) => score + between(score, known.knots[r], ends[r]));
      return [Math.max(low, 0), Math.min(high, highest)];
    }));
  }

  // One question at a time. `asked` are the questions put so far, in their order; the last one is on the page unless
  // asking has ended.
  const questions = [...form.querySelectorAll(".ask")];
  let asked = [];
  let ended = true;
  let update = show;
  const count = (number, word) => `${number} ${word}${number === 1 ? "" : "s"}`;

  function stepwise() {
    const only = (items) => answers().map((value, j) => (items.includes(j) ? value : null));
    const names = [...found("profile").tBodies[0].rows].map((row) => row.cells[0].textContent);
    const width = () => Math.max(Number(found("width").value) || known.adaptive.width, 0.01);

    function put(focus) {
      const now = ended ? null : asked[asked.length - 1];
      questions.forEach((question, j) => {
        question.classList.toggle("now", j === now);
        question.classList.toggle("given", asked.includes(j) && j !== now);
      });
      for (const id of ["skip", "next"]) found(id).hidden = ended;
      found("back").disabled = asked.length < (ended ? 1 : 2);
      if (now !== null) {
        const fields = [...questions[now].querySelectorAll("input")];
        fields.forEach((field) => { if (field.value === "" && field.type === "radio") field.checked = false; });
        if (focus) (fields.find((field) => field.checked) || fields[0]).focus();
      } else if (focus) found("profile-title").focus();
    }

    // Decide what follows the questions put so far, all of which are answered or skipped.
    function follow(focus) {
      const columns = design();
      const given = only(asked);
      const number = given.filter((answer) => answer !== null).length;
      if (columns === null) {
        ended = true;
        put(false);
        found("next").hidden = false;
        found("progress").textContent = "Fill in the fields at the top of the page, and continue.";
        return say(NOT_YET, false);
      }
      const left = [...questions.keys()].filter((j) => !asked.includes(j));
      const now = state(shares(given), columns, left, width());
      ended = now.next === null;
      if (!ended) asked = [...asked, now.next];
      put(focus);
      const skipped = asked.length - number - (ended ? 0 : 1);
      const sofar = `${count(number, "question")} answered${skipped ? `, ${skipped} skipped` : ""}`;
      if (!ended) {
        const widest = `the widest interval is ${Math.max(...now.widths).toFixed(2)}, and asking stops at ${width().toFixed(2)}`;
        const why = now.reached ? "every interval is narrow enough, but each factor gets a question of its own" : widest;
        found("progress").textContent = `Question ${asked.length}, of at most ${questions.length}. ${sofar}; ${why}.`;
        return say("The profile follows after the last question.", false);
      }
      const why = [
        now.reached ? `Every interval is at most ${width().toFixed(2)} wide.` : null,
        left.length === 0 ? "All questions have been asked." : null,
        "No further question would narrow the intervals noticeably.",
      ].find((text) => text !== null);
      const inferred = names.filter((_, r) => now.inferred[r]).join(", ");
      const aside = inferred && number > 0 ? ` No question of its own was answered for ${inferred}: the score is inferred from the others.` : "";
      found("progress").textContent = `Done: ${sofar}. ${why}${aside}`;
      profile(given, columns);
      return say(number > 0 ? "From the answers given:" : "No question is answered yet.", number > 0);
    }

    function next() {
      const now = asked[asked.length - 1];
      if (!ended && answers()[now] === null) {
        found("progress").textContent = "Choose an answer, or skip the question.";
        return;
      }
      follow(true);
    }
    function skip() {
      questions[asked[asked.length - 1]].querySelectorAll("input").forEach((field) => {
        if (field.type === "radio") field.checked = false;
        else field.value = "";
      });
      follow(true);
    }
    function back() {
      if (!ended) asked = asked.slice(0, -1);
      ended = false;
      found("progress").textContent = `Question ${asked.length} again.`;
      put(true);
      say("The profile follows after the last question.", false);
    }
    // Anew with the answers there are, such as those given with all questions on the page.
    function begin(focus) {
      const given = answers();
      asked = [...questions.keys()].filter((j) => given[j] !== null);
      follow(focus);
    }
    found("next").addEventListener("click", next);
    found("skip").addEventListener("click", skip);
    found("back").addEventListener("click", back);
    form.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && update !== show && !ended && event.target.closest(".ask")) { event.preventDefault(); next(); }
    });
    found("width").addEventListener("change", () => {
      if (update === show) return;
      if (!ended) asked = asked.slice(0, -1);
      follow(false);
    });
    return begin;
  }

  let begin = null;
  function change(one) {
    if (one && begin === null) begin = stepwise();
    update = one ? begin : show;
    form.classList.toggle("step", one);
    document.querySelectorAll("[data-mode]").forEach((each) => { each.hidden = each.dataset.mode !== (one ? "one" : "all"); });
    update(false);
  }

  form.addEventListener("input", (event) => {
    if (update === show) show();
    else if (event.target.closest(".confounds")) { if (!ended) asked = asked.slice(0, -1); update(false); }
  });
  form.addEventListener("reset", () => setTimeout(() => update(false)));
  form.addEventListener("submit", (event) => event.preventDefault());
  form.reset();
  if (known.adaptive) {
    const ways = [...document.querySelectorAll("[name=way]")];
    found("ways").hidden = false;
    ways.forEach((way) => way.addEventListener("change", () => change(way.value === "one" && way.checked)));
    ways[0].checked = true;
  }
  show();
})();
