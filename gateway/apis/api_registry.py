"""The table of Kafka APIs: exactly these are served and advertised."""

from __future__ import annotations

from gateway.api import Api
from gateway.apis.access import (
    k17_sasl_handshake,
    k29_describe_acls,
    k30_create_acls,
    k31_delete_acls,
    k36_sasl_authenticate,
    k48_describe_client_quotas,
    k49_alter_client_quotas,
    k50_describe_user_scram_credentials,
    k51_alter_user_scram_credentials,
)
from gateway.apis.cluster import (
    k18_api_versions,
    k32_describe_configs,
    k44_incremental_alter_configs,
    k60_describe_cluster,
    k74_list_config_resources,
)
from gateway.apis.groups import (
    k10_find_coordinator,
    k11_join_group,
    k12_heartbeat,
    k13_leave_group,
    k14_sync_group,
    k15_describe_groups,
    k16_list_groups,
    k42_delete_groups,
    k68_consumer_group_heartbeat,
    k69_consumer_group_describe,
)
from gateway.apis.offsets import (
    k08_offset_commit,
    k09_offset_fetch,
    k27_write_txn_markers,
    k28_txn_offset_commit,
    k47_offset_delete,
)
from gateway.apis.topics import (
    k00_produce,
    k01_fetch,
    k02_list_offsets,
    k03_metadata,
    k19_create_topics,
    k20_delete_topics,
    k22_init_producer_id,
    k37_create_partitions,
    k75_describe_topic_partitions,
)

APIS: tuple[Api, ...] = (
    k00_produce.API,
    k01_fetch.API,
    k02_list_offsets.API,
    k03_metadata.API,
    k08_offset_commit.API,
    k09_offset_fetch.API,
    k10_find_coordinator.API,
    k11_join_group.API,
    k12_heartbeat.API,
    k13_leave_group.API,
    k14_sync_group.API,
    k15_describe_groups.API,
    k16_list_groups.API,
    k17_sasl_handshake.API,
    k18_api_versions.API,
    k19_create_topics.API,
    k20_delete_topics.API,
    k22_init_producer_id.API,
    k27_write_txn_markers.API,
    k28_txn_offset_commit.API,
    k29_describe_acls.API,
    k30_create_acls.API,
    k31_delete_acls.API,
    k32_describe_configs.API,
    k36_sasl_authenticate.API,
    k37_create_partitions.API,
    k42_delete_groups.API,
    k44_incremental_alter_configs.API,
    k47_offset_delete.API,
    k48_describe_client_quotas.API,
    k49_alter_client_quotas.API,
    k50_describe_user_scram_credentials.API,
    k51_alter_user_scram_credentials.API,
    k60_describe_cluster.API,
    k68_consumer_group_heartbeat.API,
    k69_consumer_group_describe.API,
    k74_list_config_resources.API,
    k75_describe_topic_partitions.API,
)
