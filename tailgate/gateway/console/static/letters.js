// The page Dead letters: records that could not be decoded, by source and reason.

import { confirmed, element, failure, notice, table } from "/dom.js";
import { qualified, records, run } from "/sql.js";

const SOURCES = "SELECT schema, name FROM tailgate.sources WHERE dead_letters > 0 ORDER BY schema, name LIMIT 200";

export async function deadLetters(body, words, signal) {
  const refresh = async () => {
    const sources = await records(SOURCES, signal);
    const parts = [];
    for (const source of sources) parts.push(...(await letters(source, signal, refresh)));
    body.replaceChildren(...(parts.length ? parts : [element("p", { class: "good" }, "There are no dead letters.")]));
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
    const reasons = await run(`SELECT error, count(*) AS records, max(since) AS newest FROM ${from} GROUP BY error ORDER BY count(*) DESC LIMIT 20`, signal);
    const newest = await run(`SELECT partition, "offset", since, attempts, error, encode(key, 'escape') AS key, encode(value, 'escape') AS value FROM ${from} ORDER BY since DESC LIMIT 50`, signal);
    return [element("h3", {}, `${title}: ${count}`), retry(source, refresh), table("Reasons", reasons), table("The newest records", newest)];
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
