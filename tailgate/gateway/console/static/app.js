// The pages, by the fragment of the address: #/map, #/relation/public/orders.

import { element, failure, notice } from "/dom.js";
import { records } from "/sql.js";
import { deadLetters } from "/letters.js";
import { connections, settings, sinks, statements } from "/lists.js";
import { map } from "/map.js";
import { now } from "/now.js";
import { relation } from "/relation.js";
import { editor } from "/editor.js";

const PAGES = {
  now: ["Now", now], map: ["Map", map], relation: ["Relation", relation], letters: ["Dead letters", deadLetters], sql: ["SQL", editor],
  connections: ["Connections", connections], statements: ["Statements", statements], sinks: ["Subscriptions and sinks", sinks],
  settings: ["Settings", settings],
};
const REFRESH_MS = 5000;
let open = new AbortController();

function visit() {
  open.abort();
  open = new AbortController();
  const [name, ...words] = location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
  const [title, page] = PAGES[name] ?? PAGES.now;
  for (const link of document.querySelectorAll("#pages a")) {
    if (link.textContent === title) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${title} – Tailgate`;
  notice("");
  const main = document.getElementById("main");
  const body = element("div");
  main.replaceChildren(element("h2", {}, title), body);
  show(page, body, words, open.signal);
}

// Shows a page. A page is a function (body, words, signal) that fills the body; if it returns a function, this is called again and again.
async function show(page, body, words, signal) {
  try {
    const refresh = await page(body, words, signal);
    while (refresh && !signal.aborted) {
      await new Promise((resolve) => setTimeout(resolve, REFRESH_MS));
      if (!signal.aborted && !document.hidden) {
        try {
          await refresh();
          notice("");
        } catch (error) {
          if (!signal.aborted) notice(`Not up to date: ${error.message}`);
        }
      }
    }
  } catch (error) {
    if (!signal.aborted) body.append(failure(error));
  }
}

async function begin() {
  const links = Object.entries(PAGES).map(([name, [title]]) => element("a", { href: `#/${name}` }, title));
  document.getElementById("pages").append(...links);
  addEventListener("hashchange", () => {
    visit();
    document.getElementById("main").focus();
  });
  visit();
  try {
    const [user] = await records("SELECT current_user AS name");
    document.getElementById("user").append(`Role ${user.name} `, element("a", { href: "/sign-in" }, "Sign in"));
  } catch (error) {
    notice(error.message);
  }
}

begin();
