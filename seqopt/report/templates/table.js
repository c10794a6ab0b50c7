// The table of a page: sorted, filtered, grouped by scaffolds, with drawings, and downloaded as CSV or SDF.

const table = find("#strings-table"), filter = find("#filter"), status = find("#status"), count = find("#count");
const fragment = find("#fragment"), grouped = find("#grouped"), open = new Set();
const number = (n) => n.toLocaleString("en");
// A mask is a number in hexadecimal: bit i says whether the molecule has substructure i.
const has = (mask, bit) => Boolean(mask) && ((parseInt(mask[mask.length - 1 - (bit >> 2)] || "0", 16) >> (bit & 3)) & 1) === 1;

function fitting() { return Array.from(table.tBodies[0].rows).filter((row) => row.dataset.n && row.dataset.out !== "1"); }
function refilter() {
  const wanted = filter.value.trim().toLowerCase(), state = status ? status.value : "";
  const bit = fragment && fragment.value ? Number(fragment.value) : -1;
  let shown = 0;
  rows.forEach((row) => {
    const fits = (!state || row.dataset.status === state) && (bit < 0 || has(row.dataset.f, bit)) &&
      (!wanted || row.textContent.toLowerCase().indexOf(wanted) >= 0);
    row.dataset.out = fits ? "0" : "1";
    shown += fits ? 1 : 0;
  });
  const total = number(rows.size) + " rows";
  const elsewhere = refilterMap(wanted, state, bit);
  count.textContent = (shown === rows.size ? total : number(shown) + " of " + total) + (elsewhere ? ", and " + number(elsewhere) + " more on the map" : "");
  regroup();
}
// On the map, what does not fit is hidden; returns how many dots fit that have no row.
function refilterMap(wanted, state, bit) {
  const any = Boolean(wanted || state || bit >= 0);
  let elsewhere = 0;
  marks.slice(0, points.length).forEach((dot, i) => {
    const point = points[i], row = rows.get(String(point[NUMBER]));
    let fits = true;
    if (any) {
      fits = row ? row.dataset.out !== "1" : !state && (bit < 0 || has(point[MASK], bit)) &&
        (!wanted || (point[LABEL] + " " + point[STRING]).toLowerCase().indexOf(wanted) >= 0);
      if (fits && !row) elsewhere += 1;
    }
    dot.classList.toggle("off", !fits);
  });
  return elsewhere;
}

// ---- Scaffolds --------------------------------------------------------------------------------------------------

function regroup() {
  all("tr.scaffold", table).forEach((row) => row.remove());
  const body = table.tBodies[0];
  if (grouped && grouped.checked) {
    const groups = new Map();
    fitting().forEach((row) => {
      const place = row.dataset.s || "-1";
      groups.set(place, (groups.get(place) || []).concat(row));
    });
    groups.forEach((members, place) => {
      body.append(heading(place, members), ...members);
      members.forEach((row) => { row.hidden = !open.has(place); });
    });
  }
  rows.forEach((row) => { if (!grouped || !grouped.checked || row.dataset.out === "1") row.hidden = row.dataset.out === "1"; });
  const focusable = find("tr[tabindex='0']", table);
  if (focusable && focusable.hidden) rove(Array.from(body.rows).find((row) => row.dataset.n && !row.hidden), false);
}
function heading(place, members) {
  const [smiles, structure] = data.scaffolds[place] || ["without rings", ""];
  const column = all("thead th", table).findIndex((cell) => cell.dataset.role === "value");
  const measured = members.map((row) => row.cells[column]).filter((cell) => cell && cell.dataset.v !== undefined);
  const sign = data.lowIsGood ? 1 : -1;
  measured.sort((a, b) => sign * (Number(a.dataset.v) - Number(b.dataset.v)));
  const words = [number(members.length) + (members.length === 1 ? " molecule" : " molecules"), number(measured.length) + " measured"];
  if (measured.length) words.push("best " + measured[0].textContent.trim());
  const drawn = structure ? drawing(structure, smiles) : null;
  const button = make("button", { type: "button", "aria-expanded": String(open.has(place)) }, [make("code", {}, [smiles])]);
  const cell = make("td", { colspan: String(all("thead th", table).length) }, [button, make("span", { class: "soft" }, [words.join(", ")])]);
  if (drawn) button.prepend(make("span", { class: "thumbnail" }, [fitted(drawn)]));
  button.addEventListener("click", () => {
    if (open.has(place)) open.delete(place); else open.add(place);
    button.setAttribute("aria-expanded", String(open.has(place)));
    members.forEach((row) => { row.hidden = !open.has(place); });
    rove(members[0], false);
  });
  return make("tr", { class: "scaffold" }, [cell]);
}

