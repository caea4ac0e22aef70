"use strict";
(() => {
  const make = (tag, words, attributes = {}) => {
    const made = document.createElement(tag);
    made.textContent = words;
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    return made;
  };
  const parts = [...document.querySelectorAll("details.group")];

  // Whoever follows a link to a group sees it opened.
  const open = () => {
    const part = document.getElementById(location.hash.slice(1));
    if (part instanceof HTMLDetailsElement) {
      choose("");
      part.open = true;
      part.scrollIntoView();
    }
  };

  // Choice of groups: one of them, or all; and a search in every list.
  const box = make("div", "", { class: "tools" });
  const select = make("select", "", { "aria-label": "Group" });
  select.append(make("option", "All groups", { value: "" }));
  for (const part of parts) {
    const name = part.querySelector("summary bdi").textContent;
    select.append(make("option", name, { value: part.id }));
  }
  const choose = (id) => {
    select.value = id;
    for (const part of parts) {
      part.hidden = id !== "" && part.id !== id;
      if (part.id === id) part.open = true;
    }
  };
  select.addEventListener("change", () => choose(select.value));
  const search = make("input", "", {
    type: "search", placeholder: "Search groups and clients", "aria-label": "Search",
  });
  const count = make("output", "");
  const tables = [...document.querySelectorAll("section > .scroll > table")];
  const find = () => {
    const wanted = search.value.trim().toLowerCase();
    let found = 0;
    const look = (node) => {
      node.hidden = wanted !== "" && !node.textContent.toLowerCase().includes(wanted);
      if (wanted !== "" && !node.hidden) found += 1;
    };
    for (const table of tables) [...table.tBodies[0].rows].forEach(look);
    parts.forEach(look);
    count.textContent = wanted === "" ? "" : `${found} found`;
  };
  search.addEventListener("input", find);
  if (parts.length) box.append(select);
  box.append(search, count);
  document.querySelector("nav").append(box);

  // Sorting by a column, numbers and durations by what they mean.
  const units = { ms: 1, s: 1e3, min: 6e4, h: 36e5, d: 864e5 };
  const read = (cell) => {
    const text = cell === undefined ? "" : cell.textContent.trim();
    const match = /^(-?[\d,]+(?:\.\d+)?)(?: (ms|s|min|h|d))?$/.exec(text);
    if (match === null) return text === "–" ? -1 : text.toLowerCase();
    return Number(match[1].replaceAll(",", "")) * (units[match[2]] ?? 1);
  };
  const compare = (one, other) =>
    typeof one === typeof other ? (one < other ? -1 : one > other ? 1 : 0)
      : typeof one === "number" ? -1 : 1;
  for (const table of document.querySelectorAll("main table")) {
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      const button = make("button", head.textContent, { type: "button" });
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") !== "descending";
        for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const body = table.tBodies[0];
        const rows = [...body.rows].filter((row) => !row.classList.contains("rest"));
        const keys = new Map(rows.map((row) => [row, read(row.cells[column])]));
        rows.sort((one, other) => compare(keys.get(one), keys.get(other)) * (down ? -1 : 1));
        body.prepend(...rows);
      });
    });
  }

  addEventListener("hashchange", open);
  open();
})();
