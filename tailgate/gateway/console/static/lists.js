// The pages that are lists: connections, statements, subscriptions and sinks, settings.

import { confirmed, element, notice, table } from "/dom.js";
import { run } from "/sql.js";

const CONNECTIONS = `SELECT pid, usename, application_name, client_addr, backend_start, state, query_start, query FROM pg_stat_activity ORDER BY backend_start DESC LIMIT 500`;
const STATEMENTS = `SELECT statement, role, lane, calls, errors, rows, p50_ms, p95_ms, max_ms, total_ms, slowest_parameters, last_at FROM tailgate.statements ORDER BY total_ms DESC LIMIT 200`;
const SUBSCRIPTIONS = `SELECT s.schema, s.name, s.on_name, s.acknowledged, s.lag_ms, s.retention_ms, h.entries AS entries_held, h.bytes AS bytes_held, h.percent AS percent_of_limit, s.status, s.error
  FROM tailgate.subscriptions s LEFT JOIN tailgate.holds h ON h.schema = s.schema AND h.name = s.name AND h.kind = 'subscription' ORDER BY s.schema, s.name LIMIT 500`;
const SINKS = `SELECT s.schema, s.name, s.type, s.topic, h.age_ms AS held_for_ms, h.entries AS entries_held, h.bytes AS bytes_held, h.percent AS percent_of_limit, s.status, s.error
  FROM tailgate.sinks s LEFT JOIN tailgate.holds h ON h.schema = s.schema AND h.name = s.name AND h.kind = 'sink' ORDER BY s.schema, s.name LIMIT 500`;
const SETTINGS = `SELECT name, setting, unit, category, source, short_desc FROM pg_settings ORDER BY category, name`;

// Returns a page of lists that are read again and again. `lists`: caption, statement and cells of each.
function page(...lists) {
  return async (body, words, signal) => {
    const refresh = async () => {
      const results = await Promise.all(lists.map(([, sql]) => run(sql, signal)));
      body.replaceChildren(...lists.map(([caption, , cells], index) => table(caption, results[index], cells, true)));
    };
    await refresh();
    return refresh;
  };
}

function cancel(pid) {
  const statement = `SELECT pg_cancel_backend(${Number(pid)})`;
  const click = async () => {
    if (!(await confirmed("Cancel the statement of this connection?", statement))) return;
    try {
      const { rows } = await run(statement);
      notice(rows[0][0] === "t" ? "Canceled." : "The connection has ended.");
    } catch (error) {
      notice(error.message);
    }
  };
  return element("span", {}, pid, " ", element("button", { click, "aria-label": `Cancel the statement of ${pid}` }, "Cancel"));
}

export const connections = page(["Connections", CONNECTIONS, { pid: cancel }]);
export const statements = page(["Statements by their total time", STATEMENTS, { statement: (text) => element("code", {}, text) }]);
export const sinks = page(["Subscriptions", SUBSCRIPTIONS], ["Sinks", SINKS]);
export const settings = page(["Settings", SETTINGS]);
