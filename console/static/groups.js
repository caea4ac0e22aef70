// The list of groups: shown anew every few seconds, if somebody wants it so.

const EVERY_MS = 5000;
const SOON_MS = 1000;
const SOON_TIMES = 10;
const KEY = "muster-groups-live";

async function showAnew() {
  if (document.hidden) {
    return;
  }
  const address = new URL(location.href);
  address.searchParams.set("part", "list");
  const answer = await fetch(address);
  if (!answer.ok || answer.redirected) {
    return;
  }
  const part = new DOMParser().parseFromString(await answer.text(), "text/html");
  const list = part.getElementById("list");
  // Whoever is on a link of the list stays there.
  if (list && !document.getElementById("list").contains(document.activeElement)) {
    document.getElementById("list").replaceWith(list);
  }
}

const label = document.getElementById("live");
const box = label.querySelector("input");
let timer = 0;

function turn() {
  clearInterval(timer);
  sessionStorage.setItem(KEY, box.checked ? "on" : "");
  if (box.checked) {
    timer = setInterval(() => showAnew().catch(() => {}), EVERY_MS);
  }
}

// What the page could not wait for is there a moment later.
async function finish(times) {
  if (times && document.querySelector("#list[data-unfinished]")) {
    await new Promise((resolve) => setTimeout(resolve, SOON_MS));
    await showAnew();
    await finish(times - 1);
  }
}

finish(SOON_TIMES).catch(() => {});
label.hidden = false;
box.checked = sessionStorage.getItem(KEY) === "on";
box.addEventListener("change", turn);
turn();
