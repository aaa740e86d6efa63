// The page Map: sources, views and sinks as a graph, with the definition and the costs of one of them.

import { PIECE, address, append, drawn, element, failure, milliseconds, table } from "/dom.js";
import { qualified, records, run } from "/sql.js";
import { stateClass } from "/now.js";

const WIDTH = 190, HEIGHT = 52, GAP = 26, BETWEEN = 90;
const KINDS = ["source", "table", "view", "materialized view", "sink", "endpoint", "subscription"];
// the engine is asked for each statement that reads its status, so one statement has all nodes
const NODES = `SELECT f.schema, f.name, f.kind, f.lag_ms, coalesce(s.status, m.status, 'running') AS status, s.per_second
  FROM tailgate.freshness f
  LEFT JOIN tailgate.sources s ON s.schema = f.schema AND s.name = f.name
  LEFT JOIN tailgate.materialized_views m ON m.schema = f.schema AND m.name = f.name
  UNION ALL SELECT schema, name, 'sink', NULL, status, NULL FROM tailgate.sinks ORDER BY schema, name LIMIT 800`;
const EDGES = `SELECT schema, name, kind, on_schema, on_name, on_kind FROM tailgate.dependencies
  WHERE kind IN ('view', 'materialized view', 'sink', 'endpoint', 'subscription') LIMIT 5000`;

export async function map(body, words, signal) {
  const detail = element("div", { "aria-live": "polite" });
  const picture = element("div", { class: "scroll" });
  body.append(picture, detail);
  let chosen = null;
  const refresh = async () => {
    const [nodes, edges] = await Promise.all([NODES, EDGES].map((sql) => records(sql, signal)));
    const graph = graphOf(nodes, edges);
    const focused = document.activeElement?.dataset?.key, isFirst = !picture.firstChild;
    picture.replaceChildren(graph.length ? svg(graph, chosen, choose, isFirst ? PIECE : graph.length) : element("p", { class: "quiet" }, "There are no relations yet."));
    if (focused) picture.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus();
  };
  const choose = async (node) => {
    chosen = node.key;
    for (const other of picture.querySelectorAll("g[role=button]")) other.setAttribute("aria-pressed", other.dataset.key === chosen);
    detail.replaceChildren(...(await details(node, signal)));
  };
  await refresh();
  return refresh;
}

function graphOf(nodes, edges) {
  const all = new Map();
  const add = (node) => all.set(node.key, { ...node, inputs: [], level: 0 });
  const keyOf = ({ schema, name, kind }) => (kind === "sink" ? `sink ${schema}.${name}` : `${schema}.${name}`);
  for (const node of nodes) add({ ...node, key: keyOf(node) });
  for (const edge of edges) {
    const key = keyOf(edge);
    if (!all.has(key) && KINDS.includes(edge.kind)) add({ schema: edge.schema, name: edge.name, kind: edge.kind, key, status: "running" });
    const input = all.get(`${edge.on_schema}.${edge.on_name}`);
    if (input && all.has(key)) all.get(key).inputs.push(input);
  }
  for (let round = 0, moved = true; moved && round < all.size; round += 1) {
    moved = false;
    for (const node of all.values()) {
      const level = Math.max(0, ...node.inputs.map((input) => input.level + 1));
      if (level > node.level) [node.level, moved] = [level, true];
    }
  }
  return placed([...all.values()]);
}

// Gives each node its place: a column for each level, and within it the order of the nodes that it reads. Returns them from top to bottom.
function placed(nodes) {
  const columns = [];
  for (const node of nodes) (columns[node.level] ??= []).push(node);
  columns.forEach((column, level) => {
    const middle = (node) => node.inputs.reduce((sum, input) => sum + (input.y ?? 0), 0) / (node.inputs.length || 1);
    if (level) column.sort((a, b) => middle(a) - middle(b));
    column.forEach((node, index) => Object.assign(node, { x: level * (WIDTH + BETWEEN) + 10, y: index * (HEIGHT + GAP) + 10 }));
  });
  return nodes.sort((a, b) => a.y - b.y || a.x - b.x);
}

// Returns the picture. `count`: how many nodes are drawn at once.
function svg(nodes, chosen, choose, count) {
  const width = Math.max(...nodes.map((node) => node.x)) + WIDTH + 10;
  const height = Math.max(...nodes.map((node) => node.y)) + HEIGHT + 10;
  const edges = drawn("g"), boxes = drawn("g");
  append(edges, nodes, (node) => drawn("g", {}, node.inputs.map((input) => edge(input, node))), count);
  append(boxes, nodes, (node) => box(node, node.key === chosen, choose), count);
  return drawn("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": "Relations and what reads them" }, edges, boxes);
}

