"use strict";
// Draws judged records. A record's text only ever becomes a text node, never HTML or an attribute.

let unseen = null;

function make(tag, name, ...children) {
  const element = document.createElement(tag);
  if (name) element.className = name;
  element.append(...children.flat(9).filter((one) => one !== null && one !== undefined && one !== false).map(shown));
  return element;
}

// Invisible characters, such as control characters, are shown as code points.
function shown(content) {
  if (content instanceof Node) return content;
  const text = String(content).replaceAll("\r\n", "\n");
  const found = unseen ? [...text.matchAll(unseen)] : [];
  if (!found.length) return document.createTextNode(text);
  const fragment = document.createDocumentFragment();
  let end = 0;
  for (const match of found) {
    const code = match[0].codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
    const name = document.createElement("span");
    name.className = "unseen";
    name.textContent = `U+${code}`;
    fragment.append(text.slice(end, match.index), name);
    end = match.index + match[0].length;
  }
  fragment.append(text.slice(end));
  return fragment;
}

// A text of the record: its direction is its own, its language unknown.
function own(tag, name, ...children) {
  const element = make(tag, name, ...children);
  element.lang = "";
  if (tag !== "bdi") element.dir = "auto";
  return element;
}

const badge = (verdict) => make("span", `badge ${verdict}`, verdict);
const cut = (text, most = 200) => (String(text).length > most ? `${String(text).slice(0, most)}…` : String(text));
const several = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

// Never rounded to 0 or 1.
function probability(value) {
  if (value > 0 && value < 0.0005) return "<0.001";
  return value < 1 && value >= 0.9995 ? ">0.999" : value.toFixed(3);
}

// A record beside its checks, below its verdict; the number of a quote in the text links to the
// evidence. `mark` is shown first.
function drawRecord(entry, mark = badge(entry.judge.verdict)) {
  const { judge, labels = [] } = entry;
  return make(
    "section",
    "",
    make("p", "", mark, judge.reason && [" ", own("span", "reason", cut(judge.reason, 2000))]),
    make("p", "where", judge.original_verdict && `as it came in: ${judge.original_verdict} · `, own("bdi", "", entry.source), `, line ${entry.line}`),
    labels.map(([check, label, said, alike]) => make("p", alike === false ? "label unlike" : "label", own("bdi", "", check), ": label ", own("b", "", label), ", judge ", own("b", "", said))),
    entry.size ? make("p", "cut", `The line has ${entry.size.toLocaleString("en")} characters: too many to be shown.`) : drawBody(entry, judge),
  );
}

function drawBody(entry, judge) {
  const places = new Map();
  const at = { quotes: new Map(entry.quotes), places };
  const [prose, facts] = [true, false].map((wanted) => entry.texts.filter((field) => field[2] === wanted).map((field) => drawField(field, places)));
  const checks = judge.checks || [];
  const part = (title, content) => content && content.length !== 0 && [make("h5", "", title), content];
  return make(
    "div",
    "halves",
    make("section", "text", judge.error && drawError(judge.error), prose, facts.length > 0 && make("dl", "", facts), !entry.texts.length && make("p", "quiet", "The line holds no fields.")),
    make(
      "section",
      "found",
      checks.map((check) => drawCheck(check, at, checks.length < 3)),
      part("Extraction", judge.extraction && drawExtraction(judge.extraction)),
      part("Remaining contradictions", judge.contradictions && judge.contradictions.map((one) => drawFinding(one, null, at))),
      part("Values dropped", judge.dropped && drawListing(judge.dropped)),
      part("Edits", judge.edits && judge.edits.map(drawEdit)),
      entry.before.length > 0 && make("details", "original", make("summary", "", "Before it was rewritten"), entry.before.map(([name, content]) => drawField([name, content, true], places))),
    ),
  );
}

const drawListing = (texts) => make("ul", "", texts.map((text) => own("li", "", text)));

function drawField([name, content, prose], places) {
  const pieces = typeof content === "string" ? [[content, "", []]] : content;
  const text = own("div", prose ? "prose" : "", pieces.map(([piece, tone, ends]) => [
    tone ? make("mark", tone, piece) : piece,
    ends.map((number) => make("sup", "", leading(number, places))),
  ]));
  const title = own("bdi", "", name);
  return prose ? [make("h6", "", title), text] : [make("dt", "", title), make("dd", "", text)];
}

function leading(number, places) {
  const button = make("button", "quote-number", number);
  button.type = "button";
  button.setAttribute("aria-label", `Quote ${number}: go to the evidence`);
  button.addEventListener("click", () => {
    const quote = places.get(number);
    if (!quote) return;
    const folded = quote.closest("details");
    if (folded) folded.open = true;
    quote.scrollIntoView({ block: "center" });
    quote.focus();
  });
  return button;
}

