# Generated from proto/muster/v1/admin.proto.
from collections.abc import AsyncIterator
from typing import overload

import grpc
import grpc.aio
from muster.v1 import admin_pb2

class AdminServiceStub:
    ListGroups: grpc.UnaryUnaryMultiCallable[admin_pb2.ListGroupsRequest, admin_pb2.ListGroupsResponse]
    DescribeGroup: grpc.UnaryUnaryMultiCallable[admin_pb2.DescribeGroupRequest, admin_pb2.DescribeGroupResponse]
    DeleteGroup: grpc.UnaryUnaryMultiCallable[admin_pb2.DeleteGroupRequest, admin_pb2.DeleteGroupResponse]
    RemoveMembers: grpc.UnaryUnaryMultiCallable[admin_pb2.RemoveMembersRequest, admin_pb2.RemoveMembersResponse]
    DeleteOffsets: grpc.UnaryUnaryMultiCallable[admin_pb2.DeleteOffsetsRequest, admin_pb2.DeleteOffsetsResponse]
    DescribeGroupConfigs: grpc.UnaryUnaryMultiCallable[admin_pb2.DescribeGroupConfigsRequest, admin_pb2.DescribeGroupConfigsResponse]
    WatchGroup: grpc.UnaryStreamMultiCallable[admin_pb2.WatchGroupRequest, admin_pb2.WatchGroupResponse]
    AlterGroupConfigs: grpc.UnaryUnaryMultiCallable[admin_pb2.AlterGroupConfigsRequest, admin_pb2.AlterGroupConfigsResponse]
    PlanMigration: grpc.UnaryUnaryMultiCallable[admin_pb2.PlanMigrationRequest, admin_pb2.PlanMigrationResponse]
    ConvertToClassicGroup: grpc.UnaryUnaryMultiCallable[admin_pb2.ConvertToClassicGroupRequest, admin_pb2.ConvertToClassicGroupResponse]
    ListTransactions: grpc.UnaryUnaryMultiCallable[admin_pb2.ListTransactionsRequest, admin_pb2.ListTransactionsResponse]
    EndTransaction: grpc.UnaryUnaryMultiCallable[admin_pb2.EndTransactionRequest, admin_pb2.EndTransactionResponse]
    ListTopics: grpc.UnaryUnaryMultiCallable[admin_pb2.ListTopicsRequest, admin_pb2.ListTopicsResponse]
    CreateTopic: grpc.UnaryUnaryMultiCallable[admin_pb2.CreateTopicRequest, admin_pb2.CreateTopicResponse]
    GrowTopic: grpc.UnaryUnaryMultiCallable[admin_pb2.GrowTopicRequest, admin_pb2.GrowTopicResponse]
    SetTopicRacks: grpc.UnaryUnaryMultiCallable[admin_pb2.SetTopicRacksRequest, admin_pb2.SetTopicRacksResponse]
    DeleteTopic: grpc.UnaryUnaryMultiCallable[admin_pb2.DeleteTopicRequest, admin_pb2.DeleteTopicResponse]
    @overload
    def __new__(cls, channel: grpc.aio.Channel) -> AdminServiceAsyncStub: ...
    @overload
    def __new__(cls, channel: grpc.Channel) -> AdminServiceStub: ...

class AdminServiceAsyncStub(AdminServiceStub):
    ListGroups: grpc.aio.UnaryUnaryMultiCallable[admin_pb2.ListGroupsRequest, admin_pb2.ListGroupsResponse]
    DescribeGroup: grpc.aio.UnaryUnaryMultiCallable[admin_pb2.DescribeGroupRequest, admin_pb2.DescribeGroupResponse]
    DeleteGroup: grpc.aio.UnaryUnaryMultiCallable[admin_pb2.DeleteGroupRequest, admin_pb2.DeleteGroupResponse]
    RemoveMembers: grpc.aio.UnaryUnaryMultiCallable[admin_pb2.RemoveMembersRequest, admin_pb2.RemoveMembersResponse]
    DeleteOffsets: grpc.aio.UnaryUnaryMultiCallable[admin_pb2.DeleteOffsetsRequest, admin_pb2.DeleteOffsetsResponse]
    DescribeGroupConfigs: grpc.aio.UnaryUnaryMultiCallable[admin_pb2.DescribeGroupConfigsRequest, admin_pb2.DescribeGroupConfigsResponse]
    WatchGroup: grpc.aio.UnaryStreamMultiCallable[admin_pb2.WatchGroupRequest, admin_pb2.WatchGroupResponse]
    AlterGroupConfigs: grpc.aio.UnaryUnaryMultiCallable[admin_pb2.AlterGroupConfigsRequest, admin_pb2.AlterGroupConfigsResponse]
    PlanMigration: grpc.aio.UnaryUnaryMultiCallable[admin_pb2.PlanMigrationRequest, admin_pb2.PlanMigrationResponse]
    ConvertToClassicGroup: grpc.aio.UnaryUnaryMultiCallable[admin_pb2.ConvertToClassicGroupRequest, admin_pb2.ConvertToClassicGroupResponse]
    ListTransactions: grpc.aio.UnaryUnaryMultiCallable[admin_pb2.ListTransactionsRequest, admin_pb2.ListTransactionsResponse]
    EndTransaction: grpc.aio.UnaryUnaryMultiCallable[admin_pb2.EndTransactionRequest, admin_pb2.EndTransactionResponse]
    ListTopics: grpc.aio.UnaryUnaryMultiCallable[admin_pb2.ListTopicsRequest, admin_pb2.ListTopicsResponse]
    CreateTopic: grpc.aio.UnaryUnaryMultiCallable[admin_pb2.CreateTopicRequest, admin_pb2.CreateTopicResponse]
    GrowTopic: grpc.aio.UnaryUnaryMultiCallable[admin_pb2.GrowTopicRequest, admin_pb2.GrowTopicResponse]
    SetTopicRacks: grpc.aio.UnaryUnaryMultiCallable[admin_pb2.SetTopicRacksRequest, admin_pb2.SetTopicRacksResponse]
    DeleteTopic: grpc.aio.UnaryUnaryMultiCallable[admin_pb2.DeleteTopicRequest, admin_pb2.DeleteTopicResponse]

