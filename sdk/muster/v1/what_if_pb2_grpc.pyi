# Generated from proto/muster/v1/what_if.proto.
from collections.abc import AsyncIterator
from typing import overload

import grpc
import grpc.aio
from muster.v1 import what_if_pb2

class WhatIfServiceStub:
    WhatIf: grpc.UnaryUnaryMultiCallable[what_if_pb2.WhatIfRequest, what_if_pb2.WhatIfResponse]
    @overload
    def __new__(cls, channel: grpc.aio.Channel) -> WhatIfServiceAsyncStub: ...
    @overload
    def __new__(cls, channel: grpc.Channel) -> WhatIfServiceStub: ...

class WhatIfServiceAsyncStub(WhatIfServiceStub):
    WhatIf: grpc.aio.UnaryUnaryMultiCallable[what_if_pb2.WhatIfRequest, what_if_pb2.WhatIfResponse]

class WhatIfServiceServicer:
    async def WhatIf(self, request: what_if_pb2.WhatIfRequest, context: grpc.aio.ServicerContext[what_if_pb2.WhatIfRequest, what_if_pb2.WhatIfResponse]) -> what_if_pb2.WhatIfResponse: ...

def add_WhatIfServiceServicer_to_server(
    servicer: WhatIfServiceServicer, server: grpc.Server | grpc.aio.Server
) -> None: ...
