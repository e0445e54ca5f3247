// Search, sort, draw and open the records of the page. Only rows in sight are drawn. The address has
// the form's fields (`#q=late&verdict=fail`) and the number of the open record.

const MOST_PRINTED = 300;
const byId = (id) => document.getElementById(id);
const [form, list, dialog, more, data] = ["filters", "list", "open", "more", "data"].map(byId);
const runs = [...(data.dataset.runs || " ")];
const verdicts = [...form.querySelectorAll("[name=verdict]")].map((box) => box.value);
const natural = new Intl.Collator("en", { numeric: true });
const drawn = new Map();
let items = [];
let view = [];
let opened = null;
let height = 0;

async function unpack(packed) {
  const text = atob(packed);
  const bytes = new Uint8Array(text.length);
  for (let place = 0; place < text.length; place++) bytes[place] = text.charCodeAt(place);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return (await new Response(stream).text()).trimEnd().split("\n").map((line) => JSON.parse(line));
}

// An item is a record with its entry in each run. `moved` has by run and line the keys that later lines changed.
function join(entries, moved) {
  const byKey = new Map();
  for (const entry of entries) {
    const key = runs.length > 1 ? moved[entry.run][entry.line] || entry.key : byKey.size;
    if (!byKey.has(key)) byKey.set(key, { number: byKey.size + 1, runs: [], entries: [] });
    const item = byKey.get(key);
    entry.checks = new Map((entry.judge.checks || []).map((check) => [check.check, check]));
    item.runs[runs.length > 1 ? entry.run : 0] = entry;
    item.entries.push(entry);
  }
  for (const item of byKey.values()) {
    const shared = item.entries.map((entry) => [...entry.checks.keys()]).reduce((one, other) => one.filter((name) => other.includes(name)));
    const told = runs.map((_, run) => item.runs[run] && [item.runs[run].judge.verdict, ...shared.map((name) => item.runs[run].checks.get(name)).map((check) => [check.verdict, check.answer])]);
    item.differs = new Set(told.map((one) => JSON.stringify(one))).size > 1;
    item.rank = Math.min(...item.entries.map((entry) => verdicts.indexOf(entry.judge.verdict)));
  }
  return [...byKey.values()];
}

// ---------------------------------------------------------------- what a record says

// The answers of checks whose answers have names.
const namedAnswers = (entry) => [...entry.checks.values()].map((check) => check.answer).filter((answer) => answer !== undefined);
const plain = (content) => (typeof content === "string" ? content : content.map((piece) => piece[0]).join(""));
const fieldsOf = (entry) => entry.texts || [];
const checksOf = (entry, name) => (name ? [entry.checks.get(name)].filter(Boolean) : [...entry.checks.values()]);
const votesOf = (check) => check.votes || [];
// Those of every round, also of a check that a person decided afterwards.
const allVotes = (entry, name) => (entry.judge.checks || []).filter((check) => !name || check.check === name).flatMap(votesOf);
const answersOf = (one) => [one.verdict, one.said, ...(one.evidence || []).map((finding) => finding.answer)];
const valuesOf = (entry, name) => checksOf(entry, name).map((check) => check.score ?? check.probability).filter((value) => value !== undefined);
const SEARCHED = ["reason", "quote", "value", "character", "answer", "said", "message", "dropped"];

// A text as it is searched: in lower case, and in one form for accents, full width and Turkish i.
const folded = (text) => text.normalize("NFKC").toLowerCase().replaceAll("i\u0307", "i");

// All searchable text of a record.
function haystack(item) {
  if (item.words) return item.words;
  const words = [];
  const walk = (part, name) => {
    if (typeof part === "string") SEARCHED.includes(name) && words.push(part);
    else if (part) for (const [key, one] of Object.entries(part)) walk(one, Array.isArray(part) ? name : key);
  };
  for (const entry of item.entries) {
    words.push(entry.id, ...[...fieldsOf(entry), ...(entry.before || [])].map((field) => plain(field[1])));
    walk(entry.judge);
  }
  item.words = folded(words.join("\n"));
  return item.words;
}

// The sureness of the least sure check: 0 (a coin toss) to 1.
function sureness(entry, name) {
  return Math.min(1, ...checksOf(entry, name).map((check) => {
    if (check.probability !== undefined) return Math.abs(check.probability - 0.5) * 2;
    const agrees = (vote) => vote.verdict === check.verdict && (!check.counted || !check.answer || (vote.evidence || []).some((one) => one.answer === check.answer));
    return votesOf(check).length ? votesOf(check).filter(agrees).length / votesOf(check).length : 1;
  }));
}

