import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.errors.RebalanceInProgressException;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * A consumer that polls until told otherwise.
 *
 * <p>Options: {@code --bootstrap --group}, {@code --topics a,b} or {@code --pattern RE2},
 * {@code --protocol consumer|classic} (consumer), {@code --instance-id}, {@code --assignor},
 * {@code --client-id}, {@code --poll-ms} (100), {@code --commit} (synchronously after every poll
 * that had records), {@code --set name=value} for any other client setting.
 *
 * <p>Events: started; assigned (partitions; after_ms: since the subscription), revoked, lost
 * (partitions); records (count, total, last: the partition's last offset read); committed (offsets,
 * took_ms); commit-failed (error, message); commit-delayed (a rebalance is to end first: it is done
 * after the next poll); no-position (partition: it is left out of the commit); closed (total,
 * took_ms); failed (error, message: the exit code is then 1).
 *
 * <p>Commands, one a line: commit; committed (answered by the event fetched); position; member
 * (member id and epoch); assignment; subscribe a,b; unsubscribe (the event has took_ms); close
 * (leaves the group, ends); quit (ends at once, without leaving). The end of the input is a close.
 */
public final class ConsumerProgram implements ConsumerRebalanceListener {
    private static final Duration POSITION_TIME = Duration.ofMillis(500);

    private final KafkaConsumer<byte[], byte[]> consumer;
    private final ConcurrentLinkedQueue<String> commands = new ConcurrentLinkedQueue<>();
    private final boolean commits;
    private final Duration pollTime;
    private boolean subscribed;
    private boolean closing;
    private boolean commitDelayed;
    private long total;
    private long subscribedAt = System.nanoTime();

    private ConsumerProgram(Arguments arguments) {
        consumer = new KafkaConsumer<>(configs(arguments));
        commits = arguments.has("commit");
        pollTime = Duration.ofMillis(arguments.getInt("poll-ms", 100));
    }

    public static void main(String[] args) throws Exception {
        Arguments arguments = new Arguments(args, Set.of("commit"));
        ConsumerProgram program = new ConsumerProgram(arguments);
        program.readCommands();
        try {
            program.subscribe(arguments);
            program.run();
        } catch (KafkaException | IllegalStateException | IllegalArgumentException error) {
            Events.printError("failed", error);
            program.consumer.close();
            System.exit(1);
        }
        long began = System.nanoTime();
        program.consumer.close();
        Events.print("closed", "total", program.total, "took_ms", millisSince(began));
        // The thread that reads commands may still wait for a line.
        System.exit(0);
    }

    private static Map<String, Object> configs(Arguments arguments) {
        String protocol = arguments.get("protocol", "consumer");
        Map<String, Object> configs = new HashMap<>();
        configs.put(ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, arguments.required("bootstrap"));
        configs.put(ConsumerConfig.GROUP_ID_CONFIG, arguments.required("group"));
        configs.put(ConsumerConfig.GROUP_PROTOCOL_CONFIG, protocol);
        configs.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
        configs.put(ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, false);
        configs.put(ConsumerConfig.KEY_DESERIALIZER_CLASS_CONFIG, ByteArrayDeserializer.class);
        configs.put(ConsumerConfig.VALUE_DESERIALIZER_CLASS_CONFIG, ByteArrayDeserializer.class);
        if (arguments.has("client-id")) {
            configs.put(ConsumerConfig.CLIENT_ID_CONFIG, arguments.required("client-id"));
        }
        if (arguments.has("instance-id")) {
            configs.put(ConsumerConfig.GROUP_INSTANCE_ID_CONFIG, arguments.required("instance-id"));
        }
        if (arguments.has("assignor")) {
            String assignor = arguments.required("assignor");
            configs.put(ConsumerConfig.GROUP_REMOTE_ASSIGNOR_CONFIG, assignor);
        }
        configs.putAll(arguments.settings());
        return configs;
    }