function drawError(error) {
  return make("section", "fault", make("h5", "", "Error of type ", own("bdi", "", cut(error.type))), own("p", "", error.message), error.field !== undefined && make("p", "", "Field: ", own("bdi", "", cut(error.field))), error.line !== undefined && make("p", "quiet", `Line ${error.line} of the input.`));
}

function drawCheck(check, at, open) {
  const votes = check.votes || [];
  const counts = new Map();
  for (const vote of votes) counts.set(vote.verdict, (counts.get(vote.verdict) || 0) + 1);
  const tally = [...counts].map(([verdict, count]) => `${count} ${verdict}`).join(", ");
  const about = [
    check.by !== "loop" && check.by,
    check.round > 1 && `round ${check.round}`,
    check.answer !== undefined && make("span", "", "answer ", own("bdi", "", cut(check.answer))),
    check.score !== undefined && `score ${Number(check.score.toFixed(3))}`,
    check.probability !== undefined && `P(pass) ${probability(check.probability)}`,
    votes.length > 0 && `${several(votes.length, "vote")}: ${tally}`,
  ].filter(Boolean);
  const element = make(
    "details",
    "check",
    make("summary", "", badge(check.verdict), " ", own("bdi", "name", check.check), " ", make("span", "quiet", about.flatMap((one, place) => (place ? [" · ", one] : [one])))),
    check.reason && own("p", "why", check.reason),
    (check.evidence || []).map((one) => drawFinding(one, check.verdict, at)),
    votes.map((vote) => drawVote(vote, at)),
  );
  element.open = open || !["pass", "skipped"].includes(check.verdict);
  return element;
}

function drawVote(vote, at) {
  const about = [
    vote.part,
    vote.method && vote.method !== "structured" && vote.method,
    vote.seed !== undefined && `seed ${vote.seed}`,
    vote.temperature !== undefined && `temperature ${vote.temperature}`,
    vote.score !== undefined && `score ${Number(vote.score.toFixed(3))}`,
    vote.answered_by && `answered by ${vote.answered_by.join(", ")}`,
  ].filter(Boolean);
  return make(
    "section",
    "vote",
    make("p", "", badge(vote.verdict), " ", own("bdi", "model", cut(vote.model)), " ", make("span", "quiet", about.join(" · "))),
    vote.reason && own("p", "why", vote.reason),
    (vote.evidence || []).map((one) => drawFinding(one, vote.verdict, at)),
  );
}

function drawFinding(finding, verdict, { quotes, places }) {
  const parts = [];
  if (finding.verdict !== verdict || finding.value !== undefined) parts.push(badge(finding.verdict), " ");
  if (finding.value !== undefined) parts.push(own("bdi", "value", finding.value), " ");
  if (finding.answer !== undefined) parts.push(make("span", "said", "answer ", own("bdi", "", finding.answer)), " ");
  if (finding.character !== undefined) parts.push(make("span", "said", "character ", own("bdi", "", finding.character)), " ");
  if (finding.probability !== undefined) parts.push(make("span", "quiet", `P(pass) ${probability(finding.probability)}`), " ");
  if (finding.predicted) parts.push(make("span", "quiet", `based on predicted ${finding.predicted.join(", ")}`));
  const place = finding.quote === undefined ? undefined : quotes.get(finding.quote);
  const number = typeof place === "number" ? place : null;
  const quote = finding.quote !== undefined && own("blockquote", "", number && make("b", "number", number), number && " ", finding.quote);
  if (number && !places.has(number)) {
    quote.tabIndex = -1;
    places.set(number, quote);
  }
  return make("div", "finding", parts.length > 0 && make("p", "", parts), quote, typeof place === "string" && make("p", "note", `This quote ${place}.`), finding.reason !== undefined && own("p", "why", finding.reason));
}

function drawExtraction(found) {
  const credits = found.credits.map((one) => (one === null ? "–" : one));
  const settled = found.credits.filter((one) => one !== null).length;
  const recall = found.recall === undefined ? "–" : probability(found.recall);
  return make("p", "figure", `recall ${recall} over ${settled} of ${credits.length} gold values; credits ${credits.join(", ")}`);
}

function drawEdit(edit) {
  return make(
    "div",
    "edit",
    make("p", "quiet", `Round ${edit.round}, `, own("bdi", "", cut(edit.check)), edit.character !== undefined && [", ", own("bdi", "", cut(edit.character))], ", by ", own("bdi", "", cut(edit.model))),
    edit.values && drawListing(edit.values),
    own("div", "prose", edit.changes.map(([kind, text]) => (kind === "same" ? text : make(kind, "", text)))),
  );
}
