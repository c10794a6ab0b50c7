// Molecules as an SDF file (V2000), made from the short texts of their structures.

const USUAL = { B: [3], C: [4], N: [3], O: [2], F: [1], Si: [4], P: [3, 5], S: [2, 4, 6], Cl: [1], Br: [1], I: [1] };
const SUPER = "⁰¹²³⁴⁵⁶⁷⁸⁹", SUB = "₀₁₂₃₄₅₆₇₈₉";
const digits = (text, alphabet) => Array.from(text).map((char) => alphabet.indexOf(char)).filter((digit) => digit >= 0).join("");

// An element, its mass number, hydrogens and charge, from a label such as ["¹³C", "H₂", "⁺"].
function atomOf(label) {
  if (!label) return { symbol: "C", mass: 0, hydrogens: -1, charge: 0 };
  const [element, hydrogens, signs] = label;
  const size = signs ? Number(digits(signs, SUPER) || "1") : 0;
  return {
    symbol: element.replace(/[⁰¹²³⁴⁵⁶⁷⁸⁹]/g, ""), mass: Number(digits(element, SUPER) || "0"),
    hydrogens: hydrogens ? Number(digits(hydrogens, SUB) || "1") : 0, charge: signs.endsWith("⁻") ? -size : size,
  };
}
function molblock(structure, title) {
  const [atomText, bondText] = structure.slice(1).split("/");
  const orders = { s: 1, w: 1, h: 1, d: 2, l: 2, r: 2, t: 3 }, turns = { w: 1, h: 6 };
  const atoms = atomText.split(" ").filter(Boolean).map((part) => {
    const cells = part.split(",");
    // 20 units to one of RDKit's, y downwards on a page.
    return { x: +cells[0] / 20, y: -cells[1] / 20, bonds: 0, ...atomOf(cells.length > 2 ? cells[2].slice(1).split("~") : null) };
  });
  const bonds = bondText.split(" ").filter(Boolean).map((part) => {
    const [from, rest] = part.split(","), kind = rest.slice(-1), a = +from, b = +rest.slice(0, -1);
    const order = orders[kind.toLowerCase()] || 1;
    atoms[a].bonds += order;
    atoms[b].bonds += order;
    // A capital: which side the neighbours of this double bond are on is not known.
    return [a + 1, b + 1, order, kind !== kind.toLowerCase() ? 3 : turns[kind] || 0];
  });
  const pad = (value, width) => String(value).padStart(width);
  const lines = [title, "  seqopt", "", pad(atoms.length, 3) + pad(bonds.length, 3) + "  0  0  1  0  0  0  0  0999 V2000"];
  for (const atom of atoms) {
    const valence = atom.bonds + atom.hydrogens, usual = (USUAL[atom.symbol] || []).map((v) => v + (/^(N|O|P|S)$/.test(atom.symbol) ? atom.charge : -Math.abs(atom.charge)));
    // What readers would take for the usual number of hydrogens is left to them.
    const least = usual.find((v) => v >= atom.bonds);
    const told = atom.hydrogens < 0 || valence === least ? 0 : valence || 15;
    lines.push(pad(atom.x.toFixed(4), 10) + pad(atom.y.toFixed(4), 10) + "    0.0000 " + atom.symbol.padEnd(3) + " 0  0  0  0  0" + pad(told, 3) + "  0  0  0  0  0  0");
  }
  for (const bond of bonds) lines.push(bond.map((value) => pad(value, 3)).join("") + "  0  0  0");
  const property = (name, key) => atoms.forEach((atom, i) => { if (atom[key]) lines.push("M  " + name + "  1" + pad(i + 1, 4) + pad(atom[key], 4)); });
  property("CHG", "charge");
  property("ISO", "mass");
  return lines.concat("M  END").join("\n") + "\n";
}
function sdf(chosen) {
  const [names, lines] = contents(chosen), flat = (text) => text.replace(/[\r\n]+/g, " ");
  return chosen.map((row, i) => {
    const structure = structureOf(row);
    const fields = names.map((name, column) => [flat(name).replace(/[<>]/g, ""), flat(lines[i][column])]).filter((field) => field[1]);
    const block = structure[0] === "m" ? molblock(structure, "no. " + row.dataset.n) : "no. " + row.dataset.n + "\n  seqopt\n\n  0  0  0  0  0  0  0  0  0  0999 V2000\nM  END\n";
    return block + fields.map(([name, text]) => "> <" + name + ">\n" + text + "\n\n").join("") + "$$$$\n";
  }).join("");
}
