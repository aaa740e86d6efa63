// Elements of the page. All text becomes text nodes: nothing here reads markup.

export function element(name, properties = {}, ...children) {
  return filled(document.createElement(name), properties, children);
}

export function drawn(name, properties = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", name), properties, children);
}

function filled(node, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (typeof value === "function") node.addEventListener(name, value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat()) {
    if (child !== undefined && child !== null) node.append(child instanceof Node ? child : String(child));
  }
  return node;
}

const NUMBERS = new Set(["int2", "int4", "int8", "float4", "float8", "numeric", "oid"]);

export function cell(value, column) {
  if (value === null) return element("td", { class: "null" }, "NULL");
  return element("td", { class: NUMBERS.has(column.type) ? "number" : null }, value);
}

export const PIECE = 50; // elements that are drawn at once

// Appends what `draw` returns for each item to a node: for the first `count` at once, for the others in pieces while the page shows the node.
export function append(node, items, draw, count = PIECE) {
  node.append(...items.slice(0, count).map(draw));
  if (count < items.length) requestAnimationFrame(() => setTimeout(() => node.isConnected && append(node, items.slice(count), draw)));
}

// Returns a table of a result. `cells`: a function for each column that is shown in another way, by the name of the column.
// `isLong`: draws rows that an earlier table with this caption does not show in pieces; the caller puts the table on the page at once.
export function table(caption, result, cells = {}, isLong = false) {
  const head = result.columns.map((column) => element("th", { scope: "col", class: NUMBERS.has(column.type) ? "number" : null }, column.name));
  const body = element("tbody"), earlier = document.querySelector(`[aria-label="${CSS.escape(caption)}"] tbody`);
  append(body, result.rows, (row) => element("tr", {}, line(row, result.columns, cells)), isLong ? Math.max(PIECE, earlier?.rows.length ?? 0) : result.rows.length);
  const shown = result.rows.length ? [] : [element("p", { class: "quiet" }, "No rows.")];
  const parts = element("table", {}, element("caption", {}, caption), element("thead", {}, element("tr", {}, head)), body);
  return element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, parts, ...shown);
}

function line(row, columns, cells) {
  const record = Object.fromEntries(columns.map((column, index) => [column.name, row[index]]));
  return columns.map((column, index) => (cells[column.name] ? element("td", { class: NUMBERS.has(column.type) ? "number" : null }, cells[column.name](row[index], record)) : cell(row[index], column)));
}

// Returns the address of the page of a relation.
export function address(page, { schema, name }) {
  return `#/${page}/${encodeURIComponent(schema)}/${encodeURIComponent(name)}`;
}

// Returns a choice of relations, whose pages are below `page`, and a function that adds relations to it. `first`: the text of the page itself.
export function choice(page, label, first) {
  const select = element("select", { id: "relation", change: (event) => { location.hash = event.target.value; } }, element("option", { value: `#/${page}` }, first));
  const text = (row) => (row.schema === "public" ? row.name : `${row.schema}.${row.name}`);
  const add = (rows, schema, name) =>
    select.append(...rows.map((row) => element("option", { value: address(page, row), selected: row.schema === schema && row.name === name }, text(row))));
  return [element("div", { class: "row" }, element("label", { for: "relation" }, label), select), add];
}

export function failure(error) {
  const more = [error.detail, error.hint].filter(Boolean).map((text) => element("div", { class: "quiet" }, text));
  return element("div", { class: "error", role: "alert" }, element("strong", {}, error.sqlstate ? `${error.sqlstate}: ` : ""), error.message, more);
}

export function notice(text) {
  document.getElementById("notice").textContent = text;
}

// Asks before an action, and shows the statement that it executes. Returns whether the user agrees.
export function confirmed(question, statement) {
  const dialog = document.getElementById("confirm");
  document.getElementById("question").textContent = question;
  document.getElementById("statement").textContent = statement;
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((resolve) => dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true }));
}

const UNITS = ["bytes", "KiB", "MiB", "GiB", "TiB"];

export function bytes(text) {
  const power = Math.min(UNITS.length - 1, Math.floor(Math.log2(Math.max(1, Number(text))) / 10));
  return `${(Number(text) / 1024 ** power).toFixed(power ? 1 : 0)} ${UNITS[power]}`;
}

export function milliseconds(text) {
  if (text === null || text === undefined) return "unknown";
  const value = Number(text);
  if (value < 1000) return `${Math.round(value)} ms`;
  if (value < 60000) return `${(value / 1000).toFixed(1)} s`;
  return `${Math.round(value / 60000)} min`;
}