const some = (holds) => (item) => item.entries.some(holds);
const ONLY = {
  differ: ["runs differ", (item) => item.differs],
  split: ["votes differ", some((entry) => (entry.judge.checks || []).some((check) => check.split))],
  edited: ["edited", some((entry) => (entry.judge.edits || []).length > 0)],
  person: ["decided by a person", some((entry) => checksOf(entry).some((check) => check.by === "person"))],
  unlike: ["differ from their label", some((entry) => entry.labels.some((pair) => pair[3] === false))],
};
const along = (value, sign = 1) => (one, two, name) => {
  const [a, b] = [value(one.entries[0], name), value(two.entries[0], name)];
  return a === undefined || b === undefined ? (a === undefined) - (b === undefined) : sign * (a - b);
};
const SORTS = {
  "": [runs.length > 1 ? "differences first" : "failed first", (one, two) => two.differs - one.differs || one.rank - two.rank],
  file: ["file order", () => 0],
  name: ["name", (one, two) => natural.compare(one.entries[0].id, two.entries[0].id)],
  unsure: ["least sure first", along(sureness)],
  low: ["lowest score first", along((entry, name) => valuesOf(entry, name)[0])],
  high: ["highest score first", along((entry, name) => valuesOf(entry, name)[0], -1)],
};

// ---------------------------------------------------------------- the form, and the address

function fill() {
  const options = (name, pairs) => {
    form.elements[name].replaceChildren(...pairs.map(([value, title]) => Object.assign(make("option", "", cut(title, 60)), { value })));
    form.elements[name].parentElement.hidden = pairs.length < 2;
  };
  const named = (name, of) => {
    const found = new Set(items.flatMap((item) => item.entries.flatMap((entry) => [...of(entry)])).filter(Boolean));
    options(name, [["", "any"], ...[...found].sort(natural.compare).slice(0, 500).map((one) => [one, one])]);
  };
  options("sort", Object.entries(SORTS).map(([value, [title]]) => [value, title]));
  options("only", [["", "all"], ...Object.entries(ONLY).filter(([, [, holds]]) => items.some(holds)).map(([value, [title]]) => [value, title])]);
  named("check", (entry) => entry.checks.keys());
  named("judge", (entry) => allVotes(entry).map((vote) => vote.model));
  named("answer", (entry) => [...checksOf(entry), ...allVotes(entry)].flatMap(answersOf));
  named("label", (entry) => entry.labels.map((pair) => pair[1]));
  named("field", (entry) => fieldsOf(entry).map((field) => field[0]));
  for (const box of form.querySelectorAll("[name=verdict]")) {
    const count = items.filter(some((entry) => entry.judge.verdict === box.value)).length;
    box.closest("label").querySelector(".figure").textContent = count;
  }
  for (const name of ["from", "to"]) form.elements[name].parentElement.hidden = !items.some(some((entry) => valuesOf(entry).length > 0));
}

// The form's fields as an address, without empty ones.
function address(open) {
  const parts = [...new FormData(form), ["open", open || ""]].filter(([, value]) => value !== "");
  return `#${new URLSearchParams(parts)}`;
}

function obey() {
  const hash = location.hash.slice(1);
  if (hash && !hash.includes("=")) return find();
  const parts = new URLSearchParams(hash);
  const before = address();
  for (const field of form.elements) {
    if (field.type === "checkbox") field.checked = parts.getAll(field.name).includes(field.value);
    else if (field.name) field.value = parts.get(field.name) || "";
  }
  if ([...more.querySelectorAll("[name]")].some((field) => field.value)) fold(false);
  if (address() !== before || !view.length) find();
  const item = items[parts.get("open") - 1];
  if (item) return show(item);
  dialog.close();
  if (hash) byId("records").scrollIntoView();
}

function fold(folded) {
  more.hidden = folded;
  byId("unfold").setAttribute("aria-expanded", !folded);
}

// ---------------------------------------------------------------- found and sorted

