import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.function.BooleanSupplier;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Many groups of two consumers, of which one leaves again and again.
 *
 * <p>Options: {@code --bootstrap --topic} (of 4 partitions) {@code --groups --rounds}. Events: those
 * of tests/latency/events.py.
 */
public final class LeaversProgram {
    private static final int PARTITIONS = 4;
    private static final long TAKEN_WITHIN_MS = 25_000;
    private static final long SHARED_WITHIN_MS = 60_000;

    private final Arguments arguments;
    private final String group;
    private final Random random;
    private final KafkaConsumer<byte[], byte[]> stayer;

    private LeaversProgram(Arguments arguments, int number) {
        this.arguments = arguments;
        group = "latency-" + number;
        random = new Random(number);
        stayer = make("stays");
    }

    public static void main(String[] args) throws Exception {
        Arguments arguments = new Arguments(args, Set.of());
        Thread[] threads = new Thread[arguments.getInt("groups", 1)];
        for (int number = 0; number < threads.length; number++) {
            LeaversProgram program = new LeaversProgram(arguments, number);
            threads[number] = new Thread(program::run);
            threads[number].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        System.exit(0);
    }

    private KafkaConsumer<byte[], byte[]> make(String clientId) {
        KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(Map.of(
            "bootstrap.servers", arguments.required("bootstrap"),
            "group.id", group,
            "client.id", clientId,
            "group.protocol", "consumer",
            "enable.auto.commit", false,
            "key.deserializer", ByteArrayDeserializer.class,
            "value.deserializer", ByteArrayDeserializer.class));
        consumer.subscribe(List.of(arguments.required("topic")));
        return consumer;
    }

    private void run() {
        pollUntil(() -> hasAll(), SHARED_WITHIN_MS, List.of(stayer));
        for (int round = 0; round < arguments.getInt("rounds", 1); round++) {
            runRound();
        }
        stayer.close();
    }

    private boolean hasAll() {
        return stayer.assignment().size() == PARTITIONS;
    }

    private void runRound() {
        KafkaConsumer<byte[], byte[]> leaver = make("leaves");
        long shared = pollUntil(
            () -> stayer.assignment().size() == PARTITIONS / 2
                && leaver.assignment().size() == PARTITIONS / 2,
            SHARED_WITHIN_MS,
            List.of(stayer, leaver));
        pollUntil(() -> false, 500 + random.nextInt(2_000), List.of(stayer, leaver));
        Thread closing = new Thread(leaver::close);
        closing.start();
        long taken = pollUntil(this::hasAll, TAKEN_WITHIN_MS, List.of(stayer));
        try {
            closing.join();
        } catch (InterruptedException never) {
            throw new IllegalStateException(never);
        }
        if (shared < 0) {
            Events.print("late");
        } else if (taken < 0) {
            Events.print("lost");
        } else {
            Events.print("taken", "share_ms", shared, "after_ms", taken);
        }
    }

    /** The milliseconds until it was so, -1 where it never was. */
    private static long pollUntil(
            BooleanSupplier isDone, long withinMs, List<KafkaConsumer<byte[], byte[]>> consumers) {
        long began = System.nanoTime();
        while (true) {
            long tookMs = (System.nanoTime() - began) / 1_000_000;
            if (tookMs > withinMs) {
                return -1;
            }
            for (KafkaConsumer<byte[], byte[]> consumer : consumers) {
                consumer.poll(Duration.ofMillis(20));
            }
            if (isDone.getAsBoolean()) {
                return (System.nanoTime() - began) / 1_000_000;
            }
        }
    }
}
