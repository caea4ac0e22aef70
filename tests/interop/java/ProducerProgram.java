import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * An idempotent producer of a given number of records, spread over the partitions in turn.
 *
 * <p>Options: {@code --bootstrap --topic}, {@code --records} (1), {@code --first} (0, the number
 * of the first record: the value of record n is its number as text), {@code --partition} (all),
 * {@code --value-bytes} (padding to a size), {@code --set name=value} for any client setting.
 *
 * <p>Events: sent (count, last: each partition's last offset), or failed (error, message, count of
 * the records that were acknowledged), with exit code 1.
 */
public final class ProducerProgram {
    private final Map<String, Long> last = new TreeMap<>();
    private final ConcurrentLinkedQueue<Exception> errors = new ConcurrentLinkedQueue<>();
    private int acknowledged;

    private ProducerProgram() {}

    public static void main(String[] args) {
        Arguments arguments = new Arguments(args, Set.of());
        ProducerProgram program = new ProducerProgram();
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(configs(arguments))) {
            program.produce(producer, arguments);
        } catch (RuntimeException error) {
            program.errors.add(error);
        }
        if (program.errors.isEmpty()) {
            Events.print("sent", "count", program.acknowledged, "last", program.last);
            return;
        }
        Exception error = program.errors.peek();
        Events.print("failed", "error", error.getClass().getSimpleName(),
            "message", error.getMessage(), "count", program.acknowledged);
        System.exit(1);
    }

    private static Map<String, Object> configs(Arguments arguments) {
        Map<String, Object> configs = new HashMap<>();
        configs.put(ProducerConfig.BOOTSTRAP_SERVERS_CONFIG, arguments.required("bootstrap"));
        configs.put(ProducerConfig.KEY_SERIALIZER_CLASS_CONFIG, ByteArraySerializer.class);
        configs.put(ProducerConfig.VALUE_SERIALIZER_CLASS_CONFIG, ByteArraySerializer.class);
        configs.put(ProducerConfig.ENABLE_IDEMPOTENCE_CONFIG, true);
        configs.put(ProducerConfig.ACKS_CONFIG, "all");
        configs.putAll(arguments.settings());
        return configs;
    }

    private void produce(KafkaProducer<byte[], byte[]> producer, Arguments arguments) {
        String topic = arguments.required("topic");
        int records = arguments.getInt("records", 1);
        int first = arguments.getInt("first", 0);
        int fixed = arguments.getInt("partition", -1);
        int partitions = fixed >= 0 ? 1 : producer.partitionsFor(topic).size();
        int valueBytes = arguments.getInt("value-bytes", 0);
        for (int n = first; n < first + records; n++) {
            byte[] value = pad(Integer.toString(n), valueBytes);
            int partition = fixed >= 0 ? fixed : n % partitions;
            producer.send(
                new ProducerRecord<>(topic, partition, null, value),
                (metadata, error) -> {
                    if (error != null) {
                        errors.add(error);
                        return;
                    }
                    acknowledged++;
                    last.merge(topic + "-" + metadata.partition(), metadata.offset(), Math::max);
                });
        }
        producer.flush();
    }

    private static byte[] pad(String number, int size) {
        return (number + " ".repeat(Math.max(0, size - number.length())))
            .getBytes(StandardCharsets.US_ASCII);
    }
}
