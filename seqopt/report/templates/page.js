// One selection for map, plots and table; a map and plots that say what is under the pointer.
// ---- What is shown of a point -----------------------------------------------------------------------------------

const [X, Y, STRING, STRUCTURE, VALUE, LABEL, NUMBER, GROUP, MASK] = [0, 1, 2, 3, 4, 5, 6, 7, 8];
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
    if (text && text !== "–" && !cell.classList.contains("string") && !cell.classList.contains("thumb")) {
      list.append(make("div", {}, [make("dt", {}, [heads[column]]), make("dd", {}, [text])]));
    }
  });
  all("td.string .soft", row).forEach((part) => list.append(make("div", {}, [make("dt", {}, ["Note"]), make("dd", {}, [part.textContent])])));
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
    if (row.hidden && filter) reveal(row);
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
  const shown = (i) => !marks[i].parentNode.classList.contains("off") && !marks[i].classList.contains("off");
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