function fits(entry, want) {
  const checks = checksOf(entry, want.check);
  const says = (one) => !want.answer || answersOf(one).includes(want.answer);
  const asked = want.judge ? allVotes(entry, want.check).filter((vote) => vote.model === want.judge) : checks;
  const number = (text) => Number(text.replace(",", "."));
  const inside = (value) => (want.from === "" || value >= number(want.from)) && (want.to === "" || value <= number(want.to));
  return (
    (!want.verdicts.length || want.verdicts.includes(entry.judge.verdict)) &&
    ((!want.check && !want.judge && !want.answer) || asked.some(says)) &&
    (!want.label || entry.labels.some((pair) => pair[1] === want.label && (!want.check || pair[0] === want.check))) &&
    ((want.from === "" && want.to === "") || valuesOf(entry, want.check).some(inside)) &&
    ((!want.field && !want.has) || fieldsOf(entry).some((field) => (!want.field || field[0] === want.field) && folded(plain(field[1])).includes(want.has)))
  );
}

function find() {
  const parts = new FormData(form);
  const want = { ...Object.fromEntries(parts), verdicts: parts.getAll("verdict"), has: folded(parts.get("has")) };
  const words = folded(want.q).split(/\s+/).filter(Boolean);
  const only = ONLY[want.only];
  view = items.filter((item) => (!only || only[1](item)) && words.every((word) => haystack(item).includes(word)) && item.entries.some((entry) => fits(entry, want)));
  const [, compare] = SORTS[want.sort] || SORTS[""];
  view.sort((one, two) => compare(one, two, want.check) || one.number - two.number);
  byId("told").textContent = `${view.length === items.length ? "" : `${view.length} of `}${several(items.length, "record")}`;
  form.querySelector("[type=reset]").hidden = address() === "#";
  byId("active").textContent = [...more.querySelectorAll("[name]")].filter((field) => field.value).length || "";
  redraw();
}

// ---------------------------------------------------------------- drawn

function redraw() {
  list.replaceChildren();
  drawn.clear();
  draw();
}

function draw() {
  if (!height) {
    list.append(drawRow(items[0], 0));
    height = list.lastChild.getBoundingClientRect().height;
    list.lastChild.remove();
  }
  list.style.height = `${view.length * height}px`;
  const top = -list.getBoundingClientRect().top;
  const start = Math.floor(top / height) - 8;
  const end = Math.min(view.length, Math.max(20, Math.ceil((top + innerHeight) / height) + 8));
  for (const [place, row] of drawn) {
    if ((place >= start && place < end) || row.contains(document.activeElement)) continue;
    row.remove();
    drawn.delete(place);
  }
  for (let place = Math.max(0, start); place < end; place++) put(place);
}

// Rows are inserted in document order, for screen readers.
function put(place) {
  if (drawn.has(place)) return;
  const row = drawRow(view[place], place);
  row.style.top = `${place * height}px`;
  list.insertBefore(row, drawn.get(Math.min(...[...drawn.keys()].filter((other) => other > place))) || null);
  drawn.set(place, row);
}

function drawRow(item, place) {
  const [first] = item.entries;
  const reason = item.entries.map((entry) => entry.judge.reason).find(Boolean);
  const scored = checksOf(first, form.elements.check.value).filter((check) => (check.score ?? check.probability) !== undefined);
  const texts = fieldsOf(first).map((field) => plain(field[1]));
  const link = make(
    "a",
    runs.length > 1 && item.differs ? "row differs" : "row",
    make("span", "verdicts", runs.map((letter, run) => verdictOf(item, letter, run))),
    make("span", "id", own("bdi", "", cut(first.id, 80))),
    make("span", "snippet", own("bdi", "", cut(reason || texts[0] || "", 240))),
    make("span", "figure", ONLY.person[1](item) ? "person" : scored.length === 1 && (scored[0].score === undefined ? probability(scored[0].probability) : Number(scored[0].score.toFixed(3)))),
  );
  link.href = address(item.number);
  const row = make("div", "place", link);
  for (const [name, value] of [["role", "listitem"], ["aria-setsize", view.length], ["aria-posinset", place + 1]]) row.setAttribute(name, value);
  return row;
}

function verdictOf(item, letter, run) {
  const entry = item.runs[run];
  const answers = entry && entry.judge.verdict === "answered" ? namedAnswers(entry) : [];
  const said = make("span", "badge answered", own("bdi", "", cut(answers.join(", "), 40)));
  const mark = !entry ? make("span", "quiet", "–") : answers.length ? said : badge(entry.judge.verdict);
  return runs.length > 1 ? make("span", "of-run", make("span", "letter", letter), " ", mark) : mark;
}

