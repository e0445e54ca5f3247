"use strict";
// A sheet of questions in one file. Answers stay in this browser until they are saved as a file of
// JSON lines, a line for each row of the sheet. Texts only ever become text nodes.

const $ = (id) => document.getElementById(id);
const sheet = JSON.parse($("data").textContent);
const rows = sheet.units.flat().map((row) => Object.entries(row).map(([name, at]) => [name, sheet.texts[at]]));
const cells = rows.map((row) => new Map(row));
const ABOUT = ["item", "check", "annotator", "group", "entry", "question", "answers"];
const LONG = 4000;
const TURN = /\n(?=\d+\. [^\n:]{1,60}:)/;
// What cannot be seen is named, but for blanks and the joiners that scripts and emoji need.
const UNSEEN = /((?![\n\t\u200c\u200d])[\p{Cc}\p{Cf}\p{Cs}\p{Cn}\u2028\u2029])/u;

let who = "";
let order = [];
let given = {};
let path = [];
let now = null;
let stored = true;
let saved = true;

function say(message) {
  $("trouble").textContent = message;
  $("trouble").hidden = !message;
}

const key = () => `judge sheet ${sheet.sheet} ${who}`;

function keep() {
  saved = false;
  try {
    localStorage.setItem(key(), JSON.stringify(given));
  } catch {
    stored = false;
  }
}

function kept() {
  try {
    return JSON.parse(localStorage.getItem(key())) || {};
  } catch {
    stored = false;
    return {};
  }
}

function lines() {
  return rows.map((row, at) => {
    const { label = "", why = "" } = given[at] || {};
    const own = row.filter(([name]) => name !== "annotator");
    const line = { ...Object.fromEntries(own), annotator: who, label, why };
    return `${JSON.stringify(line)}\n`;
  });
}

function save() {
  noteWhy();
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob(lines(), { type: "application/jsonl" }));
  link.download = `${sheet.name}.${who.replace(/[^\p{L}\p{N}_-]+/gu, "-")}.jsonl`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  saved = true;
  progress(`Saved as ${link.download}: send that file back.`);
}

// What an earlier file says about the rows of this sheet; null where it is not of this sheet.
function read(text) {
  const place = (line) => JSON.stringify(["item", "check", "entry"].map((name) => line[name] || ""));
  const places = new Map(cells.map((cell, at) => [place(Object.fromEntries(cell)), at]));
  const found = { name: "", given: {} };
  for (const line of text.split("\n").filter((one) => one.trim()).map((one) => JSON.parse(one))) {
    const at = places.get(place(line));
    if (at === undefined || line.question !== cells[at].get("question")) return null;
    found.name = line.annotator;
    if (offered(at).includes(line.label)) found.given[at] = { label: line.label, why: line.why };
  }
  return found;
}

const offered = (at) => cells[at].get("answers").split(" / ");
const answered = (at) => Boolean(given[at] && given[at].label);

// The units in the order of a hash of their place and the annotator's name.
function shuffled(units, name) {
  const hash = (text) => {
    let state = 2166136261;
    for (const char of text) state = Math.imul(state ^ char.codePointAt(0), 16777619);
    return Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) >>> 0;
  };
  const drawn = units.map((unit, at) => [hash(`${at} ${name}`), unit]);
  return drawn.sort((one, other) => one[0] - other[0]).map(([, unit]) => unit);
}

function begin(name, earlier) {
  who = name.trim();
  let next = 0;
  const units = sheet.units.map((unit) => unit.map(() => next++));
  order = shuffled(units, who).flat();
  given = { ...kept(), ...earlier };
  if (Object.keys(earlier).length) keep();
  $("start").hidden = true;
  if ($("told")) $("told").open = false;
  for (const id of ["status", "ask"]) $(id).hidden = false;
  show(order.find((at) => !answered(at)) ?? null);
}

function element(tag, text, more = {}) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(more)) made.setAttribute(name, value);
  for (const part of text.split(UNSEEN)) {
    const code = UNSEEN.test(part) && part.codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
    made.append(code ? element("span", `U+${code}`, { class: "unseen" }) : part);
  }
  return made;
}

function turns(text) {
  const parts = text.startsWith("1. ") ? text.split(TURN) : [text];
  return parts.map((part) => element("div", part, { class: "prose turn", dir: "auto", lang: "" }));
}

