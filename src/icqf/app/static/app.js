"use strict";
// All pages work without this script; it shows what is being done, and follows the progress of a fit.
const busy = document.getElementById("busy");

const say = (words) => {
  busy.textContent = words;
  busy.hidden = !words;
};

const largest = (form) => {
  for (const input of form.querySelectorAll("input[type=file]")) {
    for (const file of input.files) {
      if (file.size > Number(input.dataset.limit)) return [file, input];
    }
  }
  return null;
};

for (const form of document.querySelectorAll("form")) {
  form.addEventListener("submit", (event) => {
    const over = largest(form);
    if (over) {
      event.preventDefault();
      const message = form.querySelector("p.care[role=alert]");
      message.textContent = `${over[0].name} has ${(over[0].size / 2 ** 20).toFixed(1)} MB. ${over[1].dataset.limitSentence}`;
      message.hidden = false;
      over[1].focus();
      return;
    }
    if (!form.dataset.busy) return;
    say(`${form.dataset.busy} …`);
    const began = Date.now();
    setInterval(() => say(`${form.dataset.busy} … ${Math.round((Date.now() - began) / 1000)} s`), 1000);
    // Deferred: a disabled button would not be submitted.
    setTimeout(() => form.querySelectorAll("button").forEach((button) => { button.disabled = true; }), 0);
  });
}

for (const link of document.querySelectorAll('a[href^="/"]:not([download]):not([target])')) {
  link.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || link.href.endsWith(".zip")) return;
    setTimeout(() => { if (!event.defaultPrevented) say("Opening the page …"); }, 250);
  });
}

window.addEventListener("pageshow", (event) => {
  if (event.persisted) location.reload(); // the cached page has disabled buttons
});

const drop = document.querySelector(".drop input[type=file]");
if (drop) {
  for (const kind of ["dragenter", "dragover"]) {
    document.addEventListener(kind, (event) => { event.preventDefault(); document.body.classList.add("over"); });
  }
  document.addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) document.body.classList.remove("over");
  });
  document.addEventListener("drop", (event) => {
    document.body.classList.remove("over");
    if (event.target.matches("input[type=file]")) return;
    event.preventDefault();
    if (event.dataTransfer.files.length) drop.files = event.dataTransfer.files;
  });
}

// Columns: find them, tick several, and be asked before changes are lost.
document.documentElement.classList.add("js");
const narrow = document.querySelector("[data-narrow]");
if (narrow) {
  const rows = [...document.querySelectorAll(`${narrow.dataset.narrow} tr`)];
  const use = document.querySelector("[data-narrow-use]");
  const counted = document.querySelector("[data-counted]");
  const tick = (row) => row.querySelector("[type=checkbox]");
  const show = () => {
    const words = narrow.value.toLowerCase();
    for (const row of rows) {
      const kind = use.value && (use.value === "item") !== tick(row).checked;
      row.hidden = kind || !row.dataset.words.toLowerCase().includes(words);
    }
    count();
  };
  const count = () => {
    const chosen = rows.filter((row) => tick(row).checked).length;
    counted.textContent = `${chosen} of ${rows.length} columns are items`;
    for (const row of rows) {
      row.classList.toggle("out", !tick(row).checked);
      const nothing = row.querySelector("option[value='']");
      nothing.textContent = tick(row).checked ? "item" : `left out${nothing.dataset.reason || ""}`;
    }
  };
  narrow.addEventListener("input", show);
  narrow.addEventListener("keydown", (event) => { if (event.key === "Enter") event.preventDefault(); });
  use.addEventListener("change", show);
  for (const button of document.querySelectorAll("[data-tick]")) {
    button.addEventListener("click", () => {
      for (const row of rows) if (!row.hidden) set(row, Boolean(button.dataset.tick));
      narrow.form.dataset.changed = "1";
      count();
    });
  }
  const set = (row, on) => {
    tick(row).checked = on;
    if (on) row.querySelector("select").value = "";
  };
  let last = null;
  for (const row of rows) {
    tick(row).addEventListener("click", (event) => {
      const shown = rows.filter((each) => !each.hidden);
      const [from, to] = [shown.indexOf(last), shown.indexOf(row)].sort((a, b) => a - b);
      if (event.shiftKey && from >= 0) for (const each of shown.slice(from, to + 1)) set(each, tick(row).checked);
      set(row, tick(row).checked);
      last = row;
      count();
    });
    row.querySelector("select").addEventListener("change", (event) => {
      if (event.target.value) tick(row).checked = false;
      count();
    });
  }
  count();
}

for (const form of document.querySelectorAll("form[data-guard]")) {
  form.addEventListener("change", (event) => { if (event.target.name) form.dataset.changed = "1"; });
  form.addEventListener("submit", () => { delete form.dataset.changed; });
}
window.addEventListener("beforeunload", (event) => {
  if (document.querySelector("form[data-guard][data-changed]")) event.preventDefault();
});