// Without a place: the first row in sight.
function focusRow(place) {
  const bar = getComputedStyle(form).position === "sticky" ? form.offsetHeight : 0;
  const start = list.getBoundingClientRect().top;
  place ??= Math.max(0, Math.ceil((bar - start) / height));
  if (!view[place]) return;
  const top = start + place * height;
  if (top < bar) scrollBy(0, top - bar);
  else if (top + height > innerHeight) scrollBy(0, top + height - innerHeight);
  draw();
  drawn.get(place).firstChild.focus({ preventScroll: true });
}

// ---------------------------------------------------------------- opened

function show(item) {
  opened = item;
  const place = view.indexOf(item);
  byId("name").replaceChildren(own("bdi", "", cut(item.entries[0].id)));
  byId("place").textContent = place < 0 ? "" : `${place + 1} of ${view.length}`;
  for (const button of dialog.querySelectorAll("[data-step]")) button.disabled = !view[place + Number(button.dataset.step)];
  const missing = (letter) => make("p", "quiet", `${letter}: not in this run, or not on this page.`);
  byId("bodies").replaceChildren(...runs.map((letter, run) => (item.runs[run] ? drawRecord(item.runs[run], verdictOf(item, letter, run)) : missing(letter))));
  if (!dialog.open) dialog.showModal();
  dialog.scrollTop = 0;
}

function turn(step) {
  const next = view[view.indexOf(opened) + step];
  if (!next) return;
  history.replaceState(null, "", address(next.number));
  show(next);
}

// ---------------------------------------------------------------- events

let waiting = 0;
function change(wait) {
  clearTimeout(waiting);
  waiting = wait === undefined ? 0 : setTimeout(change, wait);
  if (waiting) return;
  history.replaceState(null, "", address());
  find();
  if (list.getBoundingClientRect().top < 0) form.scrollIntoView();
}

form.addEventListener("input", (event) => change(event.target.matches("[name=q], [name=has]") ? 150 : 0));
form.addEventListener("reset", () => change(0));
form.addEventListener("submit", (event) => event.preventDefault());
byId("unfold").addEventListener("click", () => fold(!more.hidden));
dialog.addEventListener("click", ({ target }) => {
  if (target.dataset.step) turn(Number(target.dataset.step));
  else if (target === dialog || target.id === "close") dialog.close();
});
dialog.addEventListener("close", () => {
  history.replaceState(null, "", address());
  focusRow(view.indexOf(opened));
});
addEventListener("hashchange", obey);
addEventListener("scroll", () => items.length && requestAnimationFrame(draw), { passive: true });
addEventListener("resize", () => {
  height = 0;
  if (items.length) redraw();
});
addEventListener("beforeprint", () => view.slice(0, MOST_PRINTED).forEach((_, place) => put(place)));
addEventListener("keydown", (event) => {
  const { key, target } = event;
  const steps = { ArrowRight: 1, j: 1, ArrowLeft: -1, k: -1 };
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || (dialog.open && !steps[key])) return;
  const row = [...drawn.keys()].find((place) => drawn.get(place).contains(target));
  const rows = { ArrowDown: row + 1, j: row + 1, ArrowUp: row - 1, k: row - 1, Home: 0, End: view.length - 1 };
  if (dialog.open) turn(steps[key]);
  else if (row !== undefined && key in rows) (rows[key] < 0 ? form.elements.q.focus() : focusRow(rows[key]));
  else if (target === form.elements.q && ["ArrowDown", "Enter"].includes(key)) {
    change();
    focusRow(0);
    if (key === "Enter" && view.length) document.activeElement.click();
  } else if (target === document.body && key === "ArrowDown" && list.getBoundingClientRect().top < innerHeight) focusRow();
  else if (key === "/" && !target.matches("input, select")) form.elements.q.focus();
  else return;
  event.preventDefault();
});

unpack(data.textContent).then(([characters, ...entries]) => {
  unseen = new RegExp(characters, "gu");
  const moved = entries.pop();
  items = join(entries, moved);
  byId("loading").textContent = items.length ? "" : "No record is shown.";
  if (!items.length) return;
  form.hidden = false;
  list.style.setProperty("--longest", Math.max(...verdicts.map((verdict) => verdict.length)));
  fill();
  obey();
}).catch((error) => {
  byId("loading").textContent = `The records cannot be shown: ${error.message}`;
  throw error;
});
