// The chat page: asks, shows what the run tells, and keeps the question when something fails.

import { ApiError, api, request, signInAddress } from "../api.js";
import { element, notice, toast } from "../ui.js";
import { LiveAnswer, listenToThread, showTrace } from "./answer.js";
import { Composer } from "./composer.js";
import { runEvents } from "./events.js";
import { Picker } from "./picker.js";
import { Rail } from "./rail.js";
import { Scroll } from "./scroll.js";
import { isStage } from "./trace.js";

const root = document.querySelector("[data-chat]");
const turns = root.querySelector("[data-turns]");
const welcome = root.querySelector("[data-welcome]");
const scroll = new Scroll(root.querySelector("[data-scroll]"), root.querySelector("[data-to-bottom]"));
const conversation = { id: Number(root.dataset.conversationId) || null };
const rail = new Rail(root.querySelector("[data-rail]"), conversation.id);
const picker = new Picker(root.querySelector("[data-picker]"), conversation);
const composer = new Composer(root.querySelector("[data-composer]"), { onAsk: ask, onStop: stop });
let run = null;

function addQuestion(question) {
  const article = element("article", { class: "turn turn--question", "aria-label": gettext("Question") }, element("pre", { text: question }));
  turns.append(article);
  return article;
}

function addAnswer() {
  const article = document.getElementById("answer-template").content.firstElementChild.cloneNode(true);
  turns.append(article);
  return new LiveAnswer(article);
}

async function ask(question) {
  if (welcome) welcome.hidden = true;
  root.querySelector("[data-problem]").replaceChildren();
  const asked = addQuestion(question);
  const answer = addAnswer();
  run = { id: null, question, controller: new AbortController() };
  composer.setBusy(true);
  scroll.toEnd();
  const body = { question };
  if (conversation.id) body.conversation_id = conversation.id;
  if (picker.chosen.length) body.kb_ids = picker.chosen;
  try {
    const response = await request("POST", "/api/chat/ask/", {
      json: body,
      headers: { Accept: "text/event-stream" },
      signal: run.controller.signal,
    });
    run.id = response.headers.get("X-Run-Id");
    enter(Number(response.headers.get("X-Conversation-Id")), question);
    await follow(answer, response);
  } catch (error) {
    if (run.id) await broken(answer, error);
    else refused(asked, answer, error);
  } finally {
    run = null;
    composer.setBusy(false);
  }
}

function enter(id, question) {
  if (!id) return;
  const isNew = conversation.id !== id;
  conversation.id = id;
  if (isNew) history.replaceState(null, "", `/chat/${id}/`);
  rail.show(id, isNew ? question.slice(0, 60) : "");
}

// Shows a run's events up to its end.
async function follow(answer, response) {
  const path = `/api/chat/runs/${run.id}/events/`;
  const onConnection = (isBack) => {
    if (isBack) answer.unnotify("connection");
    else answer.notify("connection", gettext("The connection was lost. Connecting again…"));
  };
  for await (const { name, data } of runEvents(response, path, onConnection, run.controller.signal)) {
    if (isStage(name)) answer.stage(name, data);
    else if (name === "start") started(answer, data);
    else if (name === "token") answer.append(data.text);
    else if (name === "done") await done(answer, data);
    else if (name === "error") failed(answer, new ApiError(data.message, { code: data.code }));
    // Once it is done the reader reads: the sources that appear below do not push the answer away.
    if (name !== "done") scroll.follow();
  }
}

function started(answer, data) {
  answer.article.dataset.message = data.messageId;
}

async function done(answer, data) {
  answer.settle();
  try {
    const article = await answer.replaceByRendered(data.messageId);
    if (data.notice && !article.querySelector("[data-model-notice]")) answer.notify("notice", data.notice);
  } catch (error) {
    answer.notify("notice", error.message, "bad", reloadButton());
  }
}

// The stream ended too early. Where the run's events are no longer kept, its message tells how it ended.
async function broken(answer, error) {
  if (error.status !== 410) {
    failed(answer, error);
    return;
  }
  await done(answer, { messageId: error.details.message_id });
  if (answer.article.dataset.status !== "streaming") return;
  answer.text.hidden = answer.text.textContent === "";
  failed(answer, new ApiError(gettext("The server was restarted while this answer was being written.")));
}

// The run broke: what was written stays, the question can be asked again.
function failed(answer, error) {
  answer.settle();
  answer.unnotify("connection");
  if (error.name === "AbortError") return;
  const { question } = run;
  const actions = error.isSignedOut ? [signInLink()] : [againButton(question), reloadButton()];
  answer.notify("error", error.message, "bad", ...actions);
}

// The question was not taken: it goes back to where it was written.
function refused(asked, answer, error) {
  asked.remove();
  answer.article.remove();
  composer.restore(run.question);
  if (welcome && !turns.childElementCount) welcome.hidden = false;
  if (error.name === "AbortError") return;
  showProblem(error);
}

function showProblem(error) {
  const actions = error.isSignedOut ? [signInLink()] : [];
  root.querySelector("[data-problem]").replaceChildren(notice(error.message, "bad", ...actions));
}

function againButton(question) {
  return element("button", {
    type: "button",
    class: "button button--small",
    text: gettext("Ask again"),
    onclick: () => (run ? toast(gettext("Another answer is still being written.")) : ask(question)),
  });
}

function reloadButton() {
  const onclick = () => location.reload();
  return element("button", { type: "button", class: "button button--small", text: gettext("Reload the page"), onclick });
}

function signInLink() {
  return element("a", { class: "button button--small", href: signInAddress(), text: gettext("Sign in") });
}

async function stop() {
  if (!run) return;
  composer.stop.disabled = true;
  if (!run.id) {
    run.controller.abort();
    return;
  }
  try {
    await api("POST", `/api/chat/runs/${run.id}/stop/`);
  } catch (error) {
    composer.stop.disabled = false;
    toast(error.message);
  }
}

// An answer that was being written when the page was opened.
async function join(article) {
  const question = article.previousElementSibling?.querySelector("pre")?.textContent ?? "";
  const answer = new LiveAnswer(article);
  run = { id: article.dataset.run, question, controller: new AbortController() };
  composer.setBusy(true);
  try {
    await follow(answer, null);
  } catch (error) {
    await broken(answer, error);
  } finally {
    run = null;
    composer.setBusy(false);
  }
}

listenToThread(turns);
for (const article of turns.querySelectorAll(".turn--answer")) {
  if (article.dataset.status === "streaming") join(article);
  else showTrace(article);
}
turns.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-ask-again]");
  if (button && !run) ask(button.dataset.askAgain);
});
for (const suggestion of root.querySelectorAll("[data-suggestion]")) {
  suggestion.addEventListener("click", () => !run && ask(suggestion.dataset.suggestion));
}
const lastQuestion = [...turns.querySelectorAll(".turn--question")].at(-1);
if (lastQuestion) scroll.toLast(lastQuestion);
composer.focus();