// Parts of the data are exchanged without loading the page anew.
const turn = async (address, keep) => {
  const answer = await fetch(address);
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  document.getElementById("grid").replaceWith(document.adoptNode(page.getElementById("grid")));
  if (keep) history.pushState({}, "", address);
  document.querySelector("#grid [tabindex]").focus({ preventScroll: true });
};
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-grid]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  if (document.querySelector("#grid [data-changed]")) return;
  event.preventDefault();
  turn(link.href, true).catch(() => location.assign(link.href));
});
if (document.getElementById("grid")) window.addEventListener("popstate", () => location.reload());

// A preview follows its controls; one is asked for at a time, and only the latest wish counts.
const look = document.querySelector("[data-look]");
if (look) {
  const [k, beta] = [look.elements.k, look.elements.beta];
  let asking = false;
  let next = false;
  const ask = async () => {
    look.querySelector("output").textContent = k.value;
    if (asking) { next = true; return; }
    asking = true;
    next = false;
    document.getElementById("preview").setAttribute("aria-busy", "true");
    try {
      const answer = await fetch(`${look.action}?${new URLSearchParams(new FormData(look))}`);
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const found = page.getElementById("preview");
      if (found) document.getElementById("preview").replaceChildren(...document.adoptNode(found).childNodes);
      say("");
    } catch {
      say("The app is not responding. Start it again with icqf app.");
    }
    document.getElementById("preview").removeAttribute("aria-busy");
    asking = false;
    if (next) ask();
  };
  look.addEventListener("input", ask);
  look.addEventListener("submit", (event) => { event.preventDefault(); ask(); });
  for (const link of document.querySelectorAll("[data-look-at]")) {
    link.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      const wanted = new URL(link.href).searchParams;
      const value = wanted.get("beta");
      if (![...beta.options].some((each) => each.value === value)) beta.add(new Option(Number(value), value));
      k.max = Math.max(k.max, wanted.get("k"));
      [k.value, beta.value] = [wanted.get("k"), value];
      document.getElementById("look").scrollIntoView();
      ask();
    });
  }
  const use = look.querySelector("[data-use]");
  if (use) use.addEventListener("click", () => {
    document.querySelector("[name=n_components]").value = k.value;
    const penalty = document.querySelector("input[name=beta]");
    penalty.value = Number(beta.value);
    penalty.scrollIntoView({ block: "center" });
    penalty.focus();
  });
  if (look.hasAttribute("data-at-once")) ask();
}

const step = document.querySelector(".steps [aria-current]");
if (step) step.closest(".steps").scrollLeft = step.offsetLeft - 40; // on a phone, later steps are out of sight

const watched = document.querySelector("[data-poll]");
if (watched) {
  const text = watched.querySelector(".progress-text");
  const bar = watched.querySelector("progress");
  const stage = watched.querySelector("[data-stage]");
  const poll = async () => {
    let delay = 400;
    try {
      const answer = await fetch(watched.dataset.poll, { headers: { accept: "application/json" } });
      if (!answer.ok) throw new Error(String(answer.status));
      const state = await answer.json();
      if (state.ready) { watched.dataset.after ? location.assign(watched.dataset.after) : location.reload(); return; }
      text.textContent = state.text;
      if (state.share) { bar.max = 1; bar.value = state.share; } else bar.removeAttribute("value");
      if (stage && stage.textContent !== state.what) stage.textContent = state.what;
      say("");
    } catch {
      delay = 1500;
      say("The app is not responding. Start it again with icqf app, and this page will continue; a running fit is not affected.");
    }
    setTimeout(poll, delay);
  };
  setTimeout(poll, 200);
}

// A report may ask to save the name of a factor; it is then loaded again, at the same factor.
const shown = document.querySelector("iframe.report");
addEventListener("message", async (event) => {
  const asked = event.data;
  if (!shown || event.source !== shown.contentWindow || !asked || asked.icqf !== "names") return;
  const answer = (words) => shown.contentWindow.postMessage({ icqf: "names", words }, "*");
  const form = new URLSearchParams([[`name-${asked.key}`, String(asked.name)]]);
  try {
    const done = await fetch(shown.dataset.names, { method: "POST", body: form });
    const page = new DOMParser().parseFromString(await done.text(), "text/html");
    if (!done.ok) {
      answer(page.querySelector(".care p")?.textContent || "The name was not saved.");
      return;
    }
    const input = document.getElementById(`name-${asked.key}`);
    if (input) input.value = asked.name;
    shown.addEventListener("load", () => answer(`Saved: “${asked.name}” is in the report, all tables, the figures and the model.`), { once: true });
    shown.src = `${shown.getAttribute("src").split("?")[0].split("#")[0]}?${Date.now()}#${asked.key}`;
  } catch {
    answer("The name was not saved: the app is not responding. Start it again with icqf app.");
  }
});
