"""Generates the committed protobuf and gRPC stubs.

``python tools/generate_stubs.py`` writes them; ``--check`` only compares and fails if a file
differs. ``muster.v1`` becomes ``sdk/muster/v1/*_pb2.py``, ``*_pb2_grpc.py`` and their ``.pyi``;
``muster.store.v1``, which only the store uses, becomes ``storage/*_pb2.py`` and ``.pyi``.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from grpc_tools import protoc

ROOT = Path(__file__).resolve().parent.parent
PROTO = ROOT / "proto"
SDK = Path("sdk")

_CALL_TYPES = {
    (False, False): "UnaryUnary",
    (False, True): "UnaryStream",
    (True, False): "StreamUnary",
    (True, True): "StreamStream",
}


def compute_stubs() -> dict[Path, str]:
    """The text of every generated file, by its path in the checkout."""
    return _generate_service_stubs() | _generate_store_stubs()


def _generate_service_stubs() -> dict[Path, str]:
    sources = sorted((PROTO / "muster" / "v1").glob("*.proto"))
    names = [source.relative_to(PROTO).as_posix() for source in sources]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        descriptors = out / "descriptors"
        _run_protoc(
            PROTO,
            [
                f"--python_out={out}",
                f"--pyi_out={out}",
                f"--grpc_python_out={out}",
                f"--descriptor_set_out={descriptors}",
                *names,
            ],
        )
        files = FileDescriptorSet.FromString(descriptors.read_bytes()).file
        stubs = {SDK / path.relative_to(out): path.read_text() for path in out.rglob("*.py*")}
    stubs[SDK / "muster" / "v1" / "__init__.py"] = '"""Generated from proto/muster/v1."""\n'
    for file in files:
        stem = file.name.removesuffix(".proto")
        grpc_stub = SDK / f"{stem}_pb2_grpc.py"
        if file.service:
            stubs[grpc_stub.with_suffix(".pyi")] = "\n".join(_write_grpc_types(file)) + "\n"
        else:
            del stubs[grpc_stub]
    return stubs


def _generate_store_stubs() -> dict[Path, str]:
    """The store's messages, generated where the store imports them without a package."""
    folder = PROTO / "muster" / "store" / "v1"
    names = sorted(source.name for source in folder.glob("*.proto"))
    if not names:
        return {}
    with tempfile.TemporaryDirectory() as text:
        out = Path(text)
        _run_protoc(folder, [f"--python_out={out}", f"--pyi_out={out}", *names])
        return {Path("storage") / path.name: path.read_text() for path in out.glob("*.py*")}


def _run_protoc(root: Path, arguments: list[str]) -> None:
    well_known = Path(protoc.__file__).parent / "_proto"
    command = ["protoc", f"-I{root}", f"-I{well_known}", *arguments]
    if protoc.main(command) != 0:
        raise SystemExit("protoc failed")


def _write_grpc_types(file: FileDescriptorProto) -> Iterator[str]:
    """The types of a ``_pb2_grpc`` module, which protoc does not write.

    A stub of an asyncio channel has asyncio calls, a stub of a plain channel blocking ones.
    """
    messages = f"{Path(file.name).stem}_pb2"
    package = ".".join(Path(file.name).parent.parts)
    yield f"# Generated from proto/{file.name}."
    yield "from collections.abc import AsyncIterator"
    yield "from typing import overload"
    yield ""
    yield "import grpc"
    yield "import grpc.aio"
    yield f"from {package} import {messages}"
    for service in file.service:
        name = service.name
        blocking, asynchronous, servicer = [], [], []
        for method in service.method:
            request = f"{messages}.{method.input_type.rpartition('.')[2]}"
            response = f"{messages}.{method.output_type.rpartition('.')[2]}"
            streams = (method.client_streaming, method.server_streaming)
            call = f"{_CALL_TYPES[streams]}MultiCallable[{request}, {response}]"
            blocking.append(f"    {method.name}: grpc.{call}")
            asynchronous.append(f"    {method.name}: grpc.aio.{call}")
            taken = f"AsyncIterator[{request}]" if method.client_streaming else request
            given = "None" if method.server_streaming else response
            servicer.append(
                f"    async def {method.name}(self, request: {taken}, "
                f"context: grpc.aio.ServicerContext[{request}, {response}]) -> {given}: ..."
            )
        yield from ("", f"class {name}Stub:", *blocking, "    @overload")
        yield f"    def __new__(cls, channel: grpc.aio.Channel) -> {name}AsyncStub: ..."
        yield "    @overload"
        yield f"    def __new__(cls, channel: grpc.Channel) -> {name}Stub: ..."
        yield from ("", f"class {name}AsyncStub({name}Stub):", *asynchronous)
        yield from ("", f"class {name}Servicer:", *servicer, "")
        yield f"def add_{name}Servicer_to_server("
        yield f"    servicer: {name}Servicer, server: grpc.Server | grpc.aio.Server"
        yield ") -> None: ..."


def compute_differences(stubs: dict[Path, str]) -> list[str]:
    """How the committed files differ from the generated ones, one line each."""
    differences = []
    for path, text in sorted(stubs.items()):
        committed = ROOT / path
        if not committed.exists():
            differences.append(f"{path} is missing")
        elif committed.read_text() != text:
            differences.append(f"{path} differs from what its .proto file generates")
    for committed in sorted((ROOT / SDK / "muster" / "v1").glob("*.py*")):
        if committed.relative_to(ROOT) not in stubs:
            differences.append(f"{committed.relative_to(ROOT)} has no .proto file")
    return differences


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare only")
    check = parser.parse_args().check
    stubs = compute_stubs()
    if check:
        differences = compute_differences(stubs)
        for difference in differences:
            sys.stderr.write(f"{difference}: run python tools/generate_stubs.py\n")
        return 1 if differences else 0
    for path, text in stubs.items():
        (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / path).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
