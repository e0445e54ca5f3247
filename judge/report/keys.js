"use strict";
// Keys of pages with questions: each button's own, c for the reason; Enter or Escape leaves the reason.

// The second half of a double click would answer the next question, whose buttons are at the same place.
document.addEventListener("click", (event) => {
  if (event.detail > 1 && event.target.closest(".answers button:not([data-undo])")) event.stopPropagation();
}, true);

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.isComposing) return;
  const why = document.getElementById("why");
  // Keyboards of other scripts have Latin letters and digits by their place.
  const key = (event.key > "~" ? event.code.replace(/^(Key|Digit)/, "") : event.key).toLowerCase();
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
