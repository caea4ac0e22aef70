// The page of a group: changes as they come, the slider over its history, swim lanes, and keys.

const LANES_PAUSE_MS = 5000;
const PLAY_STEP_MS = 1000;

let source = null;
let lanesAgain = 0;
let playing = 0;

const body = () => document.getElementById("group");
const section = (name) => body().querySelector(`[data-section="${name}"]`);

// -- changes as they come

function say(text) {
  const status = document.getElementById("live");
  if (status) {
    status.textContent = text;
  }
}

function makeRow(html) {
  const holder = document.createElement("template");
  holder.innerHTML = html.trim();
  return holder.content.firstElementChild;
}

function keepOpen(from, to) {
  const were = from.querySelectorAll("details");
  to.querySelectorAll("details").forEach((each, number) => {
    each.open = were[number]?.open ?? false;
  });
}

function apply(change) {
  const places = new Map();
  const find = (name) => {
    if (!places.has(name)) {
      const place = section(name);
      if (change.reset) {
        place.replaceChildren();
      }
      const rows = new Map();
      for (const row of place.children) {
        rows.set(row.dataset.key, row);
      }
      places.set(name, { place, rows });
    }
    return places.get(name);
  };
  if (change.reset) {
    document.querySelectorAll("[data-section]").forEach((each) => find(each.dataset.section));
  }
  for (const key of change.gone) {
    body().querySelector(`[data-key="${key}"]`)?.remove();
  }
  for (const [name, key, after, html] of change.rows) {
    const { place, rows } = find(name);
    const row = makeRow(html);
    const old = rows.get(key);
    if (old) {
      keepOpen(old, row);
      old.replaceWith(row);
    } else if (after && rows.has(after)) {
      rows.get(after).after(row);
    } else {
      place.prepend(row);
    }
    rows.set(key, row);
  }
}

function listen() {
  const url = body().dataset.live;
  if (!url || source || document.hidden) {
    return;
  }
  source = new EventSource(url);
  source.addEventListener("open", () => say("Live: changes are shown as they come."));
  source.addEventListener("change", (event) => {
    apply(JSON.parse(event.data));
    body().dataset.live = url.replace(/since=[^&]*/, `since=${event.lastEventId}`);
    body().dataset.changed = String(Number(body().dataset.changed ?? 0) + 1);
    showLanesSoon();
  });
  source.addEventListener("end", (event) => {
    hush();
    delete body().dataset.live;
    say(`Not live any more: ${JSON.parse(event.data)}`);
  });
  source.addEventListener("error", () => {
    if (source?.readyState === EventSource.CLOSED) {
      source = null;
      say("Not live: the server keeps no more pages up to date, or is gone. Load the page again.");
    } else {
      say("The connection is lost; it is tried again.");
    }
  });
}

function hush() {
  source?.close();
  source = null;
}

// -- parts of other pages

async function fetchPage(url) {
  const answer = await fetch(url, { headers: { accept: "text/html" } });
  return new DOMParser().parseFromString(await answer.text(), "text/html");
}

async function showLanes() {
  const here = document.getElementById("lanes-here");
  if (!here.childElementCount) {
    here.textContent = "The history of the log is being read…";
  }
  const page = await fetchPage(body().dataset.lanes);
  const lanes = page.getElementById("lanes");
  if (!lanes) {
    here.textContent = page.querySelector("#refusal .message")?.textContent ?? "";
  } else {
    const wasOpen = here.querySelector(".changes-list")?.open ?? false;
    here.replaceChildren(document.adoptNode(lanes));
    const list = here.querySelector(".changes-list");
    if (list) {
      list.open = wasOpen;
    }
  }
}

function showLanesSoon() {
  const here = document.getElementById("lanes-here");
  if (!lanesAgain && here?.childElementCount) {
    lanesAgain = setTimeout(() => {
      lanesAgain = 0;
      showLanes().catch(() => {});
    }, LANES_PAUSE_MS);
  }
}

function showLanesWhenSeen() {
  const here = document.getElementById("lanes-here");
  const seen = new IntersectionObserver((entries) => {
    if (entries.some((entry) => entry.isIntersecting)) {
      seen.disconnect();
      showLanes().catch(() => {});
    }
  }, { rootMargin: "200px" });
  seen.observe(here);
}

// -- the slider

