"""A sequence of calls over gRPC: all RPCs, streams among them, three groups, one seed."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import grpc
import grpc.aio
from google.protobuf.descriptor import MethodDescriptor
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from muster.v1 import classic_pb2, group_pb2
from tests.fuzz.grpc_messages import break_bytes, make_message
from tests.fuzz.laws import DEADLINE_S, Broken, Tally
from tests.fuzz.pool import Pool
from tests.support.service.methods import METHODS as METHODS_OF_SERVICES

STEPS = 40
_MESSAGES_OF_A_STREAM = 12
METHODS: tuple[MethodDescriptor, ...] = (
    *METHODS_OF_SERVICES.values(),
    *(
        method
        for module in (health_pb2, reflection_pb2)
        for service in module.DESCRIPTOR.services_by_name.values()
        for method in service.methods
    ),
)
_WEIGHTS = {"GroupService": 5, "ClassicService": 3, "AdminService": 1}
_RARE = ("DeleteTopic", "CreateBackup")
_FOR_OTHERS = ("JoinGroup", "SyncGroup")
"""These may rightly wait for others for as long as those say."""
_PATIENCE_S = 0.5
_EOF: Any = grpc.aio.EOF  # type: ignore[attr-defined]
_BUGS = (grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN)


class _Ended(Exception):
    """A stream that the server has ended with an error."""

    def __init__(self, code: grpc.StatusCode, details: str) -> None:
        super().__init__(details)
        self._code = code
        self._details = details

    def code(self) -> grpc.StatusCode:
        return self._code

    def details(self) -> str:
        return self._details


class GrpcSequence:
    """Runs one seed against the server at ``target``. Raises `Broken`."""

    def __init__(self, target: str, seed: int, tally: Tally, runner: asyncio.Runner) -> None:
        self.rng = random.Random(seed)
        self.pool = Pool(f"r{seed}", self.rng)
        self._target = target
        # One loop for all: what gRPC polls with outlives a loop that is closed.
        self._runner = runner
        self._tally = tally

    def run(self) -> None:
        """All steps, some of them at once."""
        self._runner.run(self._run())
        self._tally.sequences += 1

    async def _run(self) -> None:
        options = (("grpc.use_local_subchannel_pool", 1), ("grpc.max_send_message_length", -1))
        async with grpc.aio.insecure_channel(self._target, options=options) as channel:
            weights = [self._weigh(method) for method in METHODS]
            for _ in range(STEPS):
                together = self.rng.choice((1, 1, 1, 3))
                chosen = self.rng.choices(METHODS, weights, k=together)
                calls = [self._call(channel, method, self._prepare(method)) for method in chosen]
                await asyncio.gather(*calls)

    def _weigh(self, method: MethodDescriptor) -> float:
        weight = 0.1 if method.name in _RARE else _WEIGHTS.get(method.containing_service.name, 1)
        return weight * 2 if method.client_streaming else weight

    def _prepare(self, method: MethodDescriptor) -> list[bytes]:
        """The messages of a call, made before any call begins: the seed decides all of them."""
        rng, found = self.rng, []
        self.pool.turn()
        count = rng.randrange(_MESSAGES_OF_A_STREAM) if method.client_streaming else 1
        for _ in range(count):
            if rng.random() < 0.3:
                self.pool.turn()
            message = make_message(self.pool, method.input_type)
            is_broken = rng.random() < 0.12
            found.append(break_bytes(rng, message) if is_broken else message.SerializeToString())
        return found

    async def _call(self, channel: Any, method: MethodDescriptor, messages: list[bytes]) -> None:
        self._tally.requests += max(1, len(messages))
        path = f"/{method.containing_service.full_name}/{method.name}"
        waits = method.name in _FOR_OTHERS
        try:
            async with asyncio.timeout(_PATIENCE_S if waits else DEADLINE_S):
                if method.client_streaming or method.server_streaming:
                    await self._stream(channel, path, method, messages)
                else:
                    answer = await channel.unary_unary(path)(messages[0])
                    self._hear(method, messages[0], answer)
        except (grpc.aio.AioRpcError, _Ended) as error:
            self._tally.answers += 1
            self._tally.by_kind[error.code().name] += 1
            # gRPC's client says so by itself where it writes to a stream that has ended.
            if error.code() in _BUGS and error.details() != "Internal error from Core":
                shown = [message.hex()[:2_000] for message in messages]
                raise Broken(f"{path}: {error.code()} {error.details()} to {shown}") from error
        except TimeoutError as error:
            if not waits:
                shown = [message.hex()[:2_000] for message in messages]
                raise Broken(f"{path}: no end within {DEADLINE_S} s of {shown}") from error

    async def _stream(
        self,
        channel: Any,
        path: str,
        method: MethodDescriptor,
        messages: list[bytes],
    ) -> None:
        """Says its messages, with pauses, and ends, or cancels, or leaves without a word."""
        if not method.client_streaming:
            # Health's Watch never ends by itself.
            call: Any = channel.unary_stream(path)(messages[0])
            await call.read()
            call.cancel()
            return
        call = channel.stream_stream(path)()
        end = self.rng.choice(("close", "close", "close", "cancel"))
        reader = asyncio.create_task(self._read(method, call))
        try:
            for message in messages:
                await call.write(message)
                if self.rng.random() < 0.5:
                    await asyncio.sleep(0.005)
            if end == "cancel":
                call.cancel()
            else:
                await call.done_writing()
        except (asyncio.InvalidStateError, grpc.aio.AioRpcError):
            pass  # the server has ended it: the reader is told why
        try:
            await reader
        except asyncio.CancelledError:
            if end != "cancel":
                raise
        finally:
            reader.cancel()

    async def _read(self, method: MethodDescriptor, call: Any) -> None:
        while (data := await call.read()) is not _EOF:
            self._hear(method, b"", data)
        if (code := await call.code()) is not grpc.StatusCode.OK:
            raise _Ended(code, await call.details())

    def _hear(self, method: MethodDescriptor, asked: bytes, data: bytes) -> None:
        self._tally.answers += 1
        self._tally.by_kind[method.name] += 1
        kind = method.output_type._concrete_class  # type: ignore[attr-defined]
        answer = kind.FromString(data)
        error = getattr(answer, "error", None)
        if error is not None and error.error_code == -1:
            raise Broken(f"{method.full_name}: UNKNOWN_SERVER_ERROR to {asked.hex()[:4_000]}")
        self._learn(method, asked, answer)

    def _learn(self, method: MethodDescriptor, asked: bytes, answer: Any) -> None:
        pool = self.pool
        match method.name:
            case "Session":
                for update in answer.updates:
                    if update.HasField("assignment"):
                        epoch = update.assignment.member_epoch
                        member = pool.learn(update.group_id, update.member_id, epoch)
                        member.assignment_id = update.assignment.assignment_id
            case "Heartbeat" if getattr(answer, "member_id", ""):
                request = group_pb2.HeartbeatRequest.FromString(asked)
                pool.learn(request.group_id, answer.member_id, answer.member_epoch)
            case "JoinGroup" if answer.member_id:
                join = classic_pb2.JoinGroupRequest.FromString(asked)
                pool.learn(join.group_id, answer.member_id, max(answer.generation, 0))
            case "ListTopics":
                pool.topic_ids = [topic.topic_id for topic in answer.topics]
            case _:
                pass
