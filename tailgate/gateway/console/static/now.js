// The page Now: alerts, freshness lag against objectives, sources, sinks.

import { address, element, milliseconds, table } from "/dom.js";
import { run } from "/sql.js";

const ALERTS = `SELECT alert, key, severity, summary, hint, since FROM tailgate.alerts WHERE state = 'firing' ORDER BY since DESC LIMIT 50`;
const PHASES = ["kafka_ms", "wait_ms", "tick_ms", "commit_ms", "mirror_ms"];
// the figures of all relations are computed for each statement that reads them, so one statement has both tables
const FRESHNESS = `SELECT f.schema, f.name, f.kind, f.lag_ms, f.p95_minute_ms, f.max_minute_ms, o.name AS objective, o.state, o.goals, f.unknown,
  f.kafka_ms, f.wait_ms, f.tick_ms, f.commit_ms, f.mirror_ms
  FROM tailgate.freshness f LEFT JOIN tailgate.objectives o ON o.on_name = f.name OR o.on_name = f.schema || '.' || f.name
  ORDER BY o.state = 'violated' DESC, f.lag_ms DESC, f.name LIMIT 500`;
// the engine is asked for each statement that reads one of these relations, so one statement has all three, and without `lag` it asks no broker; those that run are left out first
const ITEMS = `SELECT * FROM (
    SELECT 'source' AS kind, schema, name, status, per_second, dead_letters, last_message, NULL::text AS topic, NULL::bigint AS rows, NULL::float8 AS percent FROM tailgate.sources
    UNION ALL SELECT 'sink', schema, name, status, NULL, NULL, NULL, topic, NULL, NULL FROM tailgate.sinks
    UNION ALL SELECT 'view', schema, name, status, NULL, NULL, NULL, NULL, rows, percent FROM tailgate.materialized_views WHERE status <> 'running'
  ) AS items ORDER BY status = 'running', schema, name LIMIT 1000`;
const COLUMNS = {
  source: ["schema", "name", "status", "per_second", "dead_letters", "last_message"], sink: ["schema", "name", "status", "topic"],
  view: ["schema", "name", "status", "rows", "percent"],
};

export const stateClass = (state) => (["running", "met", "paused"].includes(state) ? "good" : state === "filling" ? "warn" : "bad");
const state = (text) => element("span", { class: text === null ? "quiet" : stateClass(text) }, text ?? "–");
const link = (name, row) => element("a", { href: address("relation", row) }, name);

export async function now(body, words, signal) {
  const refresh = async () => {
    const [alerts, lags, items] = await Promise.all([ALERTS, FRESHNESS, ITEMS].map((sql) => run(sql, signal)));
    const [sources, sinks, views] = ["source", "sink", "view"].map((kind) => only(items, kind));
    const count = lags.columns.length - PHASES.length;
    const freshness = { columns: lags.columns.slice(0, count), rows: lags.rows.map((row) => row.slice(0, count)) };
    const ticks = { columns: lags.columns.slice(count), rows: [PHASES.map((_, phase) => largest(lags.rows.map((row) => row[count + phase])))] };
    body.replaceChildren(
      firing(alerts),
      table("Freshness lag of relations", freshness, { name: link, state, lag_ms: (value, row) => lag(value, row), p95_minute_ms: short, max_minute_ms: short }, true),
      table("Where the newest records spent their time, at most", ticks, Object.fromEntries(ticks.columns.map((column) => [column.name, short]))),
      table("Sources", sources, { name: link, status: state }),
      table("Sinks", sinks, { status: state }),
      views.rows.length ? table("Views that are not running", views, { name: link, status: state }) : "",
    );
  };
  await refresh();
  return refresh;
}

// Returns the rows of one kind, with its columns.
function only(items, kind) {
  const places = COLUMNS[kind].map((name) => items.columns.findIndex((column) => column.name === name));
  const rows = items.rows.filter((row) => row[0] === kind).map((row) => places.map((place) => row[place]));
  return { columns: places.map((place) => items.columns[place]), rows };
}

function short(value) {
  return value === null ? element("span", { class: "quiet" }, "–") : milliseconds(value);
}

function largest(values) {
  const numbers = values.filter((value) => value !== null).map(Number);
  return numbers.length ? String(Math.max(...numbers)) : null;
}

function lag(value, row) {
  if (value === null) return element("span", { class: "bad" }, `unknown: ${row.unknown ?? ""}`);
  return element("span", { class: row.state === "violated" ? "bad" : null }, milliseconds(value));
}

function firing(alerts) {
  if (!alerts.rows.length) return element("p", { class: "good" }, "No alert is firing.");
  return element("div", {}, alerts.rows.map(([alert, key, severity, summary, hint, since]) =>
    element("div", { class: `alert ${severity === "page" ? "page" : ""}`, role: "alert" },
      element("strong", {}, alert), ` ${key ?? ""} – ${summary ?? ""} `, element("span", { class: "quiet" }, `since ${since}. ${hint ?? ""}`))));
}
