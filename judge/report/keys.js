"use strict";
// Keys of pages with questions: each button's own, c for the reason; Enter or Escape leaves the reason.

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.isComposing) return;
  const why = document.getElementById("why");
  const key = event.key.toLowerCase();
  if (event.target === why) {
    if (key === "escape" || (key === "enter" && !event.shiftKey)) {
      event.preventDefault();
      why.blur();
    }
    return;
  }
  const seen = [...document.querySelectorAll("button[data-key]")].filter((one) => one.offsetParent);
  const button = seen.find((one) => one.dataset.key.split(" ").includes(key));
  if (button || (key === "c" && why && why.offsetParent)) {
    event.preventDefault();
    if (button) button.click();
    else why.focus();
  }
});
