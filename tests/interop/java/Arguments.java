import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** A command line of {@code --name value} options, {@code --name} flags and plain words. */
final class Arguments {
    private final Map<String, List<String>> options = new HashMap<>();
    private final List<String> words = new ArrayList<>();

    Arguments(String[] arguments, Set<String> flags) {
        for (int i = 0; i < arguments.length; i++) {
            if (!arguments[i].startsWith("--")) {
                words.add(arguments[i]);
                continue;
            }
            String name = arguments[i].substring(2);
            if (flags.contains(name)) {
                options.put(name, List.of("true"));
            } else if (i + 1 < arguments.length) {
                options.computeIfAbsent(name, key -> new ArrayList<>()).add(arguments[++i]);
            } else {
                throw new IllegalArgumentException("--" + name + " needs a value");
            }
        }
    }

    boolean has(String name) {
        return options.containsKey(name);
    }

    String required(String name) {
        if (!has(name)) {
            throw new IllegalArgumentException("--" + name + " is required");
        }
        return get(name, null);
    }

    String get(String name, String fallback) {
        List<String> values = options.get(name);
        return values == null ? fallback : values.get(values.size() - 1);
    }

    int getInt(String name, int fallback) {
        return has(name) ? Integer.parseInt(required(name)) : fallback;
    }

    /** The values of an option that may be given several times. */
    List<String> all(String name) {
        return options.getOrDefault(name, List.of());
    }

    List<String> words() {
        return words;
    }

    /** Client settings given as {@code --set name=value}. */
    Map<String, Object> settings() {
        Map<String, Object> settings = new HashMap<>();
        for (String pair : all("set")) {
            int equals = pair.indexOf('=');
            settings.put(pair.substring(0, equals), pair.substring(equals + 1));
        }
        return settings;
    }
}
