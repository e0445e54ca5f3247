// A sheet of questions in one file. Answers stay in this browser until they are saved as a file of
// JSON lines, a line for each row of the sheet. Texts only ever become text nodes.

const $ = (id) => document.getElementById(id);
const sheet = JSON.parse($("data").textContent);
const rows = sheet.units.flat().map((row) => Object.entries(row).map(([name, at]) => [name, sheet.texts[at]]));
const cells = rows.map((row) => new Map(row));
const ABOUT = ["item", "check", "annotator", "group", "entry", "question", "answers"];
const LONG = 4000;
const TURN = /\n(?=\d+\. [^\n:]{1,60}:)/;
// Invisible characters are shown as code points, except blanks and the joiners of scripts and emoji.
const UNSEEN = /((?![\n\t\u200c\u200d])[\p{Cc}\p{Cf}\p{Cs}\p{Cn}\u2028\u2029])/u;

let who = "";
let order = [];
let given = {};
let now = null;
let stored = true;
let saved = true;

const key = () => `judge sheet ${sheet.sheet} ${who}`;
const offered = (at) => cells[at].get("answers").split(" / ");
const compared = new Map(Object.entries(sheet.compared));
const answered = (at) => Boolean(given[at] && given[at].label);

function say(message) {
  $("trouble").textContent = message;
  $("trouble").hidden = !message;
}

function keep(change) {
  try {
    // What another tab stored last is later than what this one holds.
    given = { ...given, ...(stored && JSON.parse(localStorage.getItem(key()))), ...change };
    localStorage.setItem(key(), JSON.stringify(given));
  } catch {
    given = { ...given, ...change };
    stored = false;
  }
}

function put(label) {
  keep({ [now]: { label, why: $("why").value.trim() } });
  saved = false;
}

// Store a reason that was added or changed after an answer, or without one.
function noteWhy() {
  const { label = "", why = "" } = given[now] || {};
  if (now !== null && why !== $("why").value.trim()) put(label);
}

function save() {
  noteWhy();
  keep({});
  const lines = rows.map((row, at) => {
    const own = Object.fromEntries(row);
    return `${JSON.stringify({ ...own, annotator: who, label: "", why: "", ...given[at] })}\n`;
  });
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob(lines, { type: "application/jsonl" }));
  link.download = `${sheet.name}.${who.replace(/[^\p{L}\p{N}_-]+/gu, "-")}.jsonl`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  saved = true;
  progress(`Saved as ${link.download}: send that file back.`);
}

// Continue from a saved file; the file of another sheet is refused.
function load(text) {
  const place = (line) => JSON.stringify(["item", "check", "entry", "question"].map((name) => line[name] || ""));
  const places = new Map(rows.map((row, at) => [place(Object.fromEntries(row)), at]));
  const lines = text.trim().split("\n").map((line) => JSON.parse(line));
  if (!lines.every((line) => places.has(place(line)))) return say("That file belongs to another sheet.");
  const by = String(lines[0].annotator);
  const name = $("who").value.trim() || by;
  if (name !== by) return say(`That file has the answers of ${by}: enter that name to continue.`);
  const known = lines.filter((line) => (line.label ? offered(places.get(place(line))).includes(line.label) : line.why));
  const earlier = known.map(({ label, why, ...line }) => [places.get(place(line)), { label, why }]);
  begin(name, Object.fromEntries(earlier));
}

// Each annotator's order is that of a hash of a unit's place and the annotator's name.
function hash(text) {
  let state = 2166136261;
  for (const char of text) state = Math.imul(state ^ char.codePointAt(0), 16777619);
  return Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) >>> 0;
}

// Two compared texts have no names, and an order for each record and annotator: with one order for
// all, a habit of choosing the first would look like agreement.
function pairs(at) {
  const own = compared.get(cells[at].get("check")) || [];
  const swapped = hash(`${cells[at].get("item")} ${cells[at].get("check")} ${who}`) >>> 31;
  return [own, swapped ? [...own].reverse() : own];
}

function begin(name, earlier) {
  who = name;
  keep(earlier);
  let next = 0;
  const units = sheet.units.map((unit, at) => [hash(`${at} ${who}`), unit.map(() => next++)]);
  order = units.sort((one, other) => one[0] - other[0]).flatMap((unit) => unit[1]);
  $("start").hidden = true;
  if ($("told")) $("told").open = false;
  for (const id of ["status", "ask"]) $(id).hidden = false;
  say("");
  forward();
}

