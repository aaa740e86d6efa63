// The page Dead letters: records that could not be decoded, by source and reason.

import { choice, confirmed, element, failure, notice, table } from "/dom.js";
import { literal, qualified, records, run } from "/sql.js";

const SOURCES = "SELECT schema, name, coalesce(dead_letters, 0) > 0 AS recent FROM tailgate.sources ORDER BY recent DESC, schema, name LIMIT 500";
const SHOWN_MAX = 200; // sources

// Shows the dead letters of one source, or without words those of the sources that have had new ones since the engine started.
export async function deadLetters(body, [schema, name], signal) {
  const refresh = async () => {
    const sources = await records(SOURCES, signal);
    const [choose, add] = choice("letters", "Source", "All with new dead letters since the engine started");
    add(sources, schema, name);
    const shown = sources.filter((source) => (name ? source.schema === schema && source.name === name : source.recent === "t")).slice(0, SHOWN_MAX);
    const parts = [];
    for (const source of shown) parts.push(...(await letters(source, signal, refresh)));
    const none = name ? "There are no dead letters." : "There are no new dead letters.";
    body.replaceChildren(choose, ...(parts.length ? parts : [element("p", { class: "good" }, none)]));
  };
  await refresh();
  return null;
}

async function letters(source, signal, refresh) {
  const from = qualified(source.schema, `${source.name}_dead_letters`);
  const title = `${source.schema}.${source.name}`;
  try {
    const [{ count }] = await records(`SELECT count(*) AS count FROM ${from}`, signal);
    if (Number(count) === 0) return []; // deleted, or decoded again, since the engine has counted them
    const [{ may }] = await records(`SELECT pg_has_role(relowner, 'USAGE') AS may FROM pg_class WHERE oid = ${literal(qualified(source.schema, source.name))}::regclass`, signal);
    const reasons = await run(`SELECT error, count(*) AS records, max(since) AS newest FROM ${from} GROUP BY error ORDER BY count(*) DESC LIMIT 20`, signal);
    const newest = await run(`SELECT partition, "offset", since, attempts, error, encode(key, 'escape') AS key, encode(value, 'escape') AS value FROM ${from} ORDER BY since DESC LIMIT 50`, signal);
    return [element("h3", {}, `${title}: ${count}`), may === "t" ? retry(source, refresh) : "", table("Reasons", reasons), table("The newest records", newest)];
  } catch (error) {
    return [element("h3", {}, title), failure(error)];
  }
}

function retry(source, refresh) {
  const statement = `RETRY DEAD LETTERS OF ${qualified(source.schema, source.name)}`;
  const click = async () => {
    if (!(await confirmed(`Decode the dead letters of ${source.name} again?`, statement))) return;
    try {
      notice((await run(statement)).tag);
      await refresh();
    } catch (error) {
      notice(error.message);
    }
  };
  return element("button", { click }, "Retry");
}
