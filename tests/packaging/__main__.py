"""Runs the steps of packaging/Containerfile where no engine for containers runs.

    python -m tests.packaging FOLDER

Needs root, debootstrap, util-linux and a package index. The base is a Debian bookworm with Python
alone, as that of the image is. Each stage is a folder; its steps run in a chroot. Then the image is
used: with a read-only root file system, as the user and with the environment that it says, as
process 1 of a namespace of its own. The server refuses to be open, serves, passes the health check,
and stops for SIGTERM. Prints what was seen; the exit code is 1 if something was not.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.groups import CHECKOUT
from tests.packaging.containerfile import (
    Instruction,
    compute_environment,
    find_all,
    find_context,
    read_instructions,
    split_stages,
)

SUITE = "bookworm"
PACKAGES = "python3,python3-venv,python3-pip,ca-certificates"
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
COMPILERS = ("cc", "gcc", "g++", "clang", "make", "rustc", "cargo")
CHROOT = shutil.which("chroot", path="/usr/sbin:/usr/bin") or "chroot"
START_S = 60.0


def run(command: Sequence[str], **options: object) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload]
    if done.returncode:
        sys.exit(f"{shlex.join(command)}\n{done.stdout}{done.stderr}")
    return str(done.stdout)


def say(text: str) -> None:
    print(text, flush=True)


def make_base(folder: Path) -> Path:
    """What the image of Python has, as far as the steps need it: ``python``, and no compiler."""
    base = folder / "base"
    if not (base / "usr" / "bin" / "python3").exists():
        mirror = os.environ.get("DEBOOTSTRAP_MIRROR", "")
        run(["debootstrap", "--variant=minbase", f"--include={PACKAGES}", SUITE, str(base),
             *([mirror] if mirror else [])])  # fmt: skip
    (base / "usr/local/bin/python").unlink(missing_ok=True)
    (base / "usr/local/bin/python").symlink_to("/usr/bin/python3")
    shutil.copyfile(CERTIFICATES, base / CERTIFICATES.relative_to("/"))
    for name in ("resolv.conf", "hosts"):
        shutil.copyfile(f"/etc/{name}", base / "etc" / name)
    found = [name for name in COMPILERS if shutil.which(name, path=str(base / "usr/bin"))]
    if found:
        sys.exit(f"the base has compilers: {found}")
    say(f"base: Debian {SUITE} without a compiler")
    return base


def compute_index_settings() -> dict[str, str]:
    """Where pip finds packages on this machine; folders of its own are not in the chroot."""
    kept = {n: v for n, v in os.environ.items() if n.startswith("PIP_") or "proxy" in n.lower()}
    kept.pop("PIP_FIND_LINKS", None)
    return kept | {"PIP_CERT": str(CERTIFICATES)}


def enter(root: Path, command: Sequence[str], env: Mapping[str, str], folder: str = "/") -> str:
    inside = ["sh", "-c", f"cd {shlex.quote(folder)} && {shlex.join(command)}"]
    return run(["chroot", str(root), *inside], env={"PATH": os.defpath, **env})


def build(stage: Sequence[Instruction], root: Path, stages: Mapping[str, Path]) -> None:
    """Carry out the steps that change files."""
    env = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"} | compute_index_settings()
    workdir = "/"
    for each in stage:
        match each.keyword:
            case "WORKDIR":
                workdir = each.text
                (root / workdir.lstrip("/")).mkdir(parents=True, exist_ok=True)
            case "COPY":
                copy(each.text, root, workdir, stages)
            case "RUN":
                began_s = time.monotonic()
                enter(root, ["sh", "-c", each.text], env, workdir)
                say(f"ran in {time.monotonic() - began_s:.0f} s: {each.text[:60]}…")
            case _:
                pass


def copy(text: str, root: Path, workdir: str, stages: Mapping[str, Path]) -> None:
    source, _, target = text.rpartition(" ")
    if source.startswith("--from="):
        stage, _, path = source.removeprefix("--from=").partition(" ")
        shutil.copytree(stages[stage] / path.lstrip("/"), root / target.lstrip("/"), symlinks=True)
        return
    listed = run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                 cwd=CHECKOUT)  # fmt: skip
    context = find_context(listed.rstrip("\0").split("\0"))
    for name in context:
        if (CHECKOUT / name).is_file():
            place = root / workdir.lstrip("/") / name
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(CHECKOUT / name, place)
    say(f"copied {len(context)} files of the checkout")


def make_images(folder: Path) -> tuple[Path, list[Instruction]]:
    """The root of the last stage, and its instructions."""
    base = make_base(folder)
    stages: dict[str, Path] = {}
    for number, stage in enumerate(split_stages(read_instructions())):
        _, _, name = find_all(stage, "FROM")[0].partition(" AS ")
        root = stages[name or str(number)] = folder / f"stage{number}"
        shutil.rmtree(root, ignore_errors=True)
        run(["cp", "-a", str(base), str(root)])
        build(stage, root, stages)
    return root, stage


def give_up(user: str) -> str:
    """The options of setpriv(1) for what engines do with ``no-new-privileges`` and no rights."""
    return (
        f"--reuid {user} --regid {user} --clear-groups --no-new-privs --inh-caps=-all "
        "--bounding-set=-all"
    )


class Container:
    """A process in namespaces of its own, as an engine would start it."""

    def __init__(
        self, root: Path, image: list[Instruction], data: Path, settings: Mapping[str, str]
    ) -> None:
        self.root = root
        user = find_all(image, "USER")[0].partition(":")[0]
        self.environment = compute_environment(image) | dict(settings)
        folder = self.environment["MUSTER_DATA_DIR"]
        os.chown(data, int(user), int(user))
        data.chmod(0o700)
        command = [*json.loads(find_all(image, "ENTRYPOINT")[0]),
                   *json.loads(find_all(image, "CMD")[0])]  # fmt: skip
        shell = "; ".join(
            (
                "set -e",
                f"mount --bind {root} {root}",
                f"mount --bind {data} {root}{folder}",
                f"mount -t proc proc {root}/proc",
                f"mount -t tmpfs tmpfs {root}/tmp",
                f"mount --bind /dev {root}/dev",
                f"mount -o remount,bind,ro {root} {root}",
                # The rights are given up last: chroot(2) needs one.
                f"exec chroot {root} /usr/bin/setpriv {give_up(user)} {shlex.join(command)}",
            )
        )
        self.process = subprocess.Popen(
            ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", shell],
            env=self.environment | {"PATH": self.environment["PATH"] + ":/usr/sbin:/sbin"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def find_first(self) -> int:
        """Process 1 in there, as it is numbered here; 0 while there is none."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return int((children.read_text().split() or ["0"])[0])

    def kill(self) -> None:
        """The whole of it, process 1 before all: a change of user ends the bond to its parent."""
        if self.process.poll() is None:
            if self.find_first():
                os.kill(self.find_first(), 9)
            self.process.kill()
        self.process.wait()

    def check_health(self, image: list[Instruction]) -> bool:
        """The command of HEALTHCHECK, as an engine runs it."""
        _, _, text = find_all(image, "HEALTHCHECK")[0].partition(" CMD ")
        user = find_all(image, "USER")[0].partition(":")[0]
        inside = [CHROOT, str(self.root), "/usr/bin/setpriv", *give_up(user).split(),
                  *json.loads(text)]  # fmt: skip
        if not self.find_first():
            return False
        command = ["nsenter", "-t", str(self.find_first()), "-m", "-p", *inside]
        done = subprocess.run(command, env=self.environment, capture_output=True, check=False)
        return done.returncode == 0


