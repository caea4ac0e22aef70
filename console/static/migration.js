// The progress of a migration is asked for again while it goes on and somebody looks.

const EVERY_MS = 2000;

async function refresh() {
  const shown = document.getElementById("progress");
  if (!shown || shown.dataset.done === "yes" || document.hidden) {
    return;
  }
  try {
    const answer = await fetch(location.href, { headers: { accept: "text/html" } });
    if (!answer.ok) {
      return;
    }
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const next = page.getElementById("progress");
    if (next) {
      shown.replaceWith(document.adoptNode(next));
    }
  } catch {
    // The server is away for a while: what is shown stays.
  }
}

setInterval(refresh, EVERY_MS);
