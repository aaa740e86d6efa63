// The page SQL: an editor with completion, results once or live, and plans as a drawing.

import { element, failure, table } from "/dom.js";
import { records, run, stream } from "/sql.js";

const NAMES = `SELECT DISTINCT table_name AS name FROM information_schema.tables
  UNION SELECT DISTINCT column_name FROM information_schema.columns WHERE table_schema NOT IN ('pg_catalog', 'information_schema')`;
const WORDS = ["SELECT", "FROM", "WHERE", "GROUP BY", "ORDER BY", "LIMIT", "JOIN", "LEFT JOIN", "CREATE MATERIALIZED VIEW", "CREATE TABLE", "INSERT INTO", "VALUES", "UPDATE", "DELETE FROM", "SHOW", "EXPLAIN", "TAIL", "AS OF", "HAVING", "DISTINCT"];
const CHOICES_MAX = 8;
const LIVE_ROWS_MAX = 500;

export async function editor(body, words, signal) {
  const text = element("textarea", { id: "text", spellcheck: "false", autocomplete: "off", "aria-label": "SQL statement", "aria-controls": "choices", placeholder: "SELECT … (Ctrl+Enter executes, Ctrl+Space completes)" });
  text.value = sessionStorage.getItem("sql") ?? "";
  const choices = element("ul", { class: "choices", id: "choices", role: "listbox", "aria-label": "Completions", hidden: true });
  const result = element("div", { "aria-live": "polite" });
  const page = { text, result, signal, running: null };
  const buttons = [
    element("button", { class: "main", click: () => execute(page, once) }, "Execute"),
    element("button", { click: () => execute(page, live) }, "Follow"),
    element("button", { click: () => execute(page, plan) }, "Explain"),
    element("button", { click: () => page.running?.abort() }, "Cancel"),
  ];
  body.append(text, choices, element("div", { class: "row" }, buttons), result);
  const completion = new Completion(text, choices);
  text.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      execute(page, once);
    } else completion.key(event);
  });
  text.addEventListener("input", () => sessionStorage.setItem("sql", text.value));
  text.focus();
  completion.names = [...WORDS, ...(await records(NAMES, signal).catch(() => [])).map((row) => row.name)];
  return null;
}

async function execute(page, how) {
  page.running?.abort();
  const running = (page.running = new AbortController());
  page.signal.addEventListener("abort", () => running.abort(), { once: true });
  const sql = page.text.value.trim().replace(/;\s*$/, "");
  if (!sql) return;
  page.result.replaceChildren(element("p", { class: "quiet" }, "Running …"));
  const began = performance.now();
  try {
    await how(sql, page, running.signal, () => `${Math.round(performance.now() - began)} ms`);
  } catch (error) {
    if (running.signal.aborted && page.running === running) page.result.append(element("p", { class: "quiet" }, "Canceled."));
    else if (!running.signal.aborted) {
      page.result.replaceChildren(failure(error));
      if (error.position) page.text.setSelectionRange(error.position - 1, error.position);
    }
  }
}

async function once(sql, page, signal, time) {
  const result = await run(sql, signal);
  const notes = result.notices.map((text) => element("p", { class: "warn" }, text));
  const more = result.truncated ? ` (only the first ${result.rows.length} rows)` : "";
  const shown = result.columns.length ? [table(`${result.tag || "Rows"} – ${time()}${more}`, result)] : [element("p", { class: "good" }, `${result.tag} – ${time()}`)];
  page.result.replaceChildren(...notes, ...shown);
}

async function live(sql, page, signal) {
  const following = /^\s*(tail|subscribe)\b/i.test(sql) ? sql : `TAIL (${sql})`;
  let body = null;
  await stream(following, (kind, data) => {
    if (kind === "columns") {
      const view = table("Changes, the newest first", { columns: data, rows: [] });
      view.querySelector("p")?.remove();
      body = view.querySelector("tbody");
      page.result.replaceChildren(view);
    } else if (kind === "rows") {
      for (const row of data) body.prepend(element("tr", {}, row.map((value) => element("td", { class: value === null ? "null" : null }, value ?? "NULL"))));
      while (body.rows.length > LIVE_ROWS_MAX) body.lastChild.remove();
    }
  }, signal);
}

async function plan(sql, page, signal) {
  const result = await run(/^\s*explain\b/i.test(sql) ? sql : `EXPLAIN ${sql}`, signal);
  page.result.replaceChildren(tree(result.rows.map(([line]) => line)));
}

// Returns the lines of EXPLAIN as nested lists, by their indentation.
export function tree(lines) {
  const root = element("ul", { class: "plan" });
  const open = [{ depth: -1, list: root }];
  for (const line of lines) {
    const [, indent, text] = line.match(/^([\s│├└─]*)(.*)$/);
    while (open[open.length - 1].depth >= indent.length) open.pop();
    const list = element("ul");
    open[open.length - 1].list.append(element("li", {}, element("span", { class: "node" }, text), list));
    open.push({ depth: indent.length, list });
  }
  for (const list of root.querySelectorAll("ul")) if (!list.children.length) list.remove();
  return root;
}

// Completes the word before the cursor with names of the catalog.
class Completion {
  constructor(text, list) {
    Object.assign(this, { text, list, names: WORDS, found: [], index: 0 });
    text.addEventListener("input", () => this.update(false));
    text.addEventListener("blur", () => setTimeout(() => this.hide(), 150));
  }

  word() {
    return this.text.value.slice(0, this.text.selectionStart).match(/[\p{L}\p{N}_]*$/u)[0];
  }

  update(always) {
    const word = this.word().toLowerCase();
    this.found = word || always ? this.names.filter((name) => name.toLowerCase().startsWith(word) && name.toLowerCase() !== word).slice(0, CHOICES_MAX) : [];
    this.index = 0;
    this.show();
  }

  show() {
    this.list.hidden = !this.found.length;
    this.list.replaceChildren(...this.found.map((name, index) =>
      element("li", { role: "option", id: `choice${index}`, "aria-selected": String(index === this.index), mousedown: (event) => { event.preventDefault(); this.take(index); } }, name)));
    if (this.found.length) this.text.setAttribute("aria-activedescendant", `choice${this.index}`);
    else this.text.removeAttribute("aria-activedescendant");
  }

  hide() {
    this.found = [];
    this.show();
  }

  key(event) {
    if (event.key === " " && event.ctrlKey) this.update(true);
    else if (!this.found.length) return;
    else if (event.key === "ArrowDown") this.move(1);
    else if (event.key === "ArrowUp") this.move(-1);
    else if (event.key === "Tab") this.take(this.index);
    else if (event.key === "Escape") this.hide();
    else return;
    event.preventDefault();
  }

  move(step) {
    this.index = (this.index + step + this.found.length) % this.found.length;
    this.show();
  }

  take(index) {
    const name = this.found[index];
    const plain = WORDS.includes(name) || /^[a-z_][a-z0-9_]*$/.test(name);
    const end = this.text.selectionStart;
    this.text.setRangeText(plain ? name : `"${name.replaceAll('"', '""')}"`, end - this.word().length, end, "end");
    sessionStorage.setItem("sql", this.text.value);
    this.hide();
  }
}