function edge(from, to) {
  const [x, y, u, v] = [from.x + WIDTH, from.y + HEIGHT / 2, to.x, to.y + HEIGHT / 2];
  return drawn("path", { class: "edge", d: `M${x},${y} C${x + BETWEEN / 2},${y} ${u - BETWEEN / 2},${v} ${u},${v}` });
}

function box(node, pressed, choose) {
  const rate = node.per_second ? `${Number(node.per_second).toFixed(1)}/s` : null;
  const lag = node.kind === "sink" || node.lag_ms === undefined ? null : node.lag_ms === null ? "lag unknown" : `lag ${milliseconds(node.lag_ms)}`;
  const facts = [node.kind, node.status === "running" ? null : node.status, rate, lag].filter(Boolean).join(" · ");
  const title = node.name.length > 22 ? `${node.name.slice(0, 21)}…` : node.name;
  const key = (event) => {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      choose(node);
    }
  };
  return drawn("g", { role: "button", tabindex: "0", class: stateClass(node.status), "data-key": node.key, "aria-pressed": String(pressed), click: () => choose(node), keydown: key },
    drawn("title", {}, `${node.name}: ${facts}`),
    drawn("rect", { x: node.x, y: node.y, width: WIDTH, height: HEIGHT, rx: 6 }),
    drawn("text", { x: node.x + 10, y: node.y + 21 }, title),
    drawn("text", { x: node.x + 10, y: node.y + 40, class: "small" }, facts.length > 30 ? `${facts.slice(0, 29)}…` : facts));
}

async function details(node, signal) {
  const name = qualified(node.schema, node.name);
  const parts = [element("h3", {}, `${node.kind} ${node.schema}.${node.name}`)];
  if (["source", "table", "view", "materialized view"].includes(node.kind)) {
    parts.push(element("p", {}, element("a", { href: address("relation", node) }, "Rows and history")));
  }
  parts.push(...(await shown(`SHOW CREATE ${node.kind.toUpperCase()} ${name}`, (result) => element("pre", {}, result.rows[0][1]), signal)));
  if (node.kind === "materialized view") {
    parts.push(...(await shown(`EXPLAIN ANALYZE MATERIALIZED VIEW ${name}`, costs, signal)));
    parts.push(...(await shown(`SHOW ERRORS FROM ${name}`, (result) => (result.rows.length ? table("Errors", result) : null), signal)));
  }
  return parts.filter(Boolean);
}

async function shown(sql, form, signal) {
  try {
    return [form(await run(sql, signal))];
  } catch (error) {
    return signal.aborted ? [] : [failure(error)];
  }
}

const WORK = /last (\d+) ticks: ([\d,]+) changes in, ([\d,]+) out, ([\d.,]+) ms(?:, ([\d.]+) % of the ticks)?/;
const STATE = /state: ([\d,]+) entr\w+, about ([\d,]+) bytes/;
const number = (text) => (text === undefined ? null : text.replaceAll(",", ""));

// Returns the plan of a view as a table with the cost of each node.
export function costs(result) {
  const lines = result.rows.map(([text]) => {
    const [node, how = ""] = text.split(/\s{2,}maintained by: /);
    const [, ticks, rowsIn, rowsOut, time, share] = how.match(WORK) ?? [];
    const [, entries, bytes] = how.match(STATE) ?? [];
    return { node, how: how.split(/[,;]/)[0], ticks, rowsIn, rowsOut, time, share, entries, bytes };
  });
  const perTick = (line) => (line.time === undefined ? null : String(Math.round((1000 * Number(number(line.time))) / Math.max(1, Number(line.ticks)))));
  const names = ["node", "maintained by", "rows of state", "bytes", "changes in", "out", "µs per tick", "% of the ticks"];
  return table("Plan and costs in the last ticks", {
    columns: names.map((name, index) => ({ name, type: index < 2 ? "text" : "int8" })),
    rows: lines.map((line) => [line.node, line.how, number(line.entries), number(line.bytes), number(line.rowsIn), number(line.rowsOut), perTick(line), line.share ?? null]),
  }, { node: (text) => element("code", {}, text), "% of the ticks": share });
}

function share(percent) {
  if (percent === null) return element("span", { class: "quiet" }, "–");
  return element("span", {}, element("meter", { min: 0, max: 100, value: percent, "aria-label": "Share of the ticks' time" }), ` ${percent}`);
}