function written(text, most = LONG) {
  if (text.length <= most) return turns(text);
  const rest = document.createElement("details");
  rest.className = "rest";
  rest.append(element("summary", `${(text.length - most).toLocaleString("en")} more characters`));
  rest.addEventListener("toggle", () => rest.append(...written(text.slice(most), 10 * most)), { once: true });
  return [...turns(text.slice(0, most)), rest];
}

function progress(note = "") {
  const done = order.filter(answered).length;
  $("bar").max = order.length;
  $("bar").value = done;
  $("count").textContent = `${done} of ${order.length} answered.`;
  $("kept").textContent = note || (stored ? "Kept in this browser." : "");
  if (!stored) say("This browser keeps no answers: save them before you close the page.");
}

function show(at) {
  now = at;
  $("material").hidden = $("one").hidden = $("skip").hidden = at === null;
  $("end").hidden = at !== null;
  $("back").disabled = !path.length && at !== null;
  $("save").classList.toggle("first", at === null);
  progress();
  if (at !== null) ask(at);
  window.scrollTo(0, 0);
  (at === null ? $("end").querySelector("h2") : $("heading")).focus({ preventScroll: true });
}

function ask(at) {
  const texts = rows[at].filter(([name]) => !ABOUT.includes(name));
  $("heading").textContent = `Question ${order.indexOf(at) + 1} of ${order.length}`;
  $("texts").replaceChildren(
    ...texts.flatMap(([name, text]) => [element("h3", name, { lang: "", dir: "auto" }), ...written(text)]),
  );
  $("question").replaceChildren(...element("p", cells[at].get("question")).childNodes);
  const answers = offered(at);
  const digits = answers.every((answer) => /^\d$/.test(answer));
  $("answers").replaceChildren(
    ...answers.map((answer, place) => {
      const keys = digits ? [answer] : place < 9 ? [String(place + 1)] : [];
      if (["yes", "no"].includes(answer)) keys.unshift(answer[0]);
      const pressed = String(Boolean(given[at]) && given[at].label === answer);
      const button = element("button", "", { type: "button", "aria-pressed": pressed, "data-key": keys.join(" ") });
      button.append(element("bdi", answer, { lang: "" }), ...keys.flatMap((one) => [" ", element("kbd", one)]));
      button.addEventListener("click", () => put(answer));
      return button;
    }),
  );
  $("why").value = (given[at] && given[at].why) || "";
}

function put(label) {
  given[now] = { label, why: $("why").value.trim() };
  keep();
  forward();
}

// A reason that was written, or changed, beside an answer that stands.
function noteWhy() {
  const why = $("why").value.trim();
  if (now === null || !answered(now) || given[now].why === why) return;
  given[now].why = why;
  keep();
}

function forward() {
  path.push(now);
  const from = order.indexOf(now) + 1;
  const onwards = [...order.slice(from), ...order.slice(0, from)];
  show(onwards.find((at) => !answered(at)) ?? null);
}

function back() {
  noteWhy();
  show(path.pop() ?? order[order.length - 1]);
}

$("start").addEventListener("submit", (event) => {
  event.preventDefault();
  if ($("who").value.trim()) begin($("who").value, {});
});
$("earlier").addEventListener("change", async (event) => {
  try {
    const found = read(await event.target.files[0].text());
    if (found === null) say("That file is of another sheet.");
    else begin($("who").value.trim() || found.name, found.given);
  } catch {
    say("That file holds no saved answers.");
  }
});
$("save").addEventListener("click", save);
$("back").addEventListener("click", back);
$("skip").addEventListener("click", forward);
$("why").addEventListener("change", noteWhy);
window.addEventListener("beforeunload", (event) => {
  noteWhy();
  if (!stored && !saved) event.preventDefault();
});

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.isComposing) return;
  if (event.target === $("why")) {
    if (event.key === "Escape" || (event.key === "Enter" && !event.shiftKey)) {
      event.preventDefault();
      $("why").blur();
    }
    return;
  }
  if ($("ask").hidden || event.target.matches("input")) return;
  const pressed = event.key.toLowerCase();
  if (pressed === "c" && now !== null) {
    event.preventDefault();
    return $("why").focus();
  }
  const buttons = [...$("ask").querySelectorAll("button[data-key]")];
  const button = buttons.find((one) => one.dataset.key.split(" ").includes(pressed) && !one.closest("[hidden]"));
  if (button && !button.disabled) {
    event.preventDefault();
    button.click();
  }
});
