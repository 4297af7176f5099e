// Answers in the thread: one being written, and those the server has rendered.

import { api, request } from "../api.js";
import { notice, toast } from "../ui.js";
import { Trace, isStage } from "./trace.js";

const paths = document.querySelector("[data-chat]").dataset;

export const messagePath = (id) => paths.messagePath.replace("/0/", `/${id}/`);

// Builds the trace of an answer that came rendered from the server.
export function showTrace(article) {
  const data = article.querySelector(":scope > script[type='application/json']");
  if (!data) return;
  const stored = JSON.parse(data.textContent);
  const trace = new Trace(article.querySelector("[data-trace]"));
  for (const { event, ...payload } of stored.trace) if (isStage(event)) trace.add(event, payload);
  trace.summarize(stored.responseTimeMs);
}

export class LiveAnswer {
  #hasText = false;

  constructor(article) {
    this.article = article;
    this.text = article.querySelector("[data-text]");
    this.notices = article.querySelector("[data-notices]");
    this.trace = new Trace(article.querySelector("[data-trace]"));
    this.trace.begin();
  }

  stage(name, payload) {
    this.trace.add(name, payload);
  }

  append(text) {
    if (!this.#hasText) {
      this.#hasText = true;
      this.text.replaceChildren(); // What the server had written down; the run tells it again.
      this.text.hidden = false;
      this.trace.details.open = false;
    }
    this.text.append(text);
  }

  settle() {
    this.article.dataset.status = "settled";
    this.text.classList.remove("answer__text--live");
    this.trace.summarize(0);
  }

  notify(key, message, kind = "warn", ...actions) {
    this.unnotify(key);
    const node = notice(message, kind, ...actions);
    node.dataset.key = key;
    this.notices.append(node);
  }

  unnotify(key) {
    this.notices.querySelector(`[data-key="${key}"]`)?.remove();
  }

  // Puts the server's rendering in place of the text that was streamed.
  async replaceByRendered(messageId) {
    const response = await request("GET", messagePath(messageId), { headers: { Accept: "text/html" } });
    const template = document.createElement("template");
    template.innerHTML = await response.text();
    const rendered = template.content.querySelector("article");
    this.unnotify("connection");
    for (const node of this.notices.children) rendered.querySelector("[data-notices]").append(node.cloneNode(true));
    this.article.replaceWith(rendered);
    this.article = rendered;
    this.text = rendered.querySelector("[data-text]");
    this.notices = rendered.querySelector("[data-notices]");
    showTrace(rendered);
    return rendered;
  }
}

// Clicks inside the thread: citations, copy, thumbs.
export function listenToThread(thread) {
  thread.addEventListener("click", (event) => {
    const citation = event.target.closest("a.citation-ref");
    if (citation) {
      event.preventDefault();
      showSource(citation.closest("article"), citation.dataset.index);
      return;
    }
    const button = event.target.closest("button[data-do]");
    if (!button) return;
    const article = button.closest("article");
    if (button.dataset.do === "copy") copy(article, button);
    if (button.dataset.do === "rate") rate(article, button);
  });
  document.addEventListener("pointerdown", (event) => {
    for (const open of thread.querySelectorAll("details.confidence[open]")) {
      if (!open.contains(event.target)) open.open = false;
    }
  });
}

function showSource(article, index) {
  const card = article.querySelector(`.source[data-index="${CSS.escape(index)}"]`);
  if (!card) return;
  const folded = card.closest("details");
  if (folded) folded.open = true;
  card.scrollIntoView({ block: "center", behavior: "smooth" });
  card.querySelector("a")?.focus({ preventScroll: true });
  card.classList.remove("source--flash");
  requestAnimationFrame(() => card.classList.add("source--flash"));
}

async function copy(article, button) {
  const { content } = JSON.parse(article.querySelector(":scope > script[type='application/json']").textContent);
  try {
    await writeClipboard(content);
  } catch {
    toast(gettext("The browser does not allow copying here. Select the text instead."));
    return;
  }
  const use = button.querySelector("use");
  const plain = use.getAttribute("href");
  use.setAttribute("href", plain.replace("#copy", "#check"));
  setTimeout(() => use.setAttribute("href", plain), 1500);
}

// navigator.clipboard exists on HTTPS and localhost only; teams do run DocMind on plain HTTP.
async function writeClipboard(text) {
  if (navigator.clipboard) {
    await navigator.clipboard.writeText(text);
    return;
  }
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  const copied = document.execCommand("copy");
  area.remove();
  if (!copied) throw new Error("copy");
}

async function rate(article, button) {
  const wanted = button.getAttribute("aria-pressed") === "true" ? 0 : Number(button.dataset.value);
  try {
    await api("POST", `/api/chat/messages/${article.dataset.message}/feedback/`, { value: wanted });
  } catch (error) {
    toast(error.message);
    return;
  }
  for (const other of article.querySelectorAll("button[data-do=rate]")) {
    other.setAttribute("aria-pressed", String(Number(other.dataset.value) === wanted));
  }
}
