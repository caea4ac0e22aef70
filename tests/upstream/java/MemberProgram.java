import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * A member that commits after each poll, with the clients of any release since 2.4.
 *
 * <p>Arguments: the topic, then settings of the client as name=value. Events: started; assigned,
 * revoked, lost (partitions); records (count, spans: of each partition the first and last offset of
 * each run); committed; commit-failed, failed (error, message); closed. The command close, or the
 * end of the input, leaves the group.
 */
public final class MemberProgram implements ConsumerRebalanceListener {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Duration POLL_TIME = Duration.ofMillis(100);

    private static volatile boolean closing;

    private MemberProgram() {}

    public static void main(String[] arguments) {
        Properties settings = new Properties();
        for (String pair : List.of(arguments).subList(1, arguments.length)) {
            int equals = pair.indexOf('=');
            settings.put(pair.substring(0, equals), pair.substring(equals + 1));
        }
        settings.put("key.deserializer", ByteArrayDeserializer.class);
        settings.put("value.deserializer", ByteArrayDeserializer.class);
        Thread reader = new Thread(MemberProgram::awaitClose);
        reader.setDaemon(true);
        reader.start();
        int code = 0;
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings)) {
            consumer.subscribe(List.of(arguments[0]), new MemberProgram());
            print("started");
            while (!closing) {
                poll(consumer);
            }
        } catch (KafkaException error) {
            print("failed", "error", error.getClass().getSimpleName(), "message", error.getMessage());
            code = 1;
        }
        print("closed");
        // The thread that reads commands may still wait for a line.
        System.exit(code);
    }

    private static void awaitClose() {
        try (BufferedReader lines = new BufferedReader(new InputStreamReader(System.in))) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                if (line.equals("close")) {
                    break;
                }
            }
        } catch (java.io.IOException closed) {
            // The same as the end of the input.
        }
        closing = true;
    }

    private static void poll(KafkaConsumer<byte[], byte[]> consumer) {
        ConsumerRecords<byte[], byte[]> records = consumer.poll(POLL_TIME);
        if (records.isEmpty()) {
            return;
        }
        Map<String, List<long[]>> spans = new TreeMap<>();
        for (ConsumerRecord<byte[], byte[]> record : records) {
            String name = record.topic() + "-" + record.partition();
            List<long[]> runs = spans.computeIfAbsent(name, key -> new ArrayList<>());
            long[] last = runs.isEmpty() ? null : runs.get(runs.size() - 1);
            if (last != null && last[1] + 1 == record.offset()) {
                last[1] = record.offset();
            } else {
                runs.add(new long[] {record.offset(), record.offset()});
            }
        }
        print("records", "count", records.count(), "spans", spans);
        try {
            consumer.commitSync();
            print("committed");
        } catch (KafkaException error) {
            String name = error.getClass().getSimpleName();
            print("commit-failed", "error", name, "message", error.getMessage());
        }
    }

    private static void print(String event, Object... fields) {
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("event", event);
        line.put("at_ms", System.currentTimeMillis());
        for (int i = 0; i < fields.length; i += 2) {
            line.put((String) fields[i], fields[i + 1]);
        }
        try {
            String text = JSON.writeValueAsString(line);
            synchronized (JSON) {
                System.out.println(text);
                System.out.flush();
            }
        } catch (JsonProcessingException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    private static List<String> names(Collection<TopicPartition> partitions) {
        List<String> found = new ArrayList<>();
        partitions.forEach(each -> found.add(each.toString()));
        return found;
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        print("assigned", "partitions", names(partitions));
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        print("revoked", "partitions", names(partitions));
    }

    @Override
    public void onPartitionsLost(Collection<TopicPartition> partitions) {
        print("lost", "partitions", names(partitions));
    }
}
