// One document in the list of its knowledge base.

import { bytes, element, iconButton } from "./ui.js";

const STATES = {
  pending: () => gettext("waiting"),
  parsing: () => gettext("reading"),
  chunking: () => gettext("splitting"),
  indexing: () => gettext("indexing"),
  ready: () => gettext("ready"),
  failed: () => gettext("failed"),
  cancelled: () => gettext("cancelled"),
};

const TONES = { ready: "badge--good", failed: "badge--bad", cancelled: "" };

export function documentRow(item, { rights, actions, path }) {
  const isAtWork = !(item.status in TONES);
  return element(
    "li",
    { class: "document-row", "data-document": item.id, "data-status": item.status },
    nameOf(item, path),
    stateOf(item, isAtWork),
    actionsOf(item, isAtWork, rights, actions),
    item.status === "failed" ? element("p", { class: "document-row__error", text: item.error || gettext("Unknown error.") }) : null,
  );
}

function nameOf(item, path) {
  // An earlier version stays readable while a new one is being worked on.
  const isReadable = item.status === "ready" || Boolean(item.published_at);
  const title = isReadable
    ? element("a", { href: path.replace("/0/", `/${item.id}/`), text: item.source_name, title: item.source_name })
    : element("span", { text: item.source_name, title: item.source_name });
  const facts = element("span", { class: "facts" }, element("span", { text: bytes(item.size_bytes) }));
  if (item.chunk_count) {
    const count = item.chunk_count;
    facts.append(element("span", { text: interpolate(ngettext("%(count)s passage", "%(count)s passages", count), { count }, true) }));
  }
  facts.append(element("span", { text: new Date(item.created_at).toLocaleString(document.documentElement.lang, { dateStyle: "medium", timeStyle: "short" }) }));
  return element("div", { class: "document-row__name" }, title, facts);
}

function stateOf(item, isAtWork) {
  const name = STATES[item.status]?.() ?? item.status;
  const percent = isAtWork && item.progress > 0 ? ` ${Math.floor(item.progress * 100)} %` : "";
  const badge = element("span", { class: `badge ${TONES[item.status] ?? "badge--busy"}`, text: name + percent });
  const bar = isAtWork ? element("progress", { max: 1, value: item.progress, "aria-label": name }) : null;
  return element("div", { class: "document-row__state" }, badge, bar);
}

function actionsOf(item, isAtWork, rights, { onRetry, onCancel, onDelete }) {
  const box = element("div", { class: "document-row__actions" });
  const add = (kind, symbol, label, act) => {
    const button = iconButton(symbol, label, () => act(item));
    button.dataset.do = kind;
    box.append(button);
  };
  if (rights.update && isAtWork) add("cancel", "close", gettext("Cancel"), onCancel);
  if (rights.update && !isAtWork) add("retry", "retry", item.status === "ready" ? gettext("Read again") : gettext("Try again"), onRetry);
  if (rights.delete) add("delete", "trash", gettext("Delete"), onDelete);
  return box;
}