def check(is_so: bool, what: str) -> None:
    say(f"{'yes' if is_so else 'NO '}  {what}")
    if not is_so:
        sys.exit(1)


def use(root: Path, image: list[Instruction], data: Path) -> None:
    refused = Container(root, image, data, {})
    output, _ = refused.process.communicate(timeout=START_S)
    check(refused.process.returncode == 2 and "do not authenticate" in output,
          "it refuses to be open to others without authentication")  # fmt: skip
    check(not list(data.iterdir()), "and has left nothing in its data folder")
    doors = {f"MUSTER_LISTEN_{name}": "127.0.0.1:0" for name in ("KAFKA", "GRPC", "HTTP")}
    served = Container(root, image, data, doors)
    try:
        end_s = time.monotonic() + START_S
        while not (is_healthy := served.check_health(image)) and time.monotonic() < end_s:
            time.sleep(0.5)
        check(is_healthy, "the health check passes")
        status = Path(f"/proc/{served.find_first()}/status").read_text()
        user = find_all(image, "USER")[0].partition(":")[0]
        check(f"Uid:\t{user}\t{user}" in status, f"the server runs as user {user}")
        check("CapEff:\t0000000000000000" in status, "it has no capabilities")
        check("NoNewPrivs:\t1" in status, "and can get none")
        os.kill(served.find_first(), 15)
        output, _ = served.process.communicate(timeout=START_S)
        check(served.process.returncode == 0, "SIGTERM ends process 1 with exit code 0")
        check('"event": "stopped"' in output, "everything was flushed and closed")
        check((data / "store").is_dir(), "the data is in the volume")
    finally:
        served.kill()


def main() -> None:
    if os.geteuid() or shutil.which("debootstrap") is None:
        sys.exit("needs root, and debootstrap: apt-get install debootstrap")
    given = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else None
    folder = given or Path(tempfile.mkdtemp(prefix="muster-container-"))
    folder.mkdir(parents=True, exist_ok=True)
    try:
        root, image = make_images(folder)
        data = folder / "data"
        shutil.rmtree(data, ignore_errors=True)
        data.mkdir()
        use(root, image, data)
    finally:
        if given is None:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
