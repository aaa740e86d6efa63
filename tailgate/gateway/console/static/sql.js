// Statements: each is a request, whose response is a stream of events with the result.

export class SqlError extends Error {
  constructor(fields) {
    super(fields.message);
    Object.assign(this, fields);
  }
}

export const identifier = (name) => `"${name.replaceAll('"', '""')}"`;
export const literal = (text) => `'${text.replaceAll("'", "''")}'`;
export const qualified = (schema, name) => `${identifier(schema)}.${identifier(name)}`;

// Executes a statement and calls `receive(kind, data)` for each of its events. Throws SqlError.
export async function stream(sql, receive, signal) {
  const response = await fetch("/statement", {
    method: "POST",
    headers: { "Content-Type": "application/json", "Tailgate-Console": "1" },
    body: JSON.stringify({ sql }),
    signal,
  });
  if (!response.ok) {
    const document = await response.json().catch(() => ({}));
    throw new SqlError(document.error ?? { message: `The server answers with status ${response.status}.` });
  }
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    const events = text.split("\n\n");
    text = events.pop();
    for (const event of events) {
      const [, kind, data] = event.match(/^event: (\w+)\ndata: (.*)$/s);
      if (kind === "error") throw new SqlError(JSON.parse(data));
      receive(kind, JSON.parse(data));
    }
  }
}

// Executes a statement and returns its result.
export async function run(sql, signal) {
  const result = { columns: [], rows: [], tag: "", truncated: false, notices: [] };
  await stream(sql, (kind, data) => {
    if (kind === "columns") result.columns = data;
    else if (kind === "rows") result.rows.push(...data);
    else Object.assign(result, data);
  }, signal);
  return result;
}

// Returns the rows of a result as objects.
export async function records(sql, signal) {
  const { columns, rows } = await run(sql, signal);
  return rows.map((row) => Object.fromEntries(columns.map((column, index) => [column.name, row[index]])));
}