async function goTo(url, isNew) {
  const page = await fetchPage(url);
  const next = page.getElementById("group");
  if (!next) {
    location.assign(url);
    return;
  }
  hush();
  const slider = document.getElementById("slider");
  const lanes = document.getElementById("lanes-here");
  const hasLanes = Boolean(lanes?.childElementCount);
  const adopted = document.adoptNode(next);
  adopted.querySelector("#slider").replaceWith(slider);
  adopted.querySelector("#lanes-here").replaceWith(lanes);
  body().replaceWith(adopted);
  for (const id of ["command", "permalink"]) {
    const old = document.getElementById(id);
    const found = page.getElementById(id);
    if (old && found) {
      old.replaceWith(document.adoptNode(found));
    }
  }
  document.title = page.title;
  if (isNew) {
    history.pushState(null, "", url);
  }
  if (hasLanes && !playing) {
    showLanes().catch(() => {});
  }
  listen();
}

function renderTime(ms) {
  return new Date(ms).toISOString();
}

async function openSlider() {
  const slider = document.getElementById("slider");
  if (slider.moments) {
    slider.hidden = false;
    slider.querySelector("input").focus();
    return slider;
  }
  const answer = await fetch(body().dataset.moments);
  const moments = answer.ok ? await answer.json() : [];
  if (!moments.length) {
    return null;
  }
  slider.moments = moments;
  const range = document.createElement("input");
  range.type = "range";
  range.id = "moment";
  range.min = "0";
  range.max = String(moments.length);
  range.setAttribute("aria-label", "The changes of the group; the right end is now");
  const shown = document.createElement("output");
  shown.htmlFor = "moment";
  const play = document.createElement("button");
  play.type = "button";
  play.id = "play";
  play.textContent = "Play";
  slider.replaceChildren(range, shown, play);
  const at = Number(body().dataset.at ?? NaN);
  const place = Number.isNaN(at) ? moments.length : moments.filter((each) => each[0] <= at).length - 1;
  const show = (number) => {
    range.value = String(number);
    const moment = moments[number];
    shown.textContent = moment
      ? `${number + 1} of ${moments.length}: epoch ${moment[2]}, ${renderTime(moment[1])}`
      : "now";
    range.setAttribute("aria-valuetext", shown.textContent);
  };
  slider.show = show;
  show(Math.max(place, 0));
  let wanted = null;
  const move = async () => {
    const number = Number(range.value);
    show(number);
    if (wanted !== null) {
      wanted = number;
      return;
    }
    wanted = number;
    let done = null;
    while (done !== wanted) {
      done = wanted;
      await goTo(urlOf(moments[done]), true);
    }
    wanted = null;
  };
  slider.move = move;
  range.addEventListener("input", move);
  play.addEventListener("click", togglePlay);
  slider.hidden = false;
  range.focus();
  return slider;
}

function urlOf(moment) {
  const now = body().dataset.now;
  return moment ? `${now}?at=${encodeURIComponent(`offset:${moment[0]}`)}` : now;
}

async function togglePlay() {
  const slider = await openSlider();
  if (!slider) {
    return;
  }
  const button = document.getElementById("play");
  if (playing) {
    clearTimeout(playing);
    playing = 0;
    button.textContent = "Play";
    return;
  }
  const range = document.getElementById("moment");
  if (Number(range.value) >= slider.moments.length) {
    range.value = "0";
  }
  button.textContent = "Stop";
  const step = async () => {
    await slider.move();
    if (!playing) {
      return;
    }
    if (Number(range.value) >= slider.moments.length) {
      playing = 0;
      button.textContent = "Play";
      return;
    }
    range.value = String(Number(range.value) + 1);
    playing = setTimeout(step, PLAY_STEP_MS);
  };
  playing = setTimeout(step, 0);
}

function addSliderButton() {
  const slider = document.getElementById("slider");
  const open = document.createElement("button");
  open.type = "button";
  open.id = "open-slider";
  open.textContent = "Slider";
  open.addEventListener("click", () => openSlider().catch(() => {}));
  slider.append(open);
  slider.hidden = false;
}

// -- keys

function follow(id) {
  const link = document.getElementById(id);
  if (link) {
    goTo(link.href, true).catch(() => {});
  }
}

const KEYS = {
  "[": () => follow("previous"),
  "]": () => follow("next"),
  n: () => goTo(body().dataset.now, true).catch(() => {}),
  s: () => openSlider().catch(() => {}),
  p: () => togglePlay().catch(() => {}),
  l: () => {
    document.getElementById("lanes-title").scrollIntoView();
    showLanes().catch(() => {});
  },
};

document.addEventListener("keydown", (event) => {
  const isTyping = event.target.closest?.("input:not([type=range]), textarea, select");
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey) {
    return;
  }
  const act = KEYS[event.key];
  if (act) {
    event.preventDefault();
    act();
  }
});
document.addEventListener("visibilitychange", () => (document.hidden ? hush() : listen()));
addEventListener("popstate", () => goTo(location.href, false).catch(() => {}));
addEventListener("pagehide", hush);

addSliderButton();
showLanesWhenSeen();
listen();
