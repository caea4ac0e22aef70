import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.DescribeClusterResult;
import org.apache.kafka.clients.admin.ListConfigResourcesOptions;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;

/**
 * Calls of the admin client about topics, settings and the cluster, each with its answer as plain
 * maps and lists; {@link GroupCalls} has those about groups.
 *
 * <p>Partitions are written {@code topic-0}; settings of a call are pairs {@code name=value}.
 */
final class AdminCalls {
    private final Admin admin;
    private final Map<String, Call> calls = new HashMap<>();

    /** A call with its arguments; what it returns is printed as JSON. */
    private interface Call {
        Object make(List<String> arguments) throws Exception;
    }

    AdminCalls(Admin admin) {
        this.admin = admin;
        calls.put("listConsumerGroups", words -> listConsumerGroups());
        calls.put("createTopics", this::createTopics); // TOPIC=PARTITIONS ...
        calls.put("createPartitions", this::createPartitions); // TOPIC=PARTITIONS ...
        calls.put("deleteTopics", this::deleteTopics); // TOPIC ...
        calls.put("listTopics", words -> new ArrayList<>(admin.listTopics().names().get()));
        calls.put("describeTopics", this::describeTopics); // TOPIC ...
        calls.put("describeCluster", words -> describeCluster());
        calls.put("describeConfigs", this::describeConfigs); // broker:1 topic:NAME group:ID ...
        calls.put("alterConfigs", this::alterConfigs); // group:ID name=value name= ...
        calls.put("listConfigResources", words -> listConfigResources());
        calls.put("listOffsets", this::listOffsets); // t-0=earliest t-1=latest t-2=TIMESTAMP ...
    }

    Object call(String name, List<String> arguments) throws Exception {
        Call call = calls.get(name);
        if (call == null) {
            throw new IllegalArgumentException("no call " + name + " among " + calls.keySet());
        }
        return call.make(arguments);
    }

    @SuppressWarnings("removal") // Clients call it still.
    private Object listConsumerGroups() throws Exception {
        return admin.listConsumerGroups().all().get().stream()
            .map(group -> fields(
                "group_id", group.groupId(),
                "type", group.type().map(Object::toString).orElse(null),
                "simple", group.isSimpleConsumerGroup(),
                "state", group.groupState().map(Object::toString).orElse(null)))
            .toList();
    }

    private Object createTopics(List<String> words) throws Exception {
        List<NewTopic> topics = new ArrayList<>();
        pairs(words).forEach((name, partitions) -> topics.add(
            new NewTopic(name, Optional.of(Integer.valueOf(partitions)), Optional.empty())));
        var result = admin.createTopics(topics);
        result.all().get();
        Map<String, Object> created = new TreeMap<>();
        for (NewTopic topic : topics) {
            created.put(topic.name(), fields(
                "topic_id", result.topicId(topic.name()).get().toString(),
                "partitions", result.numPartitions(topic.name()).get()));
        }
        return created;
    }

    private Object createPartitions(List<String> words) throws Exception {
        Map<String, NewPartitions> counts = new HashMap<>();
        pairs(words).forEach((name, count) ->
            counts.put(name, NewPartitions.increaseTo(Integer.parseInt(count))));
        admin.createPartitions(counts).all().get();
        return List.copyOf(counts.keySet());
    }

    private Object deleteTopics(List<String> topics) throws Exception {
        admin.deleteTopics(topics).all().get();
        return topics;
    }

    private Object describeTopics(List<String> topics) throws Exception {
        return byName(admin.describeTopics(topics).allTopicNames().get(), AdminCalls::describe);
    }

    private static Map<String, Object> describe(TopicDescription topic) {
        return fields(
            "topic_id", topic.topicId().toString(),
            "partitions", topic.partitions().size(),
            "leaders", topic.partitions().stream()
                .map(partition -> partition.leader() == null ? null : partition.leader().id())
                .collect(Collectors.toList()));
    }

