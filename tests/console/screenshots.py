"""Pictures of the console with real members behind it: ``make screenshots``.

    python -m tests.console.screenshots FOLDER

Each page is taken in light and in dark; three of them are those of the documentation.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path

from console.urls import make_url
from tests.groups import CHECKOUT
from tests.server import MusterServer
from tests.support.console.chromium import open_chromium, open_page
from tests.support.console.crew import Crew

GROUP = "billing"
TOPIC = "orders"
WIDTH, HEIGHT = 1280, 900
SETTLE_S = 3.0
IMAGES = CHECKOUT / "docs" / "images"
SHOWN = {
    "groups-light": "console-groups.png",
    "group-light": "console-group.png",
    "lanes-dark": "console-lanes.png",
}
"""Pictures of the documentation, by what they show."""

IMAGE_BYTES_MAX = 150_000


def compute_pages() -> dict[str, str]:
    """The pages by the name of their picture."""
    return {
        "groups": "/groups",
        "group": make_url("groups", GROUP),
        "lanes": make_url("groups", GROUP, "lanes"),
        "actions": make_url("groups", GROUP, "actions"),
        "whatif": f"{make_url('groups', GROUP, 'whatif')}?ask=1&add=2",
        "migration": make_url("groups", "ledger-app", "migration"),
        "candidates": "/migration",
        "topics": "/topics",
        "topic": make_url("topics", TOPIC),
        "log": make_url("log", group=GROUP),
        "cluster": "/cluster",
        "health": "/health",
    }


def play(server: MusterServer, crew: Crew) -> None:
    """Some history: members that come and go, a group of each type, lag."""
    crew.produce(TOPIC, 2_000)
    for number in (1, 2, 3):
        crew.join(f"billing-{number}", GROUP, TOPIC)
        time.sleep(SETTLE_S)
    crew.join("ledger-1", "ledger-app", TOPIC, group_protocol="classic")
    crew.join_by_sdk("shipping-1", "shipping", TOPIC)
    crew.leave("billing-2")
    time.sleep(SETTLE_S)
    crew.join("billing-4", GROUP, TOPIC)
    time.sleep(SETTLE_S)


def main(folder: Path) -> None:
    """Take all pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as data,
        MusterServer(Path(data) / "data", topics={TOPIC: 12, "payments": 4}) as server,
        Crew(server.kafka, server.grpc) as crew,
        open_chromium() as browser,
    ):
        play(server, crew)
        for is_dark in (False, True):
            with open_page(
                browser, f"http://{server.http}", is_dark=is_dark, width=WIDTH, height=HEIGHT
            ) as page:
                for name, path in compute_pages().items():
                    status = page.open(path)
                    page.page.wait_for_timeout(1_000)
                    file = folder / f"{name}-{'dark' if is_dark else 'light'}.png"
                    page.page.screenshot(path=file, full_page=name not in ("group", "log"))
                    print(f"{file} {status} {file.stat().st_size // 1024} kB")
                assert not page.errors, page.errors
    IMAGES.mkdir(exist_ok=True)
    for name, image in SHOWN.items():
        taken = folder / f"{name}.png"
        assert taken.stat().st_size < IMAGE_BYTES_MAX, f"{taken} is too large for docs/"
        shutil.copy(taken, IMAGES / image)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
