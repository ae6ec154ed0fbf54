"use strict";
// Without this script every page still works; it says what is being done, and follows a fit by itself.
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
      const said = form.querySelector("#too-large");
      said.textContent = `${over[0].name} has ${(over[0].size / 2 ** 20).toFixed(1)} MB. ${over[1].dataset.limitSentence}`;
      said.hidden = false;
      over[1].focus();
      return;
    }
    if (!form.dataset.busy) return;
    say(`${form.dataset.busy} …`);
    const began = Date.now();
    setInterval(() => say(`${form.dataset.busy} … ${Math.round((Date.now() - began) / 1000)} s`), 1000);
    // Not at once: a button that is disabled would not be sent.
    setTimeout(() => form.querySelectorAll("button").forEach((button) => { button.disabled = true; }), 0);
  });
}

for (const link of document.querySelectorAll('a[href^="/"]:not([download]):not([target])')) {
  link.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || link.href.endsWith(".zip")) return;
    setTimeout(() => say("Opening the page …"), 250);
  });
}

window.addEventListener("pageshow", (event) => {
  if (event.persisted) location.reload(); // as it was left: with its buttons disabled, and saying so
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

const watched = document.querySelector("[data-poll]");
if (watched) {
  const said = watched.querySelector(".said");
  const bar = watched.querySelector("progress");
  const stage = watched.querySelector("[data-stage]");
  const look = async () => {
    let again = 400;
    try {
      const answer = await fetch(watched.dataset.poll, { headers: { accept: "application/json" } });
      if (!answer.ok) throw new Error(String(answer.status));
      const found = await answer.json();
      if (found.ready) { watched.dataset.after ? location.assign(watched.dataset.after) : location.reload(); return; }
      said.textContent = found.text;
      if (found.total) { bar.max = found.total; bar.value = found.done; } else bar.removeAttribute("value");
      if (stage && stage.textContent !== found.what) stage.textContent = found.what;
      say("");
    } catch {
      again = 1500;
      say("The app does not answer. Start it again with icqf app: this page then continues; a fit keeps running meanwhile.");
    }
    setTimeout(look, again);
  };
  setTimeout(look, 200);
}
