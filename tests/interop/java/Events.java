import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;

/** Events on standard output, one JSON object a line, and the forms in which they show things. */
final class Events {
    private static final ObjectMapper JSON = new ObjectMapper();

    private Events() {}

    /** Prints an event; {@code fields} are names and values in turn. */
    static void print(String event, Object... fields) {
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("event", event);
        line.put("at_ms", System.currentTimeMillis());
        for (int i = 0; i < fields.length; i += 2) {
            line.put((String) fields[i], fields[i + 1]);
        }
        try {
            String text = JSON.writeValueAsString(line);
            synchronized (Events.class) {
                System.out.println(text);
                System.out.flush();
            }
        } catch (JsonProcessingException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    /** Prints an error as an event: the class of Kafka's exception, and its message. */
    static void printError(String event, Throwable thrown) {
        Throwable error = thrown instanceof ExecutionException ? thrown.getCause() : thrown;
        print(event, "error", error.getClass().getSimpleName(), "message", error.getMessage());
    }

    static List<String> names(Collection<TopicPartition> partitions) {
        return partitions.stream().map(TopicPartition::toString).sorted().toList();
    }

    /** Partition to offset; null for a partition that has none. */
    static Map<String, Long> offsets(Map<TopicPartition, OffsetAndMetadata> offsets) {
        Map<String, Long> shown = new TreeMap<>();
        offsets.forEach((partition, offset) ->
            shown.put(partition.toString(), offset == null ? null : offset.offset()));
        return shown;
    }

    static TopicPartition partition(String name) {
        int dash = name.lastIndexOf('-');
        int index = Integer.parseInt(name.substring(dash + 1));
        return new TopicPartition(name.substring(0, dash), index);
    }
}
