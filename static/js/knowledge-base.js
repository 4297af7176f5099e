// A knowledge base: uploads, its documents with live progress, and what can be done with them.

import { api } from "./api.js";
import { openable } from "./form-dialog.js";
import { documentRow } from "./document-row.js";
import { confirmed, readJson, toast } from "./ui.js";
import { Uploads } from "./uploads.js";

const POLL_MS = 3000;
const RECONCILE_MS = 20_000;

const page = document.querySelector("[data-kb]");
const kbId = Number(page.dataset.kb);
const list = page.querySelector("[data-documents-list]");
const counts = page.querySelector("[data-counts]");
const documents = new Map();
const rights = { update: Boolean(page.dataset.canUpdate), delete: Boolean(page.dataset.canDelete) };
const actions = { onRetry, onCancel, onDelete };
const isAtWork = ({ status }) => !["ready", "failed", "cancelled"].includes(status);
let isLive = false;
let source = null;

function show(item) {
  const known = documents.get(item.id);
  documents.set(item.id, item);
  const row = documentRow(item, { rights, actions, path: page.dataset.documentPath });
  const old = list.querySelector(`[data-document="${item.id}"]`);
  if (old) replaceRow(old, row);
  else if (page.dataset.page === "1") list.prepend(row);
  else documents.delete(item.id);
  if (known && isAtWork(known) && !isAtWork(item)) refreshCounts();
  showEmptiness();
}

// Keeps the focus where it was: a row changes several times while somebody may be on one of its buttons.
function replaceRow(old, row) {
  const focused = old.contains(document.activeElement) ? document.activeElement.dataset.do : null;
  old.replaceWith(row);
  if (focused) row.querySelector(`[data-do="${focused}"]`)?.focus();
}

function forget(id) {
  documents.delete(id);
  list.querySelector(`[data-document="${id}"]`)?.remove();
  showEmptiness();
}

function showEmptiness() {
  list.hidden = documents.size === 0;
  page.querySelector("[data-empty]").hidden = documents.size > 0;
}

function showCounts(documentCount, chunkCount) {
  const parts = [
    interpolate(ngettext("%(count)s document", "%(count)s documents", documentCount), { count: documentCount }, true),
    interpolate(ngettext("%(count)s passage", "%(count)s passages", chunkCount), { count: chunkCount }, true),
  ];
  counts.textContent = parts.join(" · ");
}

async function refreshCounts() {
  try {
    const found = await api("GET", `/api/kb/knowledge-bases/${kbId}/`);
    showCounts(found.document_count, found.chunk_count);
  } catch {
    // The next change brings them; nothing else depends on the numbers.
  }
}

async function refresh() {
  const { page: number, pageSize } = page.dataset;
  const found = await api("GET", `/api/kb/knowledge-bases/${kbId}/documents/?page=${number}&page_size=${pageSize}`);
  const present = new Set(found.results.map(({ id }) => id));
  for (const id of documents.keys()) if (!present.has(id)) forget(id);
  for (const item of found.results.reverse()) {
    if (JSON.stringify(documents.get(item.id)) !== JSON.stringify(item)) show(item);
  }
}

async function onRetry(item) {
  try {
    show(await api("POST", `/api/kb/documents/${item.id}/reingest/`));
  } catch (error) {
    toast(error.message);
  }
}

async function onCancel(item) {
  try {
    show(await api("POST", `/api/kb/documents/${item.id}/cancel/`));
  } catch (error) {
    toast(error.message);
  }
}

async function onDelete(item) {
  const explanation = interpolate(gettext("“%(name)s” and its passages will be gone; answers can no longer cite it."), { name: item.source_name }, true);
  if (!(await confirmed(gettext("Delete this document?"), explanation, gettext("Delete")))) return;
  try {
    await api("DELETE", `/api/kb/documents/${item.id}/`);
    forget(item.id);
    refreshCounts();
  } catch (error) {
    toast(error.message);
  }
}

async function onDeleteKnowledgeBase() {
  const name = page.querySelector("[data-name]").textContent;
  const explanation = interpolate(gettext("“%(name)s” and all its documents will be gone. This cannot be undone."), { name }, true);
  if (!(await confirmed(gettext("Delete this knowledge base?"), explanation, gettext("Delete")))) return;
  try {
    await api("DELETE", `/api/kb/knowledge-bases/${kbId}/`);
    location.assign("/kb/");
  } catch (error) {
    toast(error.message);
  }
}

// The stream tells all its listeners the same; the reason of a failure is asked for in the reader's language.
async function told(item) {
  show(item);
  if (!item.error) return;
  try {
    show(await api("GET", `/api/kb/documents/${item.id}/`));
  } catch {
    // What the stream has said stays.
  }
}

// Live progress. Where the stream is not to be had, the rows that are at work are asked for.
function listen() {
  source = new EventSource(page.dataset.events);
  source.addEventListener("stream-open", () => {
    isLive = true;
    poll();
  });
  source.addEventListener("document", ({ data }) => told(JSON.parse(data)));
  source.addEventListener("document-deleted", ({ data }) => forget(JSON.parse(data).id));
  source.addEventListener("stream-error", () => {
    isLive = false;
    source.close();
  });
  source.addEventListener("error", () => {
    isLive = false;
    if (source.readyState === EventSource.CLOSED) setTimeout(listen, RECONCILE_MS);
  });
}

addEventListener("pagehide", () => source?.close());

async function poll() {
  try {
    await refresh();
  } catch {
    // Tried again at the next turn; what is shown stays.
  }
}

let sincePoll = 0;
setInterval(() => {
  sincePoll += POLL_MS;
  if (document.hidden || ![...documents.values()].some(isAtWork)) return;
  if (isLive && sincePoll < RECONCILE_MS) return;
  sincePoll = 0;
  poll();
}, POLL_MS);

for (const item of readJson("documents").reverse()) {
  documents.set(item.id, item);
  list.prepend(documentRow(item, { rights, actions, path: page.dataset.documentPath }));
}
showCounts(Number(counts.dataset.documents), Number(counts.dataset.chunks));

const drop = page.querySelector("[data-drop]");
if (drop) {
  new Uploads({
    drop,
    input: page.querySelector("[data-files]"),
    choose: page.querySelector("[data-choose]"),
    list: page.querySelector("[data-uploads]"),
    kbId,
    maxBytes: Number(page.dataset.maxBytes),
    onUploaded: (item) => {
      show(item);
      refreshCounts();
    },
  });
}
const edit = document.getElementById("edit");
if (edit) openable(edit, page.querySelector("[data-edit]"), () => location.reload());
page.querySelector("[data-delete-kb]")?.addEventListener("click", onDeleteKnowledgeBase);
listen();
