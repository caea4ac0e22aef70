import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InterruptException;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Copies records from one topic to another, exactly once: each poll is a transaction that holds the
 * copies and the offsets.
 *
 * <p>Arguments: bootstrap, group, client id (also the transactional id), the two topics, then
 * settings of the consumer as name=value. Events: started; assigned, revoked, lost (partitions);
 * copied (count); aborted, failed (message); closed.
 */
public final class CopyProgram implements ConsumerRebalanceListener {
    private static volatile boolean closing;

    private final KafkaConsumer<String, String> consumer;
    private final KafkaProducer<String, String> producer;
    private final String to;

    private CopyProgram(String[] arguments) {
        Properties reading = new Properties();
        reading.put("bootstrap.servers", arguments[0]);
        reading.put("group.id", arguments[1]);
        reading.put("client.id", arguments[2]);
        reading.put("auto.offset.reset", "earliest");
        reading.put("enable.auto.commit", "false");
        reading.put("isolation.level", "read_committed");
        reading.put("key.deserializer", StringDeserializer.class);
        reading.put("value.deserializer", StringDeserializer.class);
        for (String pair : List.of(arguments).subList(5, arguments.length)) {
            int equals = pair.indexOf('=');
            reading.put(pair.substring(0, equals), pair.substring(equals + 1));
        }
        Properties writing = new Properties();
        writing.put("bootstrap.servers", arguments[0]);
        writing.put("transactional.id", arguments[2]);
        writing.put("key.serializer", StringSerializer.class);
        writing.put("value.serializer", StringSerializer.class);
        consumer = new KafkaConsumer<>(reading);
        producer = new KafkaProducer<>(writing);
        to = arguments[4];
        producer.initTransactions();
        consumer.subscribe(List.of(arguments[3]), this);
    }

    public static void main(String[] arguments) {
        Thread reader = new Thread(CopyProgram::awaitClose);
        reader.setDaemon(true);
        reader.start();
        try {
            CopyProgram program = new CopyProgram(arguments);
            print("started", "");
            while (!closing) {
                program.copy();
            }
            program.consumer.close();
            program.producer.close();
        } catch (KafkaException error) {
            print("failed", ", \"message\": \"" + clean(error) + "\"");
            System.exit(1);
        }
        print("closed", "");
        System.exit(0);
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

    private void copy() {
        ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(100));
        if (records.isEmpty()) {
            return;
        }
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        try {
            producer.beginTransaction();
            for (ConsumerRecord<String, String> record : records) {
                producer.send(new ProducerRecord<>(to, record.value()));
                TopicPartition partition = new TopicPartition(record.topic(), record.partition());
                offsets.put(partition, new OffsetAndMetadata(record.offset() + 1));
            }
            producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
            producer.commitTransaction();
            print("copied", ", \"count\": " + records.count());
        } catch (ProducerFencedException | InterruptException error) {
            throw error;
        } catch (KafkaException error) {
            producer.abortTransaction();
            print("aborted", ", \"message\": \"" + clean(error) + "\"");
            rewind(records);
        }
    }

    /** What was not copied is read again, of what this member still has. */
    private void rewind(ConsumerRecords<String, String> records) {
        for (TopicPartition partition : records.partitions()) {
            if (consumer.assignment().contains(partition)) {
                consumer.seek(partition, records.records(partition).get(0).offset());
            }
        }
    }

    private static String clean(Throwable error) {
        return String.valueOf(error).replaceAll("[\"\\\\\\p{Cntrl}]", " ");
    }

    private static synchronized void print(String event, String fields) {
        System.out.println(
            "{\"event\": \"" + event + "\", \"at_ms\": " + System.currentTimeMillis() + fields + "}");
        System.out.flush();
    }

    private static void printPartitions(String event, Collection<TopicPartition> partitions) {
        StringBuilder names = new StringBuilder();
        for (TopicPartition partition : partitions) {
            names.append(names.isEmpty() ? "" : ", ").append('"').append(partition).append('"');
        }
        print(event, ", \"partitions\": [" + names + "]");
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        printPartitions("assigned", partitions);
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        printPartitions("revoked", partitions);
    }

    @Override
    public void onPartitionsLost(Collection<TopicPartition> partitions) {
        printPartitions("lost", partitions);
    }
}
