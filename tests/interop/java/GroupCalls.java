import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.AbortTransactionSpec;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConsumerGroupOffsetsResult;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.DeleteConsumerGroupOffsetsResult;
import org.apache.kafka.clients.admin.DescribeConsumerGroupsOptions;
import org.apache.kafka.clients.admin.FenceProducersOptions;
import org.apache.kafka.clients.admin.ListConsumerGroupOffsetsOptions;
import org.apache.kafka.clients.admin.ListConsumerGroupOffsetsSpec;
import org.apache.kafka.clients.admin.ListGroupsOptions;
import org.apache.kafka.clients.admin.MemberDescription;
import org.apache.kafka.clients.admin.MemberToRemove;
import org.apache.kafka.clients.admin.RemoveMembersFromConsumerGroupOptions;
import org.apache.kafka.clients.admin.RemoveMembersFromConsumerGroupResult;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.GroupState;
import org.apache.kafka.common.GroupType;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;

/**
 * The calls of the admin client about groups, each with all that its answer says, and with the
 * outcome of every group, partition or member by itself: a value, or the error and its message.
 *
 * <p>Ids of members are left out, and so is what else differs from server to server. The first word
 * is the call; a partition is written {@code topic-0}.
 */
final class GroupCalls {
    private final Admin admin;

    GroupCalls(Admin admin) {
        this.admin = admin;
    }

    Object call(String name, List<String> words) throws Exception {
        List<String> rest = words.isEmpty() ? words : words.subList(1, words.size());
        return switch (name) {
            case "list" -> list(words); // types=Consumer,Classic states=Stable protocols=consumer
            case "describe" -> describe(words); // GROUP ...
            case "describeClassic" -> describeClassic(words); // GROUP ...
            case "offsets" -> offsets(words, false); // GROUP ...
            case "stableOffsets" -> offsets(words, true); // GROUP ...
            case "offsetsOf" -> offsetsOf(words.get(0), rest); // GROUP t-0 ...
            case "alter" -> alter(words.get(0), rest); // GROUP t-0=OFFSET[:LEADER_EPOCH[:METADATA]]
            case "deleteOffsets" -> deleteOffsets(words.get(0), rest); // GROUP t-0 ...
            case "delete" -> each(admin.deleteConsumerGroups(words).deletedGroups(), done -> "deleted");
            case "remove" -> remove(words.get(0), rest); // GROUP INSTANCE ...
            case "removeAll" -> removeAll(words.get(0)); // GROUP
            case "fence" -> fence(words); // TRANSACTIONAL_ID ...
            case "abort" -> abort(words); // t-0 PRODUCER_ID PRODUCER_EPOCH
            default -> throw new IllegalArgumentException("no call " + name);
        };
    }

    private Object list(List<String> words) throws Exception {
        ListGroupsOptions options = new ListGroupsOptions();
        for (String word : words) {
            int equals = word.indexOf('=');
            List<String> values = Arrays.asList(word.substring(equals + 1).split(","));
            switch (word.substring(0, equals)) {
                case "types" -> options.withTypes(
                    values.stream().map(GroupType::parse).collect(Collectors.toSet()));
                case "states" -> options.inGroupStates(
                    values.stream().map(GroupState::parse).collect(Collectors.toSet()));
                default -> options.withProtocolTypes(
                    values.stream().map(value -> value.equals("-") ? "" : value)
                        .collect(Collectors.toSet()));
            }
        }
        return admin.listGroups(options).all().get().stream()
            .map(Object::toString).sorted().toList();
    }

    private Object describe(List<String> groups) {
        DescribeConsumerGroupsOptions options =
            new DescribeConsumerGroupsOptions().includeAuthorizedOperations(true);
        return each(
            admin.describeConsumerGroups(groups, options).describedGroups(), GroupCalls::describe);
    }

    private static Object describe(ConsumerGroupDescription group) {
        Map<String, Object> shown = new LinkedHashMap<>();
        shown.put("state", group.groupState().toString());
        shown.put("type", group.type().toString());
        shown.put("assignor", group.partitionAssignor());
        shown.put("simple", group.isSimpleConsumerGroup());
        shown.put("group_epoch", group.groupEpoch().orElse(null));
        shown.put("target_assignment_epoch", group.targetAssignmentEpoch().orElse(null));
        shown.put("operations", group.authorizedOperations().stream()
            .map(Object::toString).sorted().toList());
        shown.put("members", group.members().stream()
            .map(GroupCalls::describe).sorted().toList());
        return shown;
    }

    private static String describe(MemberDescription member) {
        return String.join(" ",
            member.clientId(),
            member.groupInstanceId().toString(),
            member.rackId().toString(),
            member.host(),
            member.memberEpoch().toString(),
            member.upgraded().toString(),
            Events.names(member.assignment().topicPartitions()).toString(),
            member.targetAssignment()
                .map(target -> Events.names(target.topicPartitions())).toString());
    }

