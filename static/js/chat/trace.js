// The stage trace: one line an event of the pipeline, the same live and for old answers.

import { element, milliseconds } from "../ui.js";

const NAMES = {
  understanding: () => gettext("Understanding"),
  scope: () => gettext("Scope"),
  routing: () => gettext("Routing"),
  agentic: () => gettext("Agent round"),
  code_exec: () => gettext("Code"),
  retrieval: () => gettext("Retrieval"),
  rerank: () => gettext("Rerank"),
  grader: () => gettext("Evidence"),
};

const MODES = {
  RULE_PLANNER: () => gettext("one search"),
  AGENTIC: () => gettext("the model searches"),
  SELECTED_DOC: () => gettext("chosen documents"),
};

const TIERS = {
  HIGH: () => gettext("strong"),
  AMBIGUOUS: () => gettext("ambiguous"),
  LOW: () => gettext("weak"),
};

// The words of the classification and of the grade. What is not listed is shown as it came.
const WORDS = {
  HOW_TO: () => gettext("how-to"),
  TROUBLESHOOTING: () => gettext("troubleshooting"),
  COMPARISON: () => gettext("comparison"),
  SUMMARY: () => gettext("summary"),
  DEFINITION: () => gettext("definition"),
  LOOKUP: () => gettext("look-up"),
  GENERAL: () => gettext("general"),
  SIMPLE: () => gettext("simple"),
  MEDIUM: () => gettext("medium"),
  COMPLEX: () => gettext("complex"),
  PRECISE: () => gettext("precise"),
  NORMAL: () => gettext("normal"),
  FUZZY: () => gettext("vague"),
  META_CONVERSATION: () => gettext("about this conversation"),
  CHITCHAT: () => gettext("small talk"),
  KB_META: () => gettext("about the knowledge bases"),
  USER_MEMORY: () => gettext("about what is remembered"),
  OUT_OF_SCOPE: () => gettext("out of scope"),
  no_evidence: () => gettext("Nothing was found."),
  score_high: () => gettext("The best passage scores high."),
  score_high_entity_present: () => gettext("The best passage scores high, and what the question names is there."),
  score_high_entity_missing: () => gettext("The best passage scores high, but something the question names is missing."),
  score_low: () => gettext("All passages score low."),
  score_low_entity_present: () => gettext("The passages score low, but what the question names is there."),
  score_low_entity_missing: () => gettext("The passages score low, and something the question names is missing."),
  score_between: () => gettext("The best passage scores neither high nor low."),
};

const word = (code) => WORDS[code]?.() ?? code;

const WAITING = {
  "": () => gettext("Reading the question…"),
  understanding: () => gettext("Choosing the way…"),
  routing: () => gettext("Searching…"),
  agentic: () => gettext("Searching…"),
  retrieval: () => gettext("Ranking the passages…"),
  rerank: () => gettext("Weighing the evidence…"),
  grader: () => gettext("Writing the answer…"),
  scope: () => gettext("Writing the answer…"),
};

export const isStage = (name) => name in NAMES;

const score = (value) => Number(value ?? 0).toFixed(2);

function fact(label, value) {
  return element("span", { class: "stage__fact" }, element("span", { text: `${label} ` }), element("span", { text: value }));
}

function gauge(label, value) {
  const number = Number(value ?? 0);
  const bar = element("progress", { max: 1, value: Math.min(Math.max(number, 0), 1), "aria-hidden": "true" });
  const text = element("span", { class: "number", text: score(number) });
  return element("span", { class: "stage__fact" }, element("span", { text: `${label} ` }), bar, text);
}

const note = (text) => (text ? element("span", { class: "stage__note", text }) : null);

// What fell back in a stage. Understanding by rules is how it is done without a model's help: a note, no fallback.
function degradations({ name, event: { degraded } }) {
  if (name === "understanding") return [];
  const items = Array.isArray(degraded) ? degraded : degraded ? [{ part: "", reason: degraded }] : [];
  return items.map(({ part, reason }) =>
    element("span", { class: "stage__degraded", text: part ? `${part}: ${reason}` : reason }),
  );
}

