import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Many members in one process, each a KafkaConsumer with a thread of its own.
 *
 * <p>Arguments: bootstrap servers, group, topic, poll time in milliseconds, auto-commit interval in
 * milliseconds. Commands, one a line: {@code start NAME PROTOCOL}; {@code close NAME}; the end of
 * the input ends the process. Events are those of the hosts in Python.
 */
public final class MembersProgram {
    private final String[] arguments;
    private final Map<String, Member> members = new ConcurrentHashMap<>();

    private MembersProgram(String[] arguments) {
        this.arguments = arguments;
    }

    public static void main(String[] arguments) throws IOException {
        MembersProgram program = new MembersProgram(arguments);
        try (BufferedReader lines = new BufferedReader(
                new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                program.obey(line.strip().split(" "));
            }
        }
        Runtime.getRuntime().halt(0);
    }

    private void obey(String[] words) {
        if (words[0].equals("start")) {
            Member member = new Member(words[1], configs(words[1], words[2]));
            members.put(words[1], member);
            member.start();
        } else {
            print(words[1], "closing", "");
            members.remove(words[1]).isClosing = true;
        }
    }

    private Map<String, Object> configs(String name, String protocol) {
        Map<String, Object> configs = new HashMap<>();
        configs.put(ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, arguments[0]);
        configs.put(ConsumerConfig.GROUP_ID_CONFIG, arguments[1]);
        configs.put(ConsumerConfig.GROUP_PROTOCOL_CONFIG, protocol);
        configs.put(ConsumerConfig.CLIENT_ID_CONFIG, name);
        configs.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
        configs.put(ConsumerConfig.AUTO_COMMIT_INTERVAL_MS_CONFIG, Integer.valueOf(arguments[4]));
        configs.put(ConsumerConfig.RECONNECT_BACKOFF_MAX_MS_CONFIG, 1_000);
        configs.put(ConsumerConfig.KEY_DESERIALIZER_CLASS_CONFIG, ByteArrayDeserializer.class);
        configs.put(ConsumerConfig.VALUE_DESERIALIZER_CLASS_CONFIG, ByteArrayDeserializer.class);
        if (protocol.equals("classic")) {
            configs.put(
                ConsumerConfig.PARTITION_ASSIGNMENT_STRATEGY_CONFIG,
                List.of(RangeAssignor.class));
        }
        return configs;
    }

    private static void print(String member, String event, String fields) {
        String line = "{\"event\": \"" + event + "\", \"member\": \"" + member
            + "\", \"at_ms\": " + System.currentTimeMillis() + fields + "}";
        synchronized (MembersProgram.class) {
            System.out.println(line);
            System.out.flush();
        }
    }

    private final class Member extends Thread implements ConsumerRebalanceListener {
        private final Map<String, Object> configs;
        private volatile boolean isClosing;

        Member(String name, Map<String, Object> configs) {
            super(name);
            this.configs = configs;
        }

        @Override
        public void run() {
            Duration time = Duration.ofMillis(Integer.parseInt(arguments[3]));
            try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(configs)) {
                consumer.subscribe(List.of(arguments[2]), this);
                while (!isClosing) {
                    tell(consumer.poll(time));
                }
            } catch (KafkaException error) {
                String message = String.valueOf(error).replaceAll("[^A-Za-z0-9 .:-]", "_");
                print(getName(), "failed", ", \"message\": \"" + message + "\"");
            }
            print(getName(), "closed", "");
        }

        private void tell(ConsumerRecords<byte[], byte[]> records) {
            if (records.isEmpty()) {
                return;
            }
            String spans = records.partitions().stream()
                .map(partition -> span(partition, records.records(partition)))
                .collect(Collectors.joining(", "));
            print(getName(), "records", ", \"spans\": {" + spans + "}");
        }

        private String span(
                TopicPartition partition, List<ConsumerRecord<byte[], byte[]>> records) {
            long first = records.get(0).offset();
            long last = records.get(records.size() - 1).offset();
            return "\"" + partition + "\": [" + first + ", " + last + "]";
        }

        private void tell(String event, Collection<TopicPartition> partitions) {
            String names = partitions.stream()
                .map(partition -> "\"" + partition + "\"")
                .collect(Collectors.joining(", "));
            print(getName(), event, ", \"partitions\": [" + names + "]");
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            tell("assigned", partitions);
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            tell("revoked", partitions);
        }

        @Override
        public void onPartitionsLost(Collection<TopicPartition> partitions) {
            tell("lost", partitions);
        }
    }
}
