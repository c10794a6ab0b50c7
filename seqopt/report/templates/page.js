// What a page of seqopt does beyond showing itself: structures drawn from short texts, a map and plots that say what
// is under the pointer, a table that is sorted and filtered, and one selection for all of them. No library, no network.
(function () {
  "use strict";
  const SVG = "http://www.w3.org/2000/svg";
  const find = (selector, root) => (root || document).querySelector(selector);
  const all = (selector, root) => Array.from((root || document).querySelectorAll(selector));
  const holder = find("#data");
  const data = holder ? JSON.parse(holder.textContent) : { points: [], curve: null };
  document.documentElement.classList.add("scripted");

  function make(name, attributes, children) {
    const element = document.createElement(name);
    for (const key in attributes || {}) element.setAttribute(key, attributes[key]);
    for (const child of children || []) element.append(child);
    return element;
  }
  function shape(name, attributes, parent) {
    const element = document.createElementNS(SVG, name);
    for (const key in attributes) element.setAttribute(key, attributes[key]);
    if (parent) parent.append(element);
    return element;
  }
  const pairs = (text) => text.split(" ").filter(Boolean).map((part) => part.split(",").slice(0, 2).map(Number));

  // ---- Structures -------------------------------------------------------------------------------------------------

  function canvas(points, label, pad, most) {
    const xs = points.map((p) => p[0]), ys = points.map((p) => p[1]);
    const left = Math.min(...xs) - pad, top = Math.min(...ys) - pad;
    const width = Math.max(...xs) + pad - left, height = Math.max(...ys) + pad - top;
    const svg = shape("svg", { viewBox: [left, top, width, height].join(" "), role: "img", "aria-label": label });
    const scale = Math.min(most, 300 / width, 210 / height);
    svg.style.width = width * scale + "px";
    svg.style.height = height * scale + "px";
    return svg;
  }

  function molecule(text) {
    const [atomText, bondText] = text.split("/");
    const atoms = atomText.split(" ").filter(Boolean).map((part) => {
      const cells = part.split(",");
      const label = cells.length > 2 ? cells[2].slice(1).split("~") : null;
      return { x: +cells[0], y: +cells[1], label, left: cells.length > 2 && cells[2][0] === "<" };
    });
    const svg = canvas(atoms.map((a) => [a.x, a.y]), "structure", 19, 1.15);
    svg.classList.add("molecule");
    const line = (x1, y1, x2, y2) => shape("line", { x1, y1, x2, y2 }, svg);
    for (const part of bondText.split(" ").filter(Boolean)) {
      const [from, rest] = part.split(",");
      const kind = rest.slice(-1), a = atoms[+from], b = atoms[+rest.slice(0, -1)];
      const dx = b.x - a.x, dy = b.y - a.y, length = Math.hypot(dx, dy) || 1;
      const ux = dx / length, uy = dy / length, nx = -uy, ny = ux;
      const cutA = a.label ? 9 : 0, cutB = b.label ? 9 : 0;
      const x1 = a.x + ux * cutA, y1 = a.y + uy * cutA, x2 = b.x - ux * cutB, y2 = b.y - uy * cutB;
      const offset = (by, inset) => {
        const sa = a.label ? 0 : inset, sb = b.label ? 0 : inset;
        line(x1 + nx * by + ux * sa, y1 + ny * by + uy * sa, x2 + nx * by - ux * sb, y2 + ny * by - uy * sb);
      };
      if (kind === "w") {
        const w = 3.6;
        shape("path", { class: "solid", d: `M${x1} ${y1}L${x2 + nx * w} ${y2 + ny * w} ${x2 - nx * w} ${y2 - ny * w}Z` }, svg);
      } else if (kind === "h") {
        for (let i = 1; i <= 6; i++) {
          const t = i / 6, w = 3.6 * t, x = x1 + (x2 - x1) * t, y = y1 + (y2 - y1) * t;
          line(x + nx * w, y + ny * w, x - nx * w, y - ny * w);
        }
      } else if (kind === "d") { offset(2.6, 0); offset(-2.6, 0); }
      else {
        line(x1, y1, x2, y2);
        if (kind === "l") offset(5, 4);
        if (kind === "r") offset(-5, 4);
        if (kind === "t") { offset(4.6, 0); offset(-4.6, 0); }
      }
    }
    for (const atom of atoms) {
      if (!atom.label) continue;
      const [element, hydrogens, charge] = atom.label;
      const right = !atom.left || !hydrogens;
      const text = right ? element + hydrogens + charge : charge + hydrogens + element;
      const single = element.length === 1 && !hydrogens && !charge;
      const shift = single || text.length === element.length ? 0 : right ? -element.length * 4.9 : element.length * 4.9;
      const symbol = (element.match(/[A-Z][a-z]?/) || [""])[0];
      const word = shape("text", {
        x: atom.x + shift, y: atom.y + 5, class: "el-" + symbol,
        "text-anchor": shift === 0 ? "middle" : right ? "start" : "end",
      }, svg);
      word.textContent = text;
    }
    return svg;
  }

  function gene(text, string) {
    const [places, brackets] = text.split("/");
    const points = pairs(places), open = [];
    const svg = canvas(points, "secondary structure of the RNA", 16, 1.2);
    svg.classList.add("fold");
    shape("polyline", { points: points.map((p) => p.join(",")).join(" ") }, svg);
    Array.from(brackets).forEach((bracket, i) => {
      if (bracket === "(") open.push(i);
      if (bracket === ")") {
        const j = open.pop();
        shape("line", { x1: points[j][0], y1: points[j][1], x2: points[i][0], y2: points[i][1] }, svg);
      }
    });
    points.forEach((p, i) => {
      const base = (string[i] || "N").toUpperCase().replace("T", "U");
      shape("circle", { cx: p[0], cy: p[1], r: 6.5, class: "base-" + base }, svg);
      if (points.length <= 150) {
        const word = shape("text", { x: p[0], y: p[1] + 3.2, "text-anchor": "middle", class: "on-" + base }, svg);
        word.textContent = base;
      }
    });
    return svg;
  }

  function curve(text) {
    const svg = shape("svg", { viewBox: "-6 -6 312 212", role: "img", "aria-label": "curve of the formula and the data", class: "curve" });
    svg.style.width = "300px";
    shape("rect", { x: 0, y: 0, width: 300, height: 200, class: "frame" }, svg);
    for (const p of pairs((data.curve && data.curve.data) || "")) shape("circle", { cx: p[0], cy: p[1], r: 3 }, svg);
    for (const run of text.split(" - ")) {
      const points = run.split(" ").filter((part) => part.indexOf(",") > 0);
      if (points.length) shape("polyline", { points: points.join(" ") }, svg);
    }
    return svg;
  }

  function drawing(structure, string) {
    try {
      if (structure[0] === "m") return molecule(structure.slice(1));
      if (structure[0] === "g") return gene(structure.slice(1), string);
      if (structure[0] === "c") return curve(structure.slice(1));
    } catch (error) { /* a text that cannot be drawn is shown as text */ }
    return null;
  }

  // ---- What is shown of a point -----------------------------------------------------------------------------------

  const [X, Y, STRING, STRUCTURE, VALUE, LABEL, NUMBER, GROUP] = [0, 1, 2, 3, 4, 5, 6, 7];
  const points = data.points, places = new Map(), rows = new Map();
  points.forEach((point, i) => { if (point[NUMBER]) places.set(String(point[NUMBER]), i); });
  all("tr[data-n]").forEach((row) => rows.set(row.dataset.n, row));
  const words = data.groups || ["random candidate", "measured", "to be measured"];

  function describe(i) {
    const point = points[i];
    return [point[LABEL], point[VALUE], point[STRING]].filter(Boolean).join(", ");
  }
  function fill(box, i, whole) {
    const point = points[i], drawn = drawing(point[STRUCTURE], point[STRING]);
    box.textContent = "";
    if (drawn) box.append(make("div", { class: "drawn" }, [drawn]));
    const head = make("p", { class: "head" }, [make("strong", {}, [point[VALUE] || "–"]), " ", make("span", { class: "soft" }, [point[LABEL] || words[point[GROUP]]])]);
    box.append(head, make("p", { class: "text" }, [make("code", {}, [whole || point[STRING].length < 90 ? point[STRING] : point[STRING].slice(0, 88) + "…"])]));
    const row = rows.get(String(point[NUMBER]));
    if (!whole || !row) return;
    const heads = all("thead th", row.closest("table")).map((cell) => cell.textContent.trim());
    const list = make("dl");
    Array.from(row.cells).forEach((cell, column) => {
      const text = cell.textContent.trim();
      if (text && text !== "–" && !cell.classList.contains("string")) {
        list.append(make("div", {}, [make("dt", {}, [heads[column]]), make("dd", {}, [text])]));
      }
    });
    box.append(list);
  }

  const tip = make("div", { class: "tip", "aria-hidden": "true" });
  document.body.append(tip);
  function showTip(i, x, y) {
    if (tip.dataset.i !== String(i)) { fill(tip, i, false); tip.dataset.i = i; }
    tip.classList.add("shown");
    const width = tip.offsetWidth, height = tip.offsetHeight, view = document.documentElement;
    const left = x + 18 + width > view.clientWidth ? Math.max(4, x - width - 18) : x + 18;
    const top = Math.min(Math.max(4, y - height / 2), Math.max(4, view.clientHeight - height - 4));
    tip.style.left = left + "px";
    tip.style.top = top + "px";
  }
  function hideTip() { tip.classList.remove("shown"); delete tip.dataset.i; }

  // ---- One selection ----------------------------------------------------------------------------------------------

  const map = find(".map"), svg = map && find(".plane > svg", map), inspector = find("#inspector"), live = find("#live");
  const marks = svg ? all("circle, path", svg) : [];
  let selected = -1;
  const ring = svg ? shape("circle", { class: "ring", r: 16, visibility: "hidden" }, svg) : null;
  const halo = svg ? shape("circle", { class: "ring hover", r: 12, visibility: "hidden" }, svg) : null;

  function select(i, options) {
    selected = i;
    if (inspector) fill(inspector, i, true);
    mark(ring, i);
    const number = String(points[i][NUMBER] || "");
    all("[aria-selected=true]").forEach((row) => row.setAttribute("aria-selected", "false"));
    all("use.chosen").forEach((use) => use.classList.remove("chosen"));
    (dots.get(number) || []).forEach((use) => use.classList.add("chosen"));
    const row = rows.get(number);
    if (row) {
      row.setAttribute("aria-selected", "true");
      if (row.hidden && find("#filter")) { find("#filter").value = ""; if (find("#status")) find("#status").value = ""; refilter(); }
      if (!options || options.scroll !== false) scrollTo(row);
    }
    if (live) live.textContent = describe(i);
  }
  function scrollTo(row) {
    const box = row.closest(".scroll"), head = find("thead", row.closest("table")).offsetHeight;
    box.scrollTop = Math.max(0, row.offsetTop - head - (box.clientHeight - head) / 2 + row.offsetHeight / 2);
  }
  function selectRow(row) {
    const place = places.get(row.dataset.n);
    if (place !== undefined) { select(place, { scroll: false }); return; }
    all("[aria-selected=true]").forEach((other) => other.setAttribute("aria-selected", "false"));
    row.setAttribute("aria-selected", "true");
  }

  // ---- The map ----------------------------------------------------------------------------------------------------

  const view = { k: 1, x: 0, y: 0 };
  const at = (i) => [points[i][X] * view.k + view.x, points[i][Y] * view.k + view.y];
  function mark(circle, i) {
    if (!circle) return;
    circle.setAttribute("visibility", i < 0 ? "hidden" : "visible");
    if (i >= 0) circle.setAttribute("transform", `translate(${at(i).join(" ")})`);
  }
  if (svg && marks.length >= points.length) {
    const box = svg.viewBox.baseVal;
    let current = -1, held = null, moved = false;
    const shown = (i) => !marks[i].parentNode.classList.contains("off");
    function redraw() {
      points.forEach((_, i) => marks[i].setAttribute("transform", `translate(${at(i).join(" ")})`));
      mark(ring, selected);
      mark(halo, current);
      svg.classList.toggle("zoomed", view.k > 1);
    }
    function zoom(factor, cx, cy) {
      const k = Math.min(20, Math.max(1, view.k * factor));
      view.x = cx - (cx - view.x) * (k / view.k);
      view.y = cy - (cy - view.y) * (k / view.k);
      view.k = k;
      clamp();
    }
    function clamp() {
      view.x = Math.min(0, Math.max(box.width * (1 - view.k), view.x));
      view.y = Math.min(0, Math.max(box.height * (1 - view.k), view.y));
      redraw();
    }
    function inside(event) {
      const frame = svg.getBoundingClientRect();
      return [(event.clientX - frame.left) * box.width / frame.width, (event.clientY - frame.top) * box.height / frame.height];
    }
    function nearest(x, y, reach) {
      let best = -1, least = reach * reach;
      for (let i = points.length - 1; i >= 0; i--) {
        if (!shown(i)) continue;
        const [px, py] = at(i);
        // Points on top are easier to hit than the pool below them.
        const distance = ((px - x) ** 2 + (py - y) ** 2) * (points[i][GROUP] ? 0.45 : 1);
        if (distance < least) { least = distance; best = i; }
      }
      return best;
    }
    function reach(event) {
      return (event.pointerType === "touch" ? 24 : 14) * box.width / svg.getBoundingClientRect().width;
    }
    function screen(i) {
      const frame = svg.getBoundingClientRect(), [x, y] = at(i);
      return [frame.left + x * frame.width / box.width, frame.top + y * frame.height / box.height];
    }
    function hover(i) {
      current = i;
      mark(halo, i);
      if (i < 0) hideTip(); else showTip(i, ...screen(i));
    }
    svg.setAttribute("role", "application");
    svg.setAttribute("aria-roledescription", "map of points");
    svg.setAttribute("tabindex", "0");
    svg.setAttribute("aria-describedby", "map-help");
    svg.addEventListener("pointermove", (event) => {
      if (held && view.k > 1) {
        const [x, y] = inside(event);
        moved = moved || Math.hypot(x - held[0], y - held[1]) > 6;
        if (moved) { hover(-1); view.x = held[2] + x - held[0]; view.y = held[3] + y - held[1]; clamp(); return; }
      }
      if (event.pointerType !== "touch") hover(nearest(...inside(event), reach(event)));
    });
    svg.addEventListener("pointerleave", () => { if (!held) hover(-1); });
    svg.addEventListener("pointerdown", (event) => {
      moved = false;
      held = [...inside(event), view.x, view.y];
      if (view.k > 1 && svg.setPointerCapture) { try { svg.setPointerCapture(event.pointerId); } catch (error) { /* gone already */ } }
    });
    svg.addEventListener("pointercancel", () => { held = null; });
    svg.addEventListener("pointerup", (event) => {
      held = null;
      if (moved) return;
      const i = nearest(...inside(event), reach(event));
      if (i >= 0) { select(i); if (event.pointerType === "touch") hideTip(); else hover(i); }
    });
    svg.addEventListener("wheel", (event) => {
      if (!(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      zoom(event.deltaY < 0 ? 1.25 : 0.8, ...inside(event));
    }, { passive: false });
    svg.addEventListener("focus", () => {
      // A pointer that gives the focus has its own idea of the current point.
      if (svg.matches(":focus-visible") && current < 0) step(selected >= 0 ? selected : best());
    });
    svg.addEventListener("blur", () => hover(-1));
    function best() {
      for (let i = points.length - 1; i >= 0; i--) if (shown(i)) return i;
      return -1;
    }
    function step(i) {
      if (i < 0) return;
      const [x, y] = at(i);
      if (x < 0 || y < 0 || x > box.width || y > box.height) {
        view.x += box.width / 2 - x; view.y += box.height / 2 - y; clamp();
      }
      hover(i);
      if (live) live.textContent = describe(i);
    }
    const ways = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    svg.addEventListener("keydown", (event) => {
      const way = ways[event.key];
      if (way) {
        event.preventDefault();
        if (current < 0) { step(selected >= 0 ? selected : best()); return; }
        const [x, y] = at(current);
        let found = -1, least = Infinity;
        points.forEach((_, i) => {
          if (i === current || !shown(i)) return;
          const [px, py] = at(i), along = (px - x) * way[0] + (py - y) * way[1];
          const aside = Math.abs((px - x) * way[1]) + Math.abs((py - y) * way[0]);
          if (along > 0 && along + 3 * aside < least) { least = along + 3 * aside; found = i; }
        });
        step(found);
      } else if ((event.key === "Enter" || event.key === " ") && current >= 0) { event.preventDefault(); select(current); }
      else if (event.key === "Escape") hover(-1);
      else if (event.key === "+" || event.key === "=") zoom(1.5, ...(current >= 0 ? at(current) : [box.width / 2, box.height / 2]));
      else if (event.key === "-") zoom(1 / 1.5, box.width / 2, box.height / 2);
      else if (event.key === "0") zoom(1e-9, 0, 0);
    });
    all("[data-zoom]", map).forEach((button) => button.addEventListener("click", () => {
      const way = button.dataset.zoom;
      zoom(way === "in" ? 1.5 : way === "out" ? 1 / 1.5 : 1e-9, box.width / 2, box.height / 2);
    }));
    all("[data-group]", map).forEach((check) => check.addEventListener("change", () => {
      const group = find("g." + check.dataset.group, svg);
      if (group) group.classList.toggle("off", !check.checked);
    }));
    // Scrolling moves the page under the tip; the focus itself may scroll.
    window.addEventListener("scroll", () => {
      if (current >= 0) hover(svg.matches(":focus-visible") ? current : -1);
    }, { passive: true });
  }

  // ---- Plots ------------------------------------------------------------------------------------------------------

  const dots = new Map();
  all("[data-rows]").forEach((group) => {
    const numbers = group.dataset.rows.split(","), uses = all("use", group);
    if (uses.length !== numbers.length) return;
    uses.forEach((use, i) => {
      const number = numbers[i], place = places.get(number);
      if (place === undefined && !rows.has(number)) return;
      dots.set(number, (dots.get(number) || []).concat(use));
      use.classList.add("dot");
      use.addEventListener("pointerenter", (event) => { if (place !== undefined && event.pointerType !== "touch") showTip(place, event.clientX, event.clientY); });
      use.addEventListener("pointerleave", hideTip);
      use.addEventListener("click", () => {
        if (place !== undefined) select(place); else selectRow(rows.get(number));
      });
    });
  });

  // ---- The table --------------------------------------------------------------------------------------------------

  const table = find("#strings-table"), filter = find("#filter"), status = find("#status"), count = find("#count");
  function refilter() {
    const wanted = filter.value.trim().toLowerCase(), state = status ? status.value : "";
    let shown = 0;
    rows.forEach((row) => {
      const fits = (!state || row.dataset.status === state) && (!wanted || row.textContent.toLowerCase().indexOf(wanted) >= 0);
      row.hidden = !fits;
      shown += fits ? 1 : 0;
    });
    count.textContent = shown === rows.size ? rows.size.toLocaleString("en") + " rows" : shown.toLocaleString("en") + " of " + rows.size.toLocaleString("en") + " rows";
    const focusable = find("tr[tabindex='0']", table);
    if (focusable && focusable.hidden) rove(Array.from(rows.values()).find((row) => !row.hidden), false);
  }
  function rove(row, focus) {
    if (!row) return;
    all("tr[tabindex='0']", table).forEach((other) => other.setAttribute("tabindex", "-1"));
    row.setAttribute("tabindex", "0");
    if (focus) { row.focus({ preventScroll: true }); scrollTo(row); }
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
    const keyed = Array.from(body.rows).map((row, i) => [key(row), i, row]);
    const empty = (value) => value === "" || value === "–" || (numeric && isNaN(value));
    keyed.sort((a, b) => {
      // What has no value comes last, whichever way.
      if (empty(a[0]) || empty(b[0])) return empty(a[0]) - empty(b[0]) || a[1] - b[1];
      return (a[0] < b[0] ? -sign : a[0] > b[0] ? sign : 0) || a[1] - b[1];
    });
    body.append(...keyed.map((entry) => entry[2]));
  }
  if (table) {
    table.setAttribute("role", "grid");
    all("thead th", table).forEach((header) => {
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
      const visible = Array.from(table.tBodies[0].rows).filter((other) => !other.hidden), i = visible.indexOf(row);
      const next = { ArrowDown: i + 1, ArrowUp: i - 1, Home: 0, End: visible.length - 1, PageDown: Math.min(i + 10, visible.length - 1), PageUp: Math.max(i - 10, 0) }[event.key];
      if (next !== undefined) { event.preventDefault(); rove(visible[next], true); }
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); selectRow(row); }
    });
    filter.addEventListener("input", refilter);
    if (status) status.addEventListener("change", refilter);
    refilter();
  }
  all("a[href^='#row-']").forEach((link) => link.addEventListener("click", (event) => {
    const row = find(link.getAttribute("href"));
    if (!row) return;
    event.preventDefault();
    if (row.hidden) { filter.value = ""; if (status) status.value = ""; refilter(); }
    rove(row, true);
    selectRow(row);
    row.closest("section").scrollIntoView({ block: "start" });
  }));
  const first = data.first ? places.get(String(data.first)) : undefined;
  if (inspector && first !== undefined) select(first, { scroll: false });
})();
