import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.Set;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.assignor.PartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;

/**
 * Times Kafka's server-side assignors on the groups of muster_assignors.py; JSON to stdout.
 *
 *   java -cp 'jars/*' KafkaAssignors.java [warm-up seconds, 5] [measured seconds, 3]
 *
 * Every row warms up on its own: a JVM that has only seen one case compiles for that case.
 */
public class KafkaAssignors {
    static final int BUCKETS = 5;
    static final int FEWEST_RUNS = 30;
    static volatile Object sink;

    record Shape(String assignor, String subscriptions, int members, int topics, int partitions) {
        PartitionAssignor make() {
            return assignor.equals("range") ? new RangeAssignor() : new UniformAssignor();
        }

        SubscriptionType type() {
            return subscriptions.equals("homogeneous")
                ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS;
        }
    }

    static final Shape[] SHAPES = {
        new Shape("uniform", "homogeneous", 10_000, 100, 100_000),
        new Shape("range", "homogeneous", 10_000, 100, 100_000),
        new Shape("range", "homogeneous", 1_000, 100, 100_000),
        new Shape("uniform", "buckets", 1_000, 100, 10_000),
        new Shape("uniform", "overlapping", 1_000, 100, 10_000),
        new Shape("range", "buckets", 1_000, 100, 10_000),
    };

    /** The topics, each with the same number of partitions. */
    record Topics(List<Uuid> ids, int partitions) implements SubscribedTopicDescriber {
        @Override
        public int numPartitions(Uuid topic) {
            return partitions;
        }

        @Override
        public Set<String> racksForPartition(Uuid topic, int partition) {
            return Set.of();
        }
    }

    public static void main(String[] arguments) {
        double warmUp = arguments.length > 0 ? Double.parseDouble(arguments[0]) : 5;
        double measured = arguments.length > 1 ? Double.parseDouble(arguments[1]) : 3;
        List<String> rows = new ArrayList<>();
        for (Shape shape : SHAPES) {
            for (String which : new String[] {"full", "one joins"}) {
                rows.add(measure(shape, which, warmUp, measured));
            }
        }
        String version = Runtime.version().toString();
        System.out.println("{\"of\": \"kafka\", \"versions\": {\"java\": \"" + version + "\"}, \"rows\": [");
        System.out.println(String.join(",\n", rows));
        System.out.println("]}");
    }

    static String measure(Shape shape, String which, double warmUp, double measured) {
        Topics topics = makeTopics(shape);
        List<Set<Uuid>> subscriptions = chooseTopics(shape, topics.ids());
        PartitionAssignor assignor = shape.make();
        Map<String, MemberAssignment> before = Map.of();
        if (which.equals("one joins")) {
            List<Set<Uuid>> others = subscriptions.subList(0, shape.members() - 1);
            before = assignor.assign(makeSpec(shape, others, Map.of()), topics).members();
        }
        GroupSpec spec = makeSpec(shape, subscriptions, before);
        timeCalls(assignor, spec, topics, warmUp);
        double[] times = timeCalls(assignor, spec, topics, measured);
        Map<String, MemberAssignment> after = assignor.assign(spec, topics).members();
        return String.format(
            Locale.ROOT,
            " {\"assignor\": \"%s\", \"subscriptions\": \"%s\", \"members\": %d, \"topics\": %d,"
                + " \"partitions\": %d, \"case\": \"%s\", \"median_ms\": %.3f, \"min_ms\": %.3f,"
                + " \"p90_ms\": %.3f, \"runs\": %d, \"assigned\": %d, \"moved\": %d}",
            shape.assignor(), shape.subscriptions(), shape.members(), shape.topics(),
            shape.partitions(), which, times[times.length / 2], times[0],
            times[times.length * 9 / 10], times.length, count(after), count(before) - kept(before, after));
    }

    /** Milliseconds of each call, ascending. */
    static double[] timeCalls(PartitionAssignor assignor, GroupSpec spec, Topics topics, double seconds) {
        List<Double> times = new ArrayList<>();
        long until = System.nanoTime() + (long) (seconds * 1e9);
        while (times.size() < FEWEST_RUNS || System.nanoTime() < until) {
            long started = System.nanoTime();
            sink = assignor.assign(spec, topics);
            times.add((System.nanoTime() - started) / 1e6);
        }
        return times.stream().mapToDouble(Double::doubleValue).sorted().toArray();
    }

    static Topics makeTopics(Shape shape) {
        Random chance = new Random(shape.topics());
        List<Uuid> ids = new ArrayList<>();
        for (int t = 0; t < shape.topics(); t++) {
            ids.add(new Uuid(chance.nextLong(), chance.nextLong()));
        }
        return new Topics(ids, shape.partitions() / shape.topics());
    }

    static List<Set<Uuid>> chooseTopics(Shape shape, List<Uuid> ids) {
        int part = ids.size() / BUCKETS;
        int bucket = (shape.members() + BUCKETS - 1) / BUCKETS;
        Set<Uuid> everything = new HashSet<>(ids);
        Random chance = new Random(shape.members());
        List<Set<Uuid>> chosen = new ArrayList<>();
        for (int m = 0; m < shape.members(); m++) {
            switch (shape.subscriptions()) {
                case "homogeneous" -> chosen.add(everything);
                case "buckets" -> {
                    int from = m / bucket * part;
                    chosen.add(new HashSet<>(ids.subList(from, from + part)));
                }
                case "overlapping" -> {
                    List<Uuid> shuffled = new ArrayList<>(ids);
                    Collections.shuffle(shuffled, chance);
                    chosen.add(new HashSet<>(shuffled.subList(0, part)));
                }
                default -> throw new IllegalArgumentException(shape.subscriptions());
            }
        }
        return chosen;
    }

    static GroupSpec makeSpec(
        Shape shape, List<Set<Uuid>> subscriptions, Map<String, MemberAssignment> owned
    ) {
        Map<String, MemberSubscriptionAndAssignmentImpl> members = new HashMap<>();
        Map<Uuid, Map<Integer, String>> owners = new HashMap<>();
        for (int m = 0; m < subscriptions.size(); m++) {
            String id = String.format("member-%05d", m);
            MemberAssignment has = owned.get(id);
            Map<Uuid, Set<Integer>> partitions = has == null ? Map.of() : has.partitions();
            partitions.forEach((topic, indexes) -> indexes.forEach(
                index -> owners.computeIfAbsent(topic, unused -> new HashMap<>()).put(index, id)));
            members.put(id, new MemberSubscriptionAndAssignmentImpl(
                Optional.empty(), Optional.empty(), subscriptions.get(m),
                new Assignment(Collections.unmodifiableMap(partitions))));
        }
        return new GroupSpecImpl(members, shape.type(), owners);
    }

    static int count(Map<String, MemberAssignment> assignments) {
        return assignments.values().stream()
            .flatMap(has -> has.partitions().values().stream()).mapToInt(Set::size).sum();
    }

    static int kept(Map<String, MemberAssignment> before, Map<String, MemberAssignment> after) {
        int kept = 0;
        for (Map.Entry<String, MemberAssignment> had : before.entrySet()) {
            Map<Uuid, Set<Integer>> has = after.get(had.getKey()).partitions();
            for (Map.Entry<Uuid, Set<Integer>> topic : had.getValue().partitions().entrySet()) {
                Set<Integer> still = has.getOrDefault(topic.getKey(), Set.of());
                kept += (int) topic.getValue().stream().filter(still::contains).count();
            }
        }
        return kept;
    }
}
