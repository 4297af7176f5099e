// The list of conversations: open on a phone, rename, delete, more of them.

import { api } from "../api.js";
import { confirmed, element, toast } from "../ui.js";

const PAGE_SIZE = 40;

export class Rail {
  constructor(root, currentId) {
    this.root = root;
    this.list = root.querySelector("[data-conversations]");
    this.template = document.getElementById("conversation-template");
    this.currentId = currentId;
    this.list.addEventListener("click", (event) => this.#clicked(event));
    this.more = root.querySelector("[data-more]");
    this.more?.addEventListener("click", () => this.#loadMore());
    this.#listenToPhone();
  }

  // Puts a conversation at the top, with what is known of it now.
  show(id, title) {
    this.currentId = id;
    let row = this.#row(id);
    if (!row) row = this.#build(id, title);
    row.classList.add("conversation--current");
    row.querySelector("a").setAttribute("aria-current", "page");
    if (title) this.#setTitle(row, title);
    this.list.prepend(row);
  }

  #row(id) {
    return this.list.querySelector(`[data-conversation="${id}"]`);
  }

  #build(id, title) {
    const row = this.template.content.firstElementChild.cloneNode(true);
    row.dataset.conversation = id;
    row.querySelector("a").href = `/chat/${id}/`;
    this.#setTitle(row, title || gettext("New conversation"));
    return row;
  }

  #setTitle(row, title) {
    const link = row.querySelector("a");
    link.textContent = title;
    link.title = title;
    if (Number(row.dataset.conversation) === this.currentId) {
      document.querySelector("[data-thread-title]").textContent = title;
      document.title = `${title} · DocMind`;
    }
  }

  #clicked(event) {
    const button = event.target.closest("button[data-do]");
    if (!button) return;
    const row = button.closest("[data-conversation]");
    if (button.dataset.do === "rename") this.#rename(row);
    if (button.dataset.do === "delete") this.#delete(row);
  }

  #rename(row) {
    const link = row.querySelector("a");
    const input = element("input", { type: "text", maxlength: 200, value: link.textContent, "aria-label": gettext("Name") });
    const form = element("form", {}, input);
    const finish = () => {
      form.remove();
      link.hidden = false;
    };
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const title = input.value.trim();
      finish();
      link.focus();
      if (!title || title === link.textContent) return;
      try {
        const saved = await api("PATCH", `/api/chat/conversations/${row.dataset.conversation}/`, { title });
        this.#setTitle(row, saved.title);
      } catch (error) {
        toast(error.message);
      }
    });
    input.addEventListener("keydown", (event) => {
      if (event.key === "Escape") finish();
    });
    input.addEventListener("blur", () => setTimeout(finish, 100));
    link.hidden = true;
    row.prepend(form);
    input.select();
  }

  async #delete(row) {
    const title = row.querySelector("a").textContent;
    const explanation = interpolate(gettext("“%(title)s” and all its messages will be gone."), { title }, true);
    if (!(await confirmed(gettext("Delete this conversation?"), explanation, gettext("Delete")))) return;
    try {
      await api("DELETE", `/api/chat/conversations/${row.dataset.conversation}/`);
    } catch (error) {
      toast(error.message);
      return;
    }
    if (Number(row.dataset.conversation) === this.currentId) location.assign("/chat/");
    else row.remove();
  }

  async #loadMore() {
    const page = Number(this.more.dataset.more);
    try {
      const found = await api("GET", `/api/chat/conversations/?page=${page}&page_size=${PAGE_SIZE}`);
      for (const { id, title } of found.results) if (!this.#row(id)) this.list.append(this.#build(id, title));
      this.more.dataset.more = String(page + 1);
      this.more.hidden = !found.next;
    } catch (error) {
      toast(error.message);
    }
  }

  #listenToPhone() {
    const set = (open) => this.root.classList.toggle("rail--open", open);
    document.querySelector("[data-open-rail]").addEventListener("click", () => {
      set(true);
      this.root.querySelector("a").focus();
    });
    this.root.querySelector("[data-close-rail]").addEventListener("click", () => set(false));
    document.addEventListener("pointerdown", (event) => {
      if (!this.root.contains(event.target)) set(false);
    });
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape") set(false);
    });
  }
}
