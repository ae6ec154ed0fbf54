"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const text = (cell) => cell.textContent.trim();
  const value = (cell) => {
    const found = text(cell).replace("−", "-").replace(/[\u202f<>%]/g, "");
    return found !== "" && !Number.isNaN(Number(found)) ? Number(found) : null;
  };

  function sort(table, column, heading) {
    const was = heading.getAttribute("aria-sort");
    const body = table.tBodies[0];
    const rows = [...body.rows];
    const numeric = rows.some((row) => value(row.cells[column]) !== null) && column > 0;
    const first = numeric ? "descending" : "ascending";
    const next = was === null ? first : was === "ascending" ? "descending" : "ascending";
    const sign = next === "ascending" ? 1 : -1;
    const key = (row) => (numeric ? value(row.cells[column]) : text(row.cells[column]));
    const keyed = rows.map((row) => [key(row), row]);
    keyed.sort(([a], [b]) => {
      if (a === null || b === null) return (a === null) - (b === null);
      return sign * (numeric ? a - b : a.localeCompare(b));
    });
    for (const other of all("th[aria-sort]", table.tHead)) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", next);
    table.classList.add("sorted");
    body.append(...keyed.map(([, row]) => row));
  }

  for (const table of all("table.sortable")) {
    table.classList.add("ready");
    [...table.tHead.rows[0].cells].forEach((heading, column) => {
      if (heading.querySelector(".quiet")) return;
      const button = document.createElement("button");
      button.type = "button";
      button.append(...heading.childNodes);
      heading.append(button);
      button.addEventListener("click", () => sort(table, column, heading));
    });
  }

  const tools = document.getElementById("tools");
  const find = document.getElementById("find");
  const scale = document.getElementById("scale");
  const cut = document.getElementById("cut");
  const heats = all("table.heat");
  const bodies = heats.map((table) => [...table.tBodies[0].rows]);

  function filter() {
    const wanted = find.value.trim().toLowerCase();
    const only = scale ? scale.value : "";
    let shown = 0;
    bodies.forEach((rows, at) => {
      for (const row of rows) {
        const fits = text(row.cells[0]).toLowerCase().includes(wanted) && (!only || text(row.cells[1]) === only);
        row.hidden = !fits;
        if (at === 0 && fits) shown += 1;
      }
    });
    document.getElementById("shown").textContent = `${shown} of ${bodies[0].length} items shown`;
  }

  function hide() {
    const limit = Number(cut.value);
    const words = `${Math.round(100 * limit)}%`;
    document.getElementById("cut-value").textContent = words;
    cut.setAttribute("aria-valuetext", `${words} of the range`);
    for (const rows of bodies) {
      for (const row of rows) {
        const span = Number(row.dataset.span);
        for (const cell of row.cells) {
          if (/^[qo]\d/.test(cell.className)) cell.classList.toggle("low", value(cell) / span < limit - 1e-9);
        }
      }
    }
  }

  if (tools) {
    tools.hidden = false;
    find.addEventListener("input", filter);
    if (scale) scale.addEventListener("change", filter);
    cut.addEventListener("input", hide);
    filter();
  }

  const models = all(".model");
  const pick = (at) => models.forEach((model, number) => { model.hidden = number !== at; });
  for (const choice of all('input[name="k"]')) choice.addEventListener("change", () => pick(Number(choice.value)));
  if (models.length > 1) pick(0);

  // Save figures as SVG or PNG files, and copy tables.
  const bar = () => {
    const element = document.createElement("div");
    element.className = "take";
    return element;
  };
  const button = (words, label, action) => {
    const element = document.createElement("button");
    element.type = "button";
    element.textContent = words;
    element.setAttribute("aria-label", label);
    element.addEventListener("click", () => action(element));
    return element;
  };
  function save(blob, name) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }
  const STYLES = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-family", "font-size", "font-weight", "text-anchor"];
  function drawn(svg) {
    document.documentElement.classList.add("light");
    const copy = svg.cloneNode(true);
    const copies = all("*", copy);
    all("*", svg).forEach((node, at) => {
      const style = getComputedStyle(node);
      for (const name of STYLES) copies[at].style.setProperty(name, style.getPropertyValue(name));
      copies[at].removeAttribute("class");
    });
    document.documentElement.classList.remove("light");
    const [, , width, height] = svg.getAttribute("viewBox").split(/\s+/).map(Number);
    copy.setAttribute("width", width);
    copy.setAttribute("height", height);
    for (const name of ["class", "style"]) copy.removeAttribute(name);
    return { text: new XMLSerializer().serializeToString(copy), width, height };
  }
  function raster(svg, name) {
    const { text: source, width, height } = drawn(svg);
    const picture = new Image();
    picture.addEventListener("load", () => {
      const scale = Math.max(2, 2100 / width);
      const canvas = document.createElement("canvas");
      canvas.width = Math.round(width * scale);
      canvas.height = Math.round(height * scale);
      const context = canvas.getContext("2d");
      context.fillStyle = "white";
      context.fillRect(0, 0, canvas.width, canvas.height);
      context.drawImage(picture, 0, 0, canvas.width, canvas.height);
      canvas.toBlob((blob) => save(blob, `${name}.png`), "image/png");
    });
    picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(source)}`;
  }
  for (const figure of all("figure.take-figure")) {
    const svg = figure.querySelector("svg");
    const { name } = figure.dataset;
    const toolbar = bar();
    toolbar.append(
      button("SVG", `Save this figure as SVG: ${name}`, () => save(new Blob([drawn(svg).text], { type: "image/svg+xml" }), `${name}.svg`)),
      button("PNG", `Save this figure as PNG: ${name}`, () => raster(svg, name)),
    );
    figure.append(toolbar);
  }
  function copy(pressed, contents) {
    document.addEventListener("copy", (event) => {
      for (const [kind, words] of Object.entries(contents)) event.clipboardData.setData(kind, words);
      event.preventDefault();
    }, { once: true });
    pressed.textContent = document.execCommand("copy") ? "Copied" : "Not copied";
  }
  function copyTable(table, pressed) {
    const rows = [...table.rows].filter((row) => !row.hidden);
    const cells = (row) => [...row.cells].filter((cell) => !cell.classList.contains("wide"));
    const plain = (cell) => (cell.querySelector("svg,.bar") ? "" : text(cell).replace(/[↕↑↓]/g, "").replace(/\s+/g, " "));
    const escaped = (words) => words.replace(/&/g, "&amp;").replace(/</g, "&lt;");
    const tabs = rows.map((row) => cells(row).map(plain).join("\t")).join("\n");
    const marked = rows.map((row) => `<tr>${cells(row).map((cell) => `<td>${escaped(plain(cell))}</td>`).join("")}</tr>`).join("");
    copy(pressed, { "text/plain": tabs, "text/html": `<table>${marked}</table>` });
    setTimeout(() => { pressed.textContent = "Copy table"; }, 1500);
  }
  for (const table of all("main table")) {
    if (!table.tHead) continue;
    const name = table.caption ? text(table.caption) : "table";
    const toolbar = bar();
    toolbar.append(button("Copy table", `Copy table: ${name.slice(0, 80)}`, (pressed) => copyTable(table, pressed)));
    const region = table.closest(".scroll");
    (region || table).after(toolbar);
    if (table.classList.contains("long")) toolbar.classList.add("for-screen");
  }
  const regions = all(".scroll");
  for (const region of regions) {
    const hint = document.createElement("p");
    hint.className = "hint";
    hint.textContent = "Scrolls sideways →";
    region.prepend(hint);
  }
  const measure = () => {
    for (const region of regions) region.classList.toggle("wider", region.scrollWidth > region.clientWidth + 1);
  };
  measure();
  addEventListener("resize", measure);
  for (const part of all("details")) part.addEventListener("toggle", measure);

  const tip = document.getElementById("tip");
  function show(cell, x, y) {
    const table = cell.closest("table");
    const column = text(table.tHead.rows[0].cells[cell.cellIndex]);
    const span = Number(cell.parentNode.dataset.span);
    const strong = document.createElement("strong");
    strong.textContent = text(cell.parentNode.cells[0]);
    const share = `${Math.round((100 * value(cell)) / span)}% of the range`;
    const sure = cell.dataset.ci ? `, 95% interval ${cell.dataset.ci}` : "";
    tip.replaceChildren(strong, document.createElement("br"), `${column}: ${text(cell)} points, ${share}${sure}`);
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(8, Math.min(x + 14, innerWidth - box.width - 8))}px`;
    tip.style.top = `${y + 18 + box.height > innerHeight ? y - box.height - 12 : y + 18}px`;
  }
  for (const table of heats) {
    table.addEventListener("mousemove", (event) => {
      const cell = event.target.closest("td");
      if (cell && /^[qo]\d/.test(cell.className)) show(cell, event.clientX, event.clientY);
      else tip.hidden = true;
    });
    table.addEventListener("mouseleave", () => { tip.hidden = true; });
  }
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") tip.hidden = true; });

  // Name a factor where it stands. The app saves the name; a page that was opened as a file shows the command that does.
  const place = document.getElementById("renamed");
  const given = new Map();
  const quoted = (words) => (/^Win/.test(navigator.platform) ? `"${words.replace(/["$`]/g, "")}"` : `'${words.replace(/'/g, "'\\''")}'`);
  function folder() {
    const path = decodeURIComponent(location.pathname).replace(/\/[^/]*$/, "").replace(/^\/([A-Za-z]:)/, "$1");
    return location.protocol === "file:" && path ? path : "results";
  }
  function tell(...parts) {
    place.replaceChildren(...parts);
    place.hidden = false;
  }
  const paragraph = (words) => {
    const element = document.createElement("p");
    element.textContent = words;
    return element;
  };
  function tellCommand() {
    const code = document.createElement("code");
    code.textContent = `icqf report ${quoted(folder())} --names ${[...given].map(([key, name]) => `${key}=${quoted(name)}`).join(" ")}`;
    tell(
      paragraph("These names are on this page only. This command puts them into the report, tables, figures and model:"),
      code,
      button("Copy command", "Copy the command that saves the names", (pressed) => copy(pressed, { "text/plain": code.textContent })),
      button("Close", "Close this message", () => { place.hidden = true; }),
    );
  }
  addEventListener("message", (event) => {
    if (event.source !== parent || parent === window || !event.data || event.data.icqf !== "names") return;
    tell(paragraph(String(event.data.words)), button("Close", "Close this message", () => { place.hidden = true; }));
  });
  function rename(key, name) {
    given.set(key, name);
    document.getElementById(`${key}-h`).textContent = name;
    for (const link of all(`a[href="#${key}"]`)) link.textContent = name;
    if (parent === window) tellCommand();
    else {
      tell(paragraph("Saving the name …"));
      parent.postMessage({ icqf: "names", key, name }, "*");
    }
  }
  for (const card of all("#factors article[id]")) {
    const heading = card.querySelector("h3");
    const row = document.createElement("div");
    row.className = "title";
    heading.replaceWith(row);
    const start = button("Rename", `Rename ${text(heading)}`, () => {
      const before = text(heading);
      const suggested = /^Factor \d+ \((.+)\)$/.exec(before);
      const input = document.createElement("input");
      input.maxLength = 60;
      input.value = suggested ? suggested[1] : before;
      input.setAttribute("aria-label", `Name of ${before}`);
      heading.replaceChildren(input);
      start.hidden = true;
      input.select();
      let open = true;
      const close = (keep) => {
        if (!open) return;
        open = false;
        const name = input.value.trim().replace(/\s+/g, " ");
        heading.textContent = before;
        start.hidden = false;
        if (keep && name && name !== before) rename(card.id, name);
        start.focus();
      };
      input.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== "Escape") return;
        event.preventDefault(); // the button, which has the focus next, is not pressed by the same key
        close(event.key === "Enter");
      });
      input.addEventListener("blur", () => close(true));
    });
    start.className = "rename";
    row.append(heading, start);
  }
})();
