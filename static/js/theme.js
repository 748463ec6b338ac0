// The theme button: as the system → light → dark → as the system; kept in this browser.

import { say } from "figures";

const NEXT = { auto: "light", light: "dark", dark: "auto" };
const button = document.querySelector(".theme");

function show(theme) {
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  button.dataset.shows = theme;
  button.setAttribute("aria-label", say(`theme_${theme}`));
  document.dispatchEvent(new CustomEvent("theme"));
}

function keep(theme) {
  try {
    if (theme === "auto") localStorage.removeItem("theme");
    else localStorage.setItem("theme", theme);
  } catch {
    // A browser that keeps nothing still changes the theme of this page.
  }
}

button.addEventListener("click", () => {
  const theme = NEXT[button.dataset.shows];
  keep(theme);
  show(theme);
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () =>
  document.dispatchEvent(new CustomEvent("theme")));
show(document.documentElement.dataset.theme ?? "auto");