class AdminServiceServicer:
    async def ListGroups(self, request: admin_pb2.ListGroupsRequest, context: grpc.aio.ServicerContext[admin_pb2.ListGroupsRequest, admin_pb2.ListGroupsResponse]) -> admin_pb2.ListGroupsResponse: ...
    async def DescribeGroup(self, request: admin_pb2.DescribeGroupRequest, context: grpc.aio.ServicerContext[admin_pb2.DescribeGroupRequest, admin_pb2.DescribeGroupResponse]) -> admin_pb2.DescribeGroupResponse: ...
    async def DeleteGroup(self, request: admin_pb2.DeleteGroupRequest, context: grpc.aio.ServicerContext[admin_pb2.DeleteGroupRequest, admin_pb2.DeleteGroupResponse]) -> admin_pb2.DeleteGroupResponse: ...
    async def RemoveMembers(self, request: admin_pb2.RemoveMembersRequest, context: grpc.aio.ServicerContext[admin_pb2.RemoveMembersRequest, admin_pb2.RemoveMembersResponse]) -> admin_pb2.RemoveMembersResponse: ...
    async def DeleteOffsets(self, request: admin_pb2.DeleteOffsetsRequest, context: grpc.aio.ServicerContext[admin_pb2.DeleteOffsetsRequest, admin_pb2.DeleteOffsetsResponse]) -> admin_pb2.DeleteOffsetsResponse: ...
    async def DescribeGroupConfigs(self, request: admin_pb2.DescribeGroupConfigsRequest, context: grpc.aio.ServicerContext[admin_pb2.DescribeGroupConfigsRequest, admin_pb2.DescribeGroupConfigsResponse]) -> admin_pb2.DescribeGroupConfigsResponse: ...
    async def WatchGroup(self, request: admin_pb2.WatchGroupRequest, context: grpc.aio.ServicerContext[admin_pb2.WatchGroupRequest, admin_pb2.WatchGroupResponse]) -> None: ...
    async def AlterGroupConfigs(self, request: admin_pb2.AlterGroupConfigsRequest, context: grpc.aio.ServicerContext[admin_pb2.AlterGroupConfigsRequest, admin_pb2.AlterGroupConfigsResponse]) -> admin_pb2.AlterGroupConfigsResponse: ...
    async def PlanMigration(self, request: admin_pb2.PlanMigrationRequest, context: grpc.aio.ServicerContext[admin_pb2.PlanMigrationRequest, admin_pb2.PlanMigrationResponse]) -> admin_pb2.PlanMigrationResponse: ...
    async def ConvertToClassicGroup(self, request: admin_pb2.ConvertToClassicGroupRequest, context: grpc.aio.ServicerContext[admin_pb2.ConvertToClassicGroupRequest, admin_pb2.ConvertToClassicGroupResponse]) -> admin_pb2.ConvertToClassicGroupResponse: ...
    async def ListTransactions(self, request: admin_pb2.ListTransactionsRequest, context: grpc.aio.ServicerContext[admin_pb2.ListTransactionsRequest, admin_pb2.ListTransactionsResponse]) -> admin_pb2.ListTransactionsResponse: ...
    async def EndTransaction(self, request: admin_pb2.EndTransactionRequest, context: grpc.aio.ServicerContext[admin_pb2.EndTransactionRequest, admin_pb2.EndTransactionResponse]) -> admin_pb2.EndTransactionResponse: ...
    async def ListTopics(self, request: admin_pb2.ListTopicsRequest, context: grpc.aio.ServicerContext[admin_pb2.ListTopicsRequest, admin_pb2.ListTopicsResponse]) -> admin_pb2.ListTopicsResponse: ...
    async def CreateTopic(self, request: admin_pb2.CreateTopicRequest, context: grpc.aio.ServicerContext[admin_pb2.CreateTopicRequest, admin_pb2.CreateTopicResponse]) -> admin_pb2.CreateTopicResponse: ...
    async def GrowTopic(self, request: admin_pb2.GrowTopicRequest, context: grpc.aio.ServicerContext[admin_pb2.GrowTopicRequest, admin_pb2.GrowTopicResponse]) -> admin_pb2.GrowTopicResponse: ...
    async def SetTopicRacks(self, request: admin_pb2.SetTopicRacksRequest, context: grpc.aio.ServicerContext[admin_pb2.SetTopicRacksRequest, admin_pb2.SetTopicRacksResponse]) -> admin_pb2.SetTopicRacksResponse: ...
    async def DeleteTopic(self, request: admin_pb2.DeleteTopicRequest, context: grpc.aio.ServicerContext[admin_pb2.DeleteTopicRequest, admin_pb2.DeleteTopicResponse]) -> admin_pb2.DeleteTopicResponse: ...

def add_AdminServiceServicer_to_server(
    servicer: AdminServiceServicer, server: grpc.Server | grpc.aio.Server
) -> None: ...
