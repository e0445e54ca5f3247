// Each answer goes to the server, which replies with the next piece of the page, every text escaped.

const main = document.querySelector("main");
const trouble = document.getElementById("trouble");
let busy = false;

function say(message) {
  trouble.textContent = message;
  trouble.hidden = !message;
}

async function send(path, content) {
  if (busy) return;
  busy = true;
  try {
    const response = await fetch(path, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(content),
    });
    const text = await response.text();
    if (!response.ok) {
      say(`Not saved: ${text}`);
      return;
    }
    say("");
    main.innerHTML = text;
    drawJudged();
    window.scrollTo(0, 0);
    const heading = main.querySelector("h2[tabindex]");
    if (heading) heading.focus({ preventScroll: true });
  } catch {
    say("The server has stopped. This answer was not saved; all earlier ones were. Run the same command again.");
  } finally {
    busy = false;
  }
}

// Draw the judged record of a review, which the page has as data.
function drawJudged() {
  const data = document.getElementById("judged");
  if (!data) return;
  const [characters, entry] = JSON.parse(data.textContent);
  unseen = new RegExp(characters, "gu");
  data.replaceWith(drawRecord(entry));
}

function press(button) {
  if (button.disabled) return;
  if ("undo" in button.dataset) {
    send("undo", {});
  } else if ("end" in button.dataset) {
    send("end", {});
  } else if ("answer" in button.dataset) {
    const why = document.getElementById("why").value;
    send("answer", { question: Number(button.parentElement.dataset.question), answer: Number(button.dataset.answer), why });
  }
}

main.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (button) press(button);
});

drawJudged();
