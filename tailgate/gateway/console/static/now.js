// The page Now: alerts, freshness lag against objectives, sources, sinks.

import { element, milliseconds, table } from "/dom.js";
import { run } from "/sql.js";

const ALERTS = `SELECT alert, key, severity, summary, hint, since FROM tailgate.alerts WHERE state = 'firing' ORDER BY since DESC LIMIT 50`;
const PHASES = ["kafka_ms", "wait_ms", "tick_ms", "commit_ms", "mirror_ms"];
// the figures of all relations are computed for each statement that reads them, so one statement has both tables
const FRESHNESS = `SELECT f.schema, f.name, f.kind, f.lag_ms, f.p95_minute_ms, f.max_minute_ms, o.name AS objective, o.state, o.goals, f.unknown,
  f.kafka_ms, f.wait_ms, f.tick_ms, f.commit_ms, f.mirror_ms
  FROM tailgate.freshness f LEFT JOIN tailgate.objectives o ON o.on_name = f.name OR o.on_name = f.schema || '.' || f.name
  ORDER BY o.state = 'violated' DESC, f.lag_ms DESC, f.name LIMIT 500`;
const SOURCES = `SELECT schema, name, status, per_second, lag, dead_letters, last_message FROM tailgate.sources ORDER BY schema, name LIMIT 500`;
const SINKS = `SELECT schema, name, status, topic FROM tailgate.sinks ORDER BY schema, name LIMIT 500`;
const VIEWS = `SELECT schema, name, status, rows, percent FROM tailgate.materialized_views WHERE status <> 'running' ORDER BY schema, name LIMIT 500`;

export const stateClass = (state) => (["running", "met", "paused"].includes(state) ? "good" : state === "filling" ? "warn" : "bad");
const state = (text) => element("span", { class: text === null ? "quiet" : stateClass(text) }, text ?? "–");
const link = (name, row) => element("a", { href: `#/relation/${encodeURIComponent(row.schema)}/${encodeURIComponent(row.name)}` }, name);

export async function now(body, words, signal) {
  const refresh = async () => {
    const [alerts, lags, sources, sinks, views] = await Promise.all([ALERTS, FRESHNESS, SOURCES, SINKS, VIEWS].map((sql) => run(sql, signal)));
    const count = lags.columns.length - PHASES.length;
    const freshness = { columns: lags.columns.slice(0, count), rows: lags.rows.map((row) => row.slice(0, count)) };
    const ticks = { columns: lags.columns.slice(count), rows: [PHASES.map((_, phase) => largest(lags.rows.map((row) => row[count + phase])))] };
    body.replaceChildren(
      firing(alerts),
      table("Freshness lag of relations", freshness, { name: link, state, lag_ms: (value, row) => lag(value, row), p95_minute_ms: short, max_minute_ms: short }),
      table("Where the newest records spent their time, at most", ticks, Object.fromEntries(ticks.columns.map((column) => [column.name, short]))),
      table("Sources", sources, { name: link, status: state }),
      table("Sinks", sinks, { status: state }),
      views.rows.length ? table("Views that are not running", views, { name: link, status: state }) : "",
    );
  };
  await refresh();
  return refresh;
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
