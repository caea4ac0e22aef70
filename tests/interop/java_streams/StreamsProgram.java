import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.CloseOptions;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.BuiltInDslStoreSuppliers;
import org.apache.kafka.streams.state.KeyValueStore;

/**
 * A Kafka Streams application: reads numbers from the topic orders, counts them by their remainder,
 * and writes each new count to the topic totals. The new key takes a repartition topic, the counts
 * (kept in memory) a changelog.
 *
 * <p>Options: {@code --bootstrap --application --state-dir --threads --remainders}, and
 * {@code --set name=value} for any other setting.
 *
 * <p>Events: state (from, to); failed (error, message); closed. The command close, or the end of
 * the input, leaves the group and ends the program.
 */
public final class StreamsProgram {
    private static final Duration CLOSE_TIMEOUT = Duration.ofSeconds(30);

    private StreamsProgram() {}

    public static void main(String[] args) throws Exception {
        Map<String, String> options = new HashMap<>();
        Properties configs = new Properties();
        for (int i = 0; i + 1 < args.length; i += 2) {
            if (args[i].equals("--set")) {
                int equals = args[i + 1].indexOf('=');
                configs.put(args[i + 1].substring(0, equals), args[i + 1].substring(equals + 1));
            } else {
                options.put(args[i].substring(2), args[i + 1]);
            }
        }
        addConfigs(configs, options);
        int remainders = Integer.parseInt(options.get("remainders"));
        try (KafkaStreams streams = new KafkaStreams(topology(remainders), configs)) {
            run(streams);
        }
        print("closed");
        // The thread of an executor may still be there.
        System.exit(0);
    }

    private static void addConfigs(Properties configs, Map<String, String> options) {
        configs.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, options.get("bootstrap"));
        configs.put(StreamsConfig.APPLICATION_ID_CONFIG, options.get("application"));
        configs.put(StreamsConfig.STATE_DIR_CONFIG, options.get("state-dir"));
        configs.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, options.get("threads"));
        configs.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        configs.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        configs.put(StreamsConfig.DSL_STORE_SUPPLIERS_CLASS_CONFIG,
            BuiltInDslStoreSuppliers.InMemoryDslStoreSuppliers.class);
        configs.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
        configs.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 200);
        configs.put(StreamsConfig.mainConsumerPrefix("heartbeat.interval.ms"), 300);
        configs.put(StreamsConfig.consumerPrefix("auto.offset.reset"), "earliest");
    }

    private static Topology topology(int remainders) {
        StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream("orders")
            .selectKey((key, value) -> "remainder-" + Long.parseLong(value) % remainders)
            .groupByKey(Grouped.as("by-remainder"))
            .count(Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>as("counts")
                .withKeySerde(Serdes.String()).withValueSerde(Serdes.Long()))
            .toStream()
            .mapValues(String::valueOf)
            .to("totals", Produced.with(Serdes.String(), Serdes.String()));
        return builder.build();
    }

    private static void run(KafkaStreams streams) throws Exception {
        streams.setStateListener((now, before) -> print("state", "from", before, "to", now));
        streams.setUncaughtExceptionHandler(error -> {
            print("failed", "error", error.getClass().getSimpleName(), "message", error);
            return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        streams.start();
        try (BufferedReader lines = new BufferedReader(new InputStreamReader(System.in))) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                if (line.equals("close")) {
                    break;
                }
            }
        }
        // A member of Streams else stays in the group until its session has ended.
        streams.close(CloseOptions.timeout(CLOSE_TIMEOUT)
            .withGroupMembershipOperation(CloseOptions.GroupMembershipOperation.LEAVE_GROUP));
    }

    private static synchronized void print(String event, Object... fields) {
        StringBuilder line = new StringBuilder("{\"event\": \"" + event + "\"");
        for (int i = 0; i < fields.length; i += 2) {
            String value = String.valueOf(fields[i + 1]).replaceAll("[\"\\\\\\p{Cntrl}]", " ");
            line.append(", \"" + fields[i] + "\": \"" + value + "\"");
        }
        System.out.println(line.append("}"));
        System.out.flush();
    }
}