// ---- Drawings: each when it comes into view, so that long tables stay light ---------------------------------------

function fitted(svg) {
  svg.style.width = svg.style.height = "100%";
  return svg;
}
function structureOf(row) {
  const place = places.get(row.dataset.n);
  return (place !== undefined && points[place][STRUCTURE]) || (data.structures || {})[row.dataset.n] || "";
}
function draw(cell) {
  if (cell.firstChild) return;
  const structure = structureOf(cell.parentNode), drawn = structure ? drawing(structure, "") : null;
  if (drawn) cell.append(make("span", { class: "thumbnail" }, [fitted(drawn)]));
}

// ---- Files ------------------------------------------------------------------------------------------------------

const DANGEROUS = /^'*(?:\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n])/, PLAIN = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/;
function stringOf(row) { return (data.strings || {})[row.dataset.n] || find("td.string code", row).textContent; }
// Names of the columns, and for each row its cells: whole numbers and strings, not as they are shortened on the page.
function contents(chosen) {
  const heads = all("thead th", table), kept = heads.map((_, i) => i).filter((i) => !heads[i].classList.contains("thumb"));
  const names = kept.map((i) => heads[i].textContent.trim());
  const lines = chosen.map((row) => kept.map((i) => {
    const cell = row.cells[i];
    if (cell.classList.contains("string")) return stringOf(row);
    if (cell.dataset.v !== undefined && heads[i].classList.contains("number")) {
      // A limit is no value: its sign stays.
      const sign = /^[<>]/.exec(cell.textContent.trim());
      return (sign ? sign[0] : "") + cell.dataset.v;
    }
    const text = cell.textContent.trim();
    return text === "–" ? "" : text;
  }));
  const notes = chosen.map((row) => all("td.string .soft", row).map((part) => part.textContent).join("; "));
  if (!notes.some(Boolean)) return [names, lines];
  return [names.concat("Note"), lines.map((line, i) => line.concat(notes[i]))];
}
function csv(chosen) {
  const cell = (text) => {
    // What a spreadsheet would take for a formula gets an apostrophe, as in the files that seqopt writes.
    const safe = DANGEROUS.test(text) && !PLAIN.test(text) ? "'" + text : text;
    return /[",\r\n]/.test(safe) ? '"' + safe.replace(/"/g, '""') + '"' : safe;
  };
  const [names, lines] = contents(chosen);
  return [names, ...lines].map((line) => line.map(cell).join(",") + "\r\n").join("");
}
function save(text, ending, type) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  const link = make("a", { href: address, download: (data.file || "report") + "-" + "rows" + ending });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

// ---- Order ------------------------------------------------------------------------------------------------------

function rove(row, focus) {
  if (!row) return;
  all("tr[tabindex='0']", table).forEach((other) => other.setAttribute("tabindex", "-1"));
  row.setAttribute("tabindex", "0");
  if (focus) { row.focus({ preventScroll: true }); scrollTo(row); }
}
// Shows a row that a filter or a closed group hides.
function reveal(row) {
  if (row.dataset.out === "1") {
    filter.value = "";
    if (status) status.value = "";
    if (fragment) fragment.value = "";
    refilter();
  }
  if (row.hidden) { open.add(row.dataset.s || "-1"); regroup(); }
}
function sortBy(header) {
  const column = Array.from(header.parentNode.cells).indexOf(header), numeric = header.classList.contains("number");
  const before = header.getAttribute("aria-sort");
  const way = before === "none" ? (header.dataset.first || (numeric ? "descending" : "ascending")) : before === "ascending" ? "descending" : "ascending";
  all("th[aria-sort]", table).forEach((other) => other.setAttribute("aria-sort", "none"));
  header.setAttribute("aria-sort", way);
  const sign = way === "ascending" ? 1 : -1, body = table.tBodies[0];
  const key = (row) => {
    const cell = row.cells[column];
    if (!numeric) return cell.textContent.trim().toLowerCase();
    return cell.dataset.v === undefined ? NaN : Number(cell.dataset.v);
  };
  all("tr.scaffold", table).forEach((row) => row.remove());
  const keyed = Array.from(body.rows).map((row, i) => [key(row), i, row]);
  const empty = (value) => value === "" || value === "–" || (numeric && isNaN(value));
  keyed.sort((a, b) => {
    // What has no value comes last, whichever way.
    if (empty(a[0]) || empty(b[0])) return empty(a[0]) - empty(b[0]) || a[1] - b[1];
    return (a[0] < b[0] ? -sign : a[0] > b[0] ? sign : 0) || a[1] - b[1];
  });
  body.append(...keyed.map((entry) => entry[2]));
  regroup();
}
if (table) {
  table.setAttribute("role", "grid");
  all("thead th:not(.thumb)", table).forEach((header) => {
    const button = make("button", { type: "button" }, Array.from(header.childNodes));
    header.append(button);
    if (!header.hasAttribute("aria-sort")) header.setAttribute("aria-sort", "none");
    button.addEventListener("click", () => sortBy(header));
  });
  Array.from(rows.values()).forEach((row, i) => { row.setAttribute("tabindex", i ? "-1" : "0"); row.setAttribute("aria-selected", "false"); });
  table.addEventListener("click", (event) => {
    const row = event.target.closest("tr[data-n]");
    // A click that ends a selection of text does not choose a row.
    if (row && !String(window.getSelection())) { rove(row, false); selectRow(row); }
  });
  table.addEventListener("keydown", (event) => {
    const row = event.target.closest && event.target.closest("tr[data-n]");
    if (!row || event.target !== row) return;
    const visible = Array.from(table.tBodies[0].rows).filter((other) => other.dataset.n && !other.hidden), i = visible.indexOf(row);
    const next = { ArrowDown: i + 1, ArrowUp: i - 1, Home: 0, End: visible.length - 1, PageDown: Math.min(i + 10, visible.length - 1), PageUp: Math.max(i - 10, 0) }[event.key];
    if (next !== undefined) { event.preventDefault(); rove(visible[next], true); }
    if (event.key === "Enter" || event.key === " ") { event.preventDefault(); selectRow(row); }
  });
  filter.addEventListener("input", refilter);
  [status, fragment].forEach((choice) => { if (choice) choice.addEventListener("change", refilter); });
  if (grouped) grouped.addEventListener("change", regroup);
  const cells = all("td.thumb", table);
  if (window.IntersectionObserver) {
    const seen = new IntersectionObserver((entries) => entries.forEach((entry) => {
      if (entry.isIntersecting) { draw(entry.target); seen.unobserve(entry.target); }
    }), { rootMargin: "300px" });
    cells.forEach((cell) => seen.observe(cell));
    window.addEventListener("beforeprint", () => cells.forEach(draw));
  } else cells.forEach(draw);
  const files = { csv: () => save(csv(fitting()), ".csv", "text/csv;charset=utf-8"), sdf: () => save(sdf(fitting()), ".sdf", "chemical/x-mdl-sdfile") };
  all("[data-save]").forEach((button) => button.addEventListener("click", files[button.dataset.save]));
  refilter();
}
all("a[href^='#row-']").forEach((link) => link.addEventListener("click", (event) => {
  const row = find(link.getAttribute("href"));
  if (!row) return;
  event.preventDefault();
  reveal(row);
  rove(row, true);
  selectRow(row);
  row.closest("section").scrollIntoView({ block: "start" });
}));
const first = data.first ? places.get(String(data.first)) : undefined;
if (inspector && first !== undefined) select(first, { scroll: false });
