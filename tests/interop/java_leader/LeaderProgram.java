import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;

/**
 * Leads the groups that it reads: one JSON line a group, one line with the assignments back.
 * What members say and what they get are bytes, in hexadecimal digits.
 */
public final class LeaderProgram {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            System.out.println(lead(JSON.readTree(line)));
        }
    }

    private static ObjectNode lead(JsonNode group) {
        Map<String, Subscription> subscriptions = new HashMap<>();
        for (JsonNode member : group.get("members")) {
            ByteBuffer metadata = ByteBuffer.wrap(HexFormat.of().parseHex(member.get("metadata").asText()));
            Subscription subscription = ConsumerProtocol.deserializeSubscription(metadata);
            subscription.setGroupInstanceId(Optional.ofNullable(member.get("instanceId").textValue()));
            subscriptions.put(member.get("memberId").asText(), subscription);
        }
        var assigned = assignor(group.get("assignor").asText())
            .assign(cluster(group.get("topics")), new GroupSubscription(subscriptions))
            .groupAssignment();
        ObjectNode answer = JSON.createObjectNode();
        for (Map.Entry<String, Assignment> each : assigned.entrySet()) {
            ByteBuffer bytes = ConsumerProtocol.serializeAssignment(each.getValue());
            answer.put(each.getKey(), HexFormat.of().formatHex(bytes.array(), 0, bytes.limit()));
        }
        return answer;
    }

    private static ConsumerPartitionAssignor assignor(String name) {
        return switch (name) {
            case "range" -> new RangeAssignor();
            case "roundrobin" -> new RoundRobinAssignor();
            case "sticky" -> new StickyAssignor();
            case "cooperative-sticky" -> new CooperativeStickyAssignor();
            default -> throw new IllegalArgumentException(name);
        };
    }

    private static Cluster cluster(JsonNode topics) {
        Map<String, Node> nodes = new TreeMap<>();
        List<PartitionInfo> partitions = new ArrayList<>();
        for (JsonNode topic : topics) {
            int partition = 0;
            for (JsonNode racks : topic.get("racks")) {
                List<Node> replicas = new ArrayList<>();
                for (JsonNode rack : racks) {
                    replicas.add(nodes.computeIfAbsent(
                        rack.asText(), name -> new Node(nodes.size(), "localhost", 1, name)));
                }
                Node[] all = replicas.toArray(new Node[0]);
                partitions.add(new PartitionInfo(
                    topic.get("name").asText(), partition++, all.length == 0 ? null : all[0], all, all));
            }
        }
        return new Cluster("cluster", nodes.values(), partitions, Set.of(), Set.of());
    }
}