function toolCall(call) {
  const query = call.arguments?.query ?? "";
  const outcome = call.error ? call.error : interpolate(gettext("%(count)s found"), { count: call.resultCount ?? 0 }, true);
  return element("span", { class: "stage__note", text: `${call.name} ${query ? `“${query}” ` : ""}→ ${outcome}` });
}

const FACTS = {
  understanding: (e) => [
    fact(gettext("intent"), word(e.intent)),
    fact(gettext("complexity"), word(e.complexity)),
    fact(gettext("specificity"), word(e.specificity)),
    e.isAmbiguous ? fact(gettext("ambiguous"), gettext("yes")) : null,
    e.rewritten && e.rewritten !== e.original ? note(`${gettext("searched as")} “${e.rewritten}”`) : null,
    note(e.degraded),
  ],
  scope: (e) => [fact(gettext("answered without a search"), word(e.scope)), fact(gettext("confidence"), score(e.confidence))],
  routing: (e) => [
    fact(gettext("way"), MODES[e.mode]?.() ?? e.mode),
    e.tools?.length ? fact(gettext("tools"), e.tools.join(", ")) : null,
    note(e.reason),
  ],
  agentic: (e) => [fact(gettext("round"), `${e.iteration}/${e.maxIterations}`), ...(e.toolCalls ?? []).map(toolCall)],
  code_exec: (e) => [fact(gettext("language"), e.language), fact(gettext("exit code"), e.exitCode)],
  retrieval: (e) => [
    fact(gettext("passages"), e.kbCount),
    e.webCount ? fact(gettext("web"), e.webCount) : null,
    e.memoryCount ? fact(gettext("memories"), e.memoryCount) : null,
  ],
  rerank: (e) => [
    fact(gettext("kept"), interpolate(gettext("%(kept)s of %(candidates)s"), e, true)),
    gauge(gettext("best"), e.topScore),
    e.model ? fact(gettext("by"), e.model) : null,
  ],
  grader: (e) => [
    fact(gettext("grade"), TIERS[e.tier]?.() ?? e.tier),
    gauge(gettext("best score"), e.topScore),
    gauge(gettext("mean"), e.avgScore),
    gauge(gettext("terms covered"), e.lexCoverage),
    note(word(e.reason)),
  ],
};

export class Trace {
  #events = [];

  constructor(details) {
    this.details = details;
    this.stages = details.querySelector("[data-stages]");
    this.title = details.querySelector("[data-trace-title]");
  }

  begin() {
    this.details.hidden = false;
    this.details.open = true;
    this.details.dataset.running = "";
    this.title.textContent = WAITING[""]();
  }

  add(name, event) {
    this.#events.push({ name, event });
    const fallen = degradations({ name, event });
    const line = element(
      "li",
      { class: `stage ${fallen.length ? "stage--degraded" : ""}` },
      element("span", { class: "stage__name", text: NAMES[name]() }),
      element("span", { class: "stage__facts" }, ...FACTS[name](event).filter(Boolean), ...fallen),
      element("span", { class: "stage__ms number", text: event.ms === undefined ? "" : milliseconds(event.ms) }),
    );
    this.stages.append(line);
    this.title.textContent = WAITING[name]?.() ?? "";
  }

  // The line that stands for the whole trace once the answer is there.
  summarize(responseTimeMs) {
    delete this.details.dataset.running;
    const find = (wanted) => this.#events.findLast(({ name }) => name === wanted)?.event;
    const parts = [interpolate(ngettext("%(count)s step", "%(count)s steps", this.#events.length), { count: this.#events.length }, true)];
    const rerank = find("rerank");
    const grader = find("grader");
    if (rerank) parts.push(interpolate(gettext("%(kept)s of %(candidates)s passages"), rerank, true));
    if (grader) parts.push(`${gettext("evidence")} ${TIERS[grader.tier]?.() ?? grader.tier}`);
    if (responseTimeMs) parts.push(milliseconds(responseTimeMs));
    if (this.#events.some((stage) => degradations(stage).length)) parts.push(gettext("partly fallen back"));
    this.title.textContent = parts.join(" · ");
    this.details.hidden = this.#events.length === 0;
  }
}
