// The page Relation: rows as they change, rows at a time of the past, and the history of freshness lag and size.

import { bytes, cell, choice, drawn, element, failure, milliseconds, notice, table } from "/dom.js";
import { literal, qualified, records, run, stream } from "/sql.js";

const ROWS_MAX = 200; // shown
const PAST_S = 3600;
const LEADING = 2; // mz_timestamp, mz_diff
const MARK_MS = 1500;
const LAG = `SELECT lag_ms, unknown, p95_hour_ms, max_hour_ms FROM tailgate.freshness`;
const LAGS = `SELECT at, p50_ms, max_ms FROM tailgate.freshness_history`;
const SIZES = `SELECT at, rows, bytes FROM tailgate.size_history`;

export async function relation(body, [schema, name], signal) {
  const [choose, add] = choice("relation", "Relation", "Choose a relation");
  body.append(choose);
  const names = records("SELECT schema, name FROM tailgate.freshness ORDER BY schema, name", signal).then((all) => add(all, schema, name));
  if (!name) {
    await names;
    return null;
  }
  const rows = element("div"), graphs = element("div");
  const view = { schema, name, rows, signal, live: null };
  body.append(controls(view), rows, graphs);
  const refresh = async () => graphs.replaceChildren(...(await history(schema, name, signal)));
  await Promise.all([names, follow(view), refresh()]);
  return refresh;
}

function controls(view) {
  const output = element("output", { for: "past" }, "now");
  const slider = element("input", { id: "past", type: "range", min: -PAST_S, max: 0, value: 0, step: 1, "aria-label": "Seconds before now" });
  slider.addEventListener("input", () => { output.textContent = Number(slider.value) ? `${-slider.value} s ago` : "now"; });
  slider.addEventListener("change", () => (Number(slider.value) ? past(view, -slider.value) : follow(view)));
  return element("div", { class: "row" }, element("label", { for: "past" }, "Rows as of"), slider, output);
}

// Shows rows at a time, and no changes.
async function past(view, seconds) {
  view.live?.abort();
  try {
    const at = Date.now() - 1000 * seconds;
    const result = await run(`SELECT * FROM ${qualified(view.schema, view.name)} LIMIT ${ROWS_MAX} AS OF ${at}`, view.signal);
    view.rows.replaceChildren(table(`Rows as of ${new Date(at).toISOString()}`, result));
  } catch (error) {
    if (!view.signal.aborted) view.rows.replaceChildren(failure(error));
  }
}

// Shows rows and their changes, until the page is left or another time is chosen.
async function follow(view) {
  view.live?.abort();
  const live = (view.live = new AbortController());
  view.signal.addEventListener("abort", () => live.abort(), { once: true });
  const name = qualified(view.schema, view.name);
  try {
    const timed = await run(`SELECT mz_now()::text, r.* FROM ${name} r LIMIT ${ROWS_MAX}`, live.signal);
    const time = timed.rows.length ? timed.rows[0][0] : (await run("SELECT mz_now()::text", live.signal)).rows[0][0];
    const shown = new Shown({ columns: timed.columns.slice(1), rows: timed.rows.map((row) => row.slice(1)) });
    view.rows.replaceChildren(shown.view);
    stream(`TAIL ${name} WITH (SNAPSHOT = false) AS OF ${time}`, (kind, data) => kind === "rows" && shown.change(data), live.signal)
      .catch((error) => live.signal.aborted || notice(`Rows are not followed: ${error.message}`));
  } catch (error) {
    if (!live.signal.aborted) view.rows.replaceChildren(failure(error));
  }
}

// The rows of a table on the page, by their contents.
class Shown {
  constructor(result) {
    this.columns = result.columns;
    this.view = table(`Rows, at most ${ROWS_MAX}, and their changes`, { columns: this.columns, rows: [] });
    this.view.querySelector("p")?.remove();
    this.body = this.view.querySelector("tbody");
    this.lines = new Map();
    for (const row of result.rows) this.add(row, null);
  }

  add(row, before) {
    const key = JSON.stringify(row);
    const cells = row.map((value, index) => cell(value, this.columns[index]));
    const line = element("tr", { class: before === undefined || before ? "changed" : null }, cells);
    if (!this.lines.has(key)) this.lines.set(key, []);
    this.lines.get(key).push(line);
    if (before) before.replaceWith(line);
    else if (before === undefined) this.body.prepend(line);
    else this.body.append(line);
    if (before !== null) setTimeout(() => line.classList.remove("changed"), MARK_MS);
  }

