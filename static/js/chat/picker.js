// Which knowledge bases are searched. None chosen means all.

import { api } from "../api.js";
import { toast } from "../ui.js";

export class Picker {
  constructor(details, conversation) {
    this.details = details;
    this.conversation = conversation;
    this.boxes = [...details.querySelectorAll("input[type=checkbox]")];
    this.label = details.querySelector("[data-label]");
    details.addEventListener("change", () => this.#changed());
    document.addEventListener("pointerdown", (event) => {
      if (!details.contains(event.target)) details.open = false;
    });
    details.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      details.open = false;
      details.querySelector("summary").focus();
    });
    this.#show();
  }

  get chosen() {
    return this.boxes.filter((box) => box.checked).map((box) => Number(box.value));
  }

  #show() {
    const names = this.boxes.filter((box) => box.checked).map((box) => box.dataset.name);
    const several = () => interpolate(gettext("%(count)s knowledge bases"), { count: names.length }, true);
    this.label.textContent = names.length > 1 ? several() : (names[0] ?? gettext("All knowledge bases"));
  }

  async #changed() {
    this.#show();
    if (!this.conversation.id) return;
    try {
      await api("PATCH", `/api/chat/conversations/${this.conversation.id}/`, { kb_ids: this.chosen });
    } catch (error) {
      toast(error.message);
    }
  }
}
