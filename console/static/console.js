// What every page has: the switch between light and dark, and buttons that copy.

const THEME_COOKIE = "muster-theme";
const YEAR_S = 31536000;
const THEMES = ["", "light", "dark"];
const LABELS = { "": "Theme: system", light: "Theme: light", dark: "Theme: dark" };

function showTheme(button) {
  button.textContent = LABELS[document.documentElement.dataset.theme ?? ""];
}

function turnTheme(button) {
  const root = document.documentElement;
  const next = THEMES[(THEMES.indexOf(root.dataset.theme ?? "") + 1) % THEMES.length];
  if (next) {
    root.dataset.theme = next;
  } else {
    delete root.dataset.theme;
  }
  document.cookie = `${THEME_COOKIE}=${next}; path=/; max-age=${YEAR_S}; samesite=strict`;
  showTheme(button);
}

async function copy(button) {
  const source = document.getElementById(button.dataset.copy);
  try {
    await navigator.clipboard.writeText(source.textContent);
    button.textContent = "Copied";
  } catch {
    // Without TLS browsers give no clipboard: select it instead.
    getSelection().selectAllChildren(source);
    button.textContent = "Selected";
  }
}

const theme = document.getElementById("theme");
theme.hidden = false;
showTheme(theme);
theme.addEventListener("click", () => turnTheme(theme));
for (const button of document.querySelectorAll("button[data-copy]")) {
  button.hidden = false;
  button.addEventListener("click", () => copy(button));
}
document.addEventListener("keydown", (event) => {
  const field = document.getElementById("q");
  const isTyping = /^(input|select|textarea)$/i.test(document.activeElement?.tagName ?? "");
  if (event.key === "/" && field && !isTyping && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();
    field.focus();
  }
});
