// A dialog whose form is sent to the API as JSON; the problem, if there is one, stands inside it.

import { api } from "./api.js";
import { closeOnBackdrop, notice } from "./ui.js";

export function openable(dialog, opener, onSaved) {
  const form = dialog.querySelector("form");
  const problem = form.querySelector("[data-problem]");
  opener.addEventListener("click", () => {
    problem.replaceChildren();
    dialog.showModal();
  });
  form.querySelector("[data-cancel]").addEventListener("click", () => dialog.close());
  closeOnBackdrop(dialog);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const submit = form.querySelector("[type=submit]");
    submit.disabled = true;
    try {
      onSaved(await api(form.dataset.method, form.dataset.action, Object.fromEntries(new FormData(form))));
    } catch (error) {
      problem.replaceChildren(notice(error.message));
    } finally {
      submit.disabled = false;
    }
  });
}
