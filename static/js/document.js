// Brings the cited passage into view. The address's #passage does it too, but not after the browser has gone back.

const passage = document.getElementById("passage");

function show() {
  const target = passage.querySelector("mark") ?? passage;
  const block = passage.getBoundingClientRect().height < innerHeight * 0.7 ? "center" : "start";
  target.scrollIntoView({ block });
  passage.focus({ preventScroll: true });
}

if (passage) {
  show();
  document.querySelector("[data-passage-bar] a").addEventListener("click", (event) => {
    event.preventDefault();
    show();
  });
}
