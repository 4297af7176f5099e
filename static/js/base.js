// What every page has: the menu, the theme, times in the reader's own time zone.

const YEAR_S = 31_536_000;

for (const menu of document.querySelectorAll("details[data-menu]")) {
  document.addEventListener("pointerdown", (event) => {
    if (!menu.contains(event.target)) menu.open = false;
  });
  menu.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !menu.open) return;
    menu.open = false;
    menu.querySelector("summary").focus();
  });
}

const choices = [...document.querySelectorAll("[data-theme-choice]")];

function showTheme() {
  const current = document.documentElement.dataset.theme ?? "system";
  for (const choice of choices) choice.setAttribute("aria-pressed", String(choice.dataset.themeChoice === current));
}

for (const choice of choices) {
  choice.addEventListener("click", () => {
    const theme = choice.dataset.themeChoice;
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    document.cookie = `docmind_theme=${theme};path=/;max-age=${YEAR_S};samesite=lax`;
    showTheme();
  });
}

showTheme();

for (const time of document.querySelectorAll("time[data-local-time]")) {
  time.textContent = new Date(time.dateTime).toLocaleString(document.documentElement.lang, { dateStyle: "medium", timeStyle: "short" });
}