    private void readCommands() {
        Thread reader = new Thread(() -> {
            try (BufferedReader lines = new BufferedReader(new InputStreamReader(System.in))) {
                for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                    if (line.equals("quit")) {
                        Runtime.getRuntime().halt(0);
                    }
                    commands.add(line.strip());
                }
            } catch (java.io.IOException closed) {
                // The same as the end of the input.
            }
            commands.add("close");
        });
        reader.setDaemon(true);
        reader.start();
    }

    private void subscribe(Arguments arguments) {
        subscribedAt = System.nanoTime();
        if (arguments.has("pattern")) {
            consumer.subscribe(new SubscriptionPattern(arguments.required("pattern")), this);
        } else {
            consumer.subscribe(List.of(arguments.required("topics").split(",")), this);
        }
        subscribed = true;
        Events.print("started");
    }

    private void run() throws InterruptedException {
        while (!closing) {
            for (String line = commands.poll(); line != null; line = commands.poll()) {
                obey(line);
            }
            if (closing) {
                return;
            }
            if (subscribed) {
                poll();
            } else {
                // A consumer without a subscription must not be polled.
                Thread.sleep(pollTime.toMillis());
            }
        }
    }

    private void obey(String line) {
        String[] words = line.split(" ", 2);
        switch (words[0]) {
            case "commit" -> commit();
            case "committed" -> Events.print(
                "fetched", "offsets", Events.offsets(consumer.committed(consumer.assignment())));
            case "position" -> printPositions();
            case "member" -> printMember();
            case "assignment" -> Events.print(
                "assignment", "partitions", Events.names(consumer.assignment()));
            case "subscribe" -> {
                subscribedAt = System.nanoTime();
                consumer.subscribe(List.of(words[1].split(",")), this);
                subscribed = true;
                Events.print("subscribed");
            }
            case "unsubscribe" -> {
                long began = System.nanoTime();
                consumer.unsubscribe();
                subscribed = false;
                Events.print("unsubscribed", "took_ms", millisSince(began));
            }
            case "close" -> closing = true;
            default -> Events.print("unknown-command", "command", line);
        }
    }

    private void poll() {
        ConsumerRecords<byte[], byte[]> records = consumer.poll(pollTime);
        if (records.isEmpty()) {
            if (commitDelayed) {
                commit();
            }
            return;
        }
        Map<String, Long> last = new TreeMap<>();
        for (ConsumerRecord<byte[], byte[]> record : records) {
            last.put(record.topic() + "-" + record.partition(), record.offset());
        }
        total += records.count();
        Events.print("records", "count", records.count(), "total", total, "last", last);
        if (commits) {
            commit();
        }
    }

    private void commit() {
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        for (TopicPartition partition : consumer.assignment()) {
            // One that is to be revoked before it was ever read gets no position, and the listener
            // that revokes it does not run while this thread waits for one.
            try {
                long position = consumer.position(partition, POSITION_TIME);
                offsets.put(partition, new OffsetAndMetadata(position));
            } catch (TimeoutException error) {
                Events.print("no-position", "partition", partition.toString());
            }
        }
        long began = System.nanoTime();
        commitDelayed = false;
        try {
            consumer.commitSync(offsets);
            long tookMs = millisSince(began);
            Events.print("committed", "offsets", Events.offsets(offsets), "took_ms", tookMs);
        } catch (RebalanceInProgressException error) {
            commitDelayed = true;
            Events.print("commit-delayed");
        } catch (KafkaException error) {
            Events.printError("commit-failed", error);
        }
    }

    private static long millisSince(long nanoTime) {
        return (System.nanoTime() - nanoTime) / 1_000_000;
    }

    private void printPositions() {
        Map<String, Long> positions = new TreeMap<>();
        for (TopicPartition partition : new HashSet<>(consumer.assignment())) {
            positions.put(partition.toString(), consumer.position(partition));
        }
        Events.print("position", "offsets", positions);
    }

    private void printMember() {
        ConsumerGroupMetadata metadata = consumer.groupMetadata();
        Events.print("member", "member_id", metadata.memberId(), "epoch", metadata.generationId());
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        long afterMs = millisSince(subscribedAt);
        Events.print("assigned", "partitions", Events.names(partitions), "after_ms", afterMs);
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        Events.print("revoked", "partitions", Events.names(partitions));
    }

    @Override
    public void onPartitionsLost(Collection<TopicPartition> partitions) {
        Events.print("lost", "partitions", Events.names(partitions));
    }
}
