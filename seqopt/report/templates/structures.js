// Elements, and structures drawn from the short texts of seqopt.report.structures. See seqopt.report.pages.
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
  // A label with hydrogens or a charge is wider than an atom.
  const wide = (a) => (a.label ? Math.max(0, a.label.join("").length - 1) * 9 : 0) * (a.left && a.label[1] ? -1 : 1);
  const ends = atoms.filter((a) => a.label).map((a) => [a.x + wide(a), a.y]);
  const svg = canvas(atoms.map((a) => [a.x, a.y]).concat(ends), "structure", 14, 1.15);
  svg.classList.add("molecule");
  const line = (x1, y1, x2, y2) => shape("line", { x1, y1, x2, y2 }, svg);
  for (const part of bondText.split(" ").filter(Boolean)) {
    const [from, rest] = part.split(",");
    const kind = rest.slice(-1).toLowerCase(), a = atoms[+from], b = atoms[+rest.slice(0, -1)];
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