    private Object describeClassic(List<String> groups) {
        return each(
            admin.describeClassicGroups(groups).describedGroups(),
            group -> List.of(
                group.state().toString(), group.protocol(), group.protocolData(),
                group.isSimpleConsumerGroup(), group.members().size()));
    }

    private Object offsets(List<String> groups, boolean stable) {
        Map<String, ListConsumerGroupOffsetsSpec> specs = groups.stream()
            .collect(Collectors.toMap(id -> id, id -> new ListConsumerGroupOffsetsSpec()));
        var found = admin.listConsumerGroupOffsets(
            specs,
            new ListConsumerGroupOffsetsOptions().requireStable(stable).timeoutMs(3_000));
        return each(
            groups.stream().collect(Collectors.toMap(
                id -> id, id -> found.partitionsToOffsetAndMetadata(id))),
            GroupCalls::show);
    }

    private Object offsetsOf(String group, List<String> words) {
        ListConsumerGroupOffsetsSpec spec =
            new ListConsumerGroupOffsetsSpec().topicPartitions(partitions(words));
        var found = admin.listConsumerGroupOffsets(Map.of(group, spec));
        return each(Map.of(group, found.partitionsToOffsetAndMetadata(group)), GroupCalls::show);
    }

    private static Object show(Map<TopicPartition, OffsetAndMetadata> offsets) {
        Map<String, Object> shown = new TreeMap<>();
        offsets.forEach((partition, offset) ->
            shown.put(partition.toString(), offset == null ? null : offset.toString()));
        return shown;
    }

    private Object alter(String group, List<String> words) {
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        for (String word : words) {
            int equals = word.indexOf('=');
            String[] parts = word.substring(equals + 1).split(":");
            offsets.put(
                Events.partition(word.substring(0, equals)),
                new OffsetAndMetadata(
                    Long.parseLong(parts[0]),
                    parts.length > 1 ? Optional.of(Integer.valueOf(parts[1])) : Optional.empty(),
                    parts.length > 2 ? parts[2] : ""));
        }
        AlterConsumerGroupOffsetsResult altered =
            admin.alterConsumerGroupOffsets(group, offsets);
        return each(
            offsets.keySet().stream().collect(Collectors.toMap(
                TopicPartition::toString, altered::partitionResult)),
            done -> "altered");
    }

    private Object deleteOffsets(String group, List<String> words) {
        Set<TopicPartition> wanted = partitions(words);
        DeleteConsumerGroupOffsetsResult deleted =
            admin.deleteConsumerGroupOffsets(group, wanted);
        return each(
            wanted.stream().collect(Collectors.toMap(
                TopicPartition::toString, deleted::partitionResult)),
            done -> "deleted");
    }

    private Object remove(String group, List<String> instances) {
        List<MemberToRemove> members = instances.stream().map(MemberToRemove::new).toList();
        RemoveMembersFromConsumerGroupOptions options =
            new RemoveMembersFromConsumerGroupOptions(members);
        options.reason("for a test");
        RemoveMembersFromConsumerGroupResult removed =
            admin.removeMembersFromConsumerGroup(group, options);
        return each(
            members.stream().collect(Collectors.toMap(
                MemberToRemove::groupInstanceId, removed::memberResult)),
            done -> "removed");
    }

    private Object removeAll(String group) {
        RemoveMembersFromConsumerGroupOptions options = new RemoveMembersFromConsumerGroupOptions();
        return each(
            Map.of(group, admin.removeMembersFromConsumerGroup(group, options).all()),
            done -> "removed");
    }

    private Object fence(List<String> ids) {
        FenceProducersOptions options = new FenceProducersOptions().timeoutMs(2_000);
        return each(admin.fenceProducers(ids, options).fencedProducers(), done -> "fenced");
    }

    private Object abort(List<String> words) {
        AbortTransactionSpec spec = new AbortTransactionSpec(
            Events.partition(words.get(0)),
            Long.parseLong(words.get(1)),
            Short.parseShort(words.get(2)),
            0);
        return each(Map.of("aborted", admin.abortTransaction(spec).all()), done -> "aborted");
    }

    private static Set<TopicPartition> partitions(List<String> words) {
        return words.stream().map(Events::partition).collect(Collectors.toSet());
    }

    private static <V> Map<String, Object> each(
            Map<String, KafkaFuture<V>> futures, Function<V, Object> show) {
        Map<String, Object> shown = new TreeMap<>();
        futures.forEach((name, future) -> shown.put(name, outcome(future, show)));
        return shown;
    }

    private static <V> Object outcome(KafkaFuture<V> future, Function<V, Object> show) {
        try {
            return show.apply(future.get());
        } catch (ExecutionException error) {
            return error.getCause().getClass().getSimpleName() + ": "
                + error.getCause().getMessage();
        } catch (InterruptedException error) {
            throw new IllegalStateException(error);
        }
    }
}