  remove(row) {
    const key = JSON.stringify(row);
    const line = this.lines.get(key)?.pop();
    if (this.lines.get(key)?.length === 0) this.lines.delete(key);
    return line;
  }

  // Applies changes: removed lines are replaced by added ones, in order, so that an update stays in its place.
  change(changes) {
    const gone = [];
    for (const row of changes) {
      for (let copy = Number(row[1]); copy < 0; copy += 1) {
        const line = this.remove(row.slice(LEADING));
        if (line) gone.push(line);
      }
    }
    for (const row of changes) {
      for (let copy = 0; copy < Number(row[1]); copy += 1) this.add(row.slice(LEADING), gone.shift());
    }
    for (const line of gone) line.remove();
    while (this.body.rows.length > ROWS_MAX) this.forget(this.body.rows[this.body.rows.length - 1]);
  }

  forget(line) {
    for (const [key, lines] of this.lines) {
      if (lines.includes(line)) {
        lines.splice(lines.indexOf(line), 1);
        if (!lines.length) this.lines.delete(key);
        break;
      }
    }
    line.remove();
  }
}

// Returns the history of a relation's freshness lag and of its size.
async function history(schema, name, signal) {
  const where = `WHERE schema = ${literal(schema)} AND name = ${literal(name)}`;
  const hour = `${where} AND at > now() - interval '1 hour' ORDER BY at DESC`;
  const [[now], lags, sizes] = await Promise.all([`${LAG} ${where}`, `${LAGS} ${hour}`, `${SIZES} ${hour}`].map((sql) => records(sql, signal)));
  if (!now) return [element("p", { class: "quiet" }, "The relation does not exist, or may not be read.")];
  const words = now.lag_ms === null ? `unknown: ${now.unknown}` : milliseconds(now.lag_ms);
  const lag = `Now ${words}; last hour: p95 ${milliseconds(now.p95_hour_ms)}, max ${milliseconds(now.max_hour_ms)}.`;
  return [
    element("h3", {}, "Freshness lag"), element("p", {}, lag), chart("Freshness lag", lags, { max_ms: "peak", p50_ms: null }, milliseconds),
    element("h3", {}, "Size"), ...size(sizes),
  ];
}

function size(steps) {
  if (!steps.length) return [element("p", { class: "quiet" }, "The relation is not stored, or its size has not been recorded in the last hour.")];
  const [newest] = steps, words = newest.rows === null ? "The number of rows is not known" : count(newest.rows);
  const rows = newest.rows === null ? [] : [chart("Rows", steps, { rows: null }, count)];
  return [element("p", {}, `${words}; ${bytes(newest.bytes)}.`), ...rows, chart("Bytes", steps, { bytes: null }, bytes)];
}

function count(text) {
  return `${Number(text).toLocaleString("en")} ${text === "1" ? "row" : "rows"}`;
}

// Draws columns of steps, the newest of which is the first. `lines`: the class of the line of each column. `words`: the text of a value.
function chart(label, steps, lines, words) {
  if (steps.length < 2) return element("p", { class: "quiet" }, "There is no history yet.");
  const [width, height, bottom] = [720, 140, 120], last = steps.length - 1;
  const most = Math.max(1, ...Object.keys(lines).flatMap((name) => steps.map((step) => Number(step[name] ?? 0))));
  const points = (name) => steps.map((step, index) => `${((last - index) * width) / last},${bottom - (Number(step[name] ?? 0) * (bottom - 20)) / most}`).join(" ");
  return drawn("svg", { viewBox: `0 0 ${width} ${height}`, width: "100%", height, role: "img", "aria-label": `${label} by 10 s, at most ${words(String(most))}` },
    drawn("line", { x1: 0, y1: bottom, x2: width, y2: bottom }),
    Object.entries(lines).map(([name, kind]) => drawn("polyline", { class: kind, points: points(name) })),
    drawn("text", { x: 4, y: 14, class: "small" }, words(String(most))), drawn("text", { x: 4, y: 136, class: "small" }, steps[last].at),
    drawn("text", { x: width - 4, y: 136, class: "small", "text-anchor": "end" }, steps[0].at));
}
