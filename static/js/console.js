// The create form shows only the settings of the chosen model and strategy.

const parts = document.querySelectorAll("[data-of]");

function show() {
  for (const part of parts) {
    const chosen = document.querySelector(`select[name="${part.dataset.of}"]`).value;
    part.hidden = part.dataset.choice !== chosen;
  }
}

for (const name of new Set([...parts].map((part) => part.dataset.of))) {
  document.querySelector(`select[name="${name}"]`).addEventListener("change", show);
}
show();