function element(tag, text, more = {}) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(more)) made.setAttribute(name, value);
  for (const part of text.replaceAll("\r\n", "\n").split(UNSEEN)) {
    const code = UNSEEN.test(part) && part.codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
    made.append(code ? element("span", `U+${code}`, { class: "unseen" }) : part);
  }
  return made;
}

function written(text, most = LONG) {
  const parts = text.startsWith("1. ") ? text.slice(0, most).split(TURN) : [text.slice(0, most)];
  const shown = parts.map((part) => element("div", part, { class: "prose turn", dir: "auto", lang: "" }));
  if (text.length <= most) return shown;
  const rest = element("details", "", { class: "rest" });
  rest.append(element("summary", `${(text.length - most).toLocaleString("en")} more characters`));
  rest.addEventListener("toggle", () => rest.append(...written(text.slice(most), 10 * most)), { once: true });
  return [...shown, rest];
}

function progress(note = "Kept in this browser.") {
  const done = order.filter(answered).length;
  $("bar").max = order.length;
  $("bar").value = done;
  $("count").textContent = `${done} of ${order.length} answered.`;
  $("kept").textContent = stored || saved ? note : "";
  if (!stored) say("This browser cannot store answers: save them before you close the page.");
}

// A digit has its own key, another answer that of its number unless that digit is an answer.
function button([answer, word], place, words) {
  const number = String(place + 1);
  const keys = /^\d$/.test(word) ? [word] : place < 9 && !words.includes(number) ? [number] : [];
  if (["yes", "no", "unsure"].includes(word)) keys.unshift(word[0]);
  const pressed = String(answered(now) && given[now].label === answer);
  const made = element("button", "", { type: "button", "aria-pressed": pressed, "data-key": keys.join(" ") });
  made.append(element("bdi", word, { lang: "" }), ...keys.flatMap((one) => [" ", element("kbd", one)]));
  made.addEventListener("click", () => {
    put(answer);
    forward();
  });
  return made;
}

function show(at) {
  now = at;
  $("material").hidden = $("one").hidden = $("skip").hidden = at === null;
  $("end").hidden = at !== null;
  $("back").disabled = at === order[0];
  $("save").classList.toggle("first", at === null);
  progress();
  if (at !== null) {
    const [named, seen] = pairs(at);
    const hidden = ([name, text]) => {
      const place = named.findIndex(([one]) => one === name);
      return place < 0 ? [name, text] : [`answer ${place + 1}`, cells[at].get(seen[place][0])];
    };
    const texts = rows[at].filter(([name]) => !ABOUT.includes(name)).map(hidden);
    const titled = ([name, text]) => [element("h3", name, { lang: "", dir: "auto" }), ...written(text)];
    const first = seen.map(([, answer], place) => [answer, `answer ${place + 1}`]);
    const others = offered(at).slice(first.length);
    const answers = [...first, ...others.map((answer) => [answer, answer])];
    const words = answers.map(([, word]) => word);
    $("heading").textContent = `Question ${order.indexOf(at) + 1} of ${order.length}`;
    $("texts").replaceChildren(...texts.flatMap(titled));
    $("question").replaceChildren(...element("p", cells[at].get("question")).childNodes);
    $("answers").replaceChildren(...answers.map((answer, place) => button(answer, place, words)));
    $("why").value = (given[at] && given[at].why) || "";
  }
  window.scrollTo(0, 0);
  $(at === null ? "done" : "heading").focus({ preventScroll: true });
}

// The next question without an answer; after the last one it starts from the first.
function forward() {
  const from = order.indexOf(now) + 1;
  show([...order.slice(from), ...order.slice(0, from)].find((at) => !answered(at)) ?? null);
}

$("start").addEventListener("submit", (event) => {
  event.preventDefault();
  if ($("who").value.trim()) begin($("who").value.trim(), {});
});
$("earlier").addEventListener("change", async (event) => {
  try {
    load(await event.target.files[0].text());
  } catch {
    say("That file holds no saved answers.");
  }
  event.target.value = ""; // So that the same file can be chosen again.
});
$("back").addEventListener("click", () => {
  noteWhy();
  show(order[(now === null ? order.length : order.indexOf(now)) - 1]);
});
$("skip").addEventListener("click", () => {
  noteWhy();
  forward();
});
$("save").addEventListener("click", save);
$("why").addEventListener("change", noteWhy);
window.addEventListener("beforeunload", (event) => {
  noteWhy();
  if (!stored && !saved) event.preventDefault();
});