    private Object describeCluster() throws Exception {
        DescribeClusterResult cluster = admin.describeCluster();
        Node controller = cluster.controller().get();
        return fields(
            "cluster_id", cluster.clusterId().get(),
            "controller", controller == null ? null : controller.id(),
            "nodes", cluster.nodes().get().stream().map(AdminCalls::describe).toList());
    }

    private static Map<String, Object> describe(Node node) {
        return node == null
            ? null
            : fields("id", node.id(), "host", node.host(), "port", node.port());
    }

    private Object describeConfigs(List<String> words) throws Exception {
        Set<ConfigResource> resources = words.stream().map(AdminCalls::resource)
            .collect(Collectors.toSet());
        Map<String, Object> shown = new TreeMap<>();
        admin.describeConfigs(resources).all().get().forEach((resource, config) -> {
            Map<String, String> entries = new TreeMap<>();
            config.entries().forEach(entry -> entries.put(entry.name(), entry.value()));
            shown.put(resource.type().name().toLowerCase() + ":" + resource.name(), entries);
        });
        return shown;
    }

    private Object alterConfigs(List<String> words) throws Exception {
        List<AlterConfigOp> changes = new ArrayList<>();
        pairs(words.subList(1, words.size())).forEach((name, value) -> changes.add(
            new AlterConfigOp(
                new ConfigEntry(name, value),
                value.isEmpty() ? AlterConfigOp.OpType.DELETE : AlterConfigOp.OpType.SET)));
        admin.incrementalAlterConfigs(Map.of(resource(words.get(0)), changes)).all().get();
        return words;
    }

    private Object listConfigResources() throws Exception {
        Set<ConfigResource.Type> types = Set.of(ConfigResource.Type.GROUP);
        return admin.listConfigResources(types, new ListConfigResourcesOptions()).all().get()
            .stream().map(ConfigResource::name).sorted().toList();
    }

    private static ConfigResource resource(String word) {
        int colon = word.indexOf(':');
        ConfigResource.Type type =
            ConfigResource.Type.valueOf(word.substring(0, colon).toUpperCase());
        return new ConfigResource(type, word.substring(colon + 1));
    }

    private Object listOffsets(List<String> words) throws Exception {
        Map<TopicPartition, OffsetSpec> specs = new HashMap<>();
        pairs(words).forEach((name, spec) -> specs.put(Events.partition(name), spec(spec)));
        Map<String, Object> shown = new TreeMap<>();
        admin.listOffsets(specs).all().get().forEach((partition, info) -> shown.put(
            partition.toString(), fields("offset", info.offset(), "timestamp", info.timestamp())));
        return shown;
    }

    private static OffsetSpec spec(String word) {
        return switch (word) {
            case "earliest" -> OffsetSpec.earliest();
            case "latest" -> OffsetSpec.latest();
            case "max-timestamp" -> OffsetSpec.maxTimestamp();
            default -> OffsetSpec.forTimestamp(Long.parseLong(word));
        };
    }

    private static Map<String, String> pairs(Collection<String> words) {
        Map<String, String> pairs = new LinkedHashMap<>();
        for (String word : words) {
            int equals = word.lastIndexOf('=');
            pairs.put(word.substring(0, equals), word.substring(equals + 1));
        }
        return pairs;
    }

    private static <V> Map<String, Object> byName(Map<String, V> values, Function<V, Object> show) {
        Map<String, Object> shown = new TreeMap<>();
        values.forEach((name, value) -> shown.put(name, show.apply(value)));
        return shown;
    }

    private static Map<String, Object> fields(Object... namesAndValues) {
        Map<String, Object> fields = new LinkedHashMap<>();
        for (int i = 0; i < namesAndValues.length; i += 2) {
            fields.put((String) namesAndValues[i], namesAndValues[i + 1]);
        }
        return fields;
    }
}
