import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;

/**
 * Calls of Kafka's admin client.
 *
 * <p>{@code AdminProgram --bootstrap B [--set name=value] CALL [ARGUMENT ...]} makes one call;
 * without a call, each line of standard input is one. Every call prints one event with its name
 * and {@code result}, or with {@code error} (class of the exception) and {@code message}. The calls
 * and their arguments are listed in {@link AdminCalls}.
 */
public final class AdminProgram {
    private AdminProgram() {}

    public static void main(String[] args) throws IOException {
        Arguments arguments = new Arguments(args, Set.of());
        Map<String, Object> configs = new HashMap<>();
        configs.put(AdminClientConfig.BOOTSTRAP_SERVERS_CONFIG, arguments.required("bootstrap"));
        configs.put(AdminClientConfig.DEFAULT_API_TIMEOUT_MS_CONFIG, 15_000);
        configs.put(AdminClientConfig.REQUEST_TIMEOUT_MS_CONFIG, 10_000);
        configs.putAll(arguments.settings());
        boolean succeeded = true;
        try (Admin admin = Admin.create(configs)) {
            AdminCalls calls = new AdminCalls(admin);
            if (arguments.words().isEmpty()) {
                readCalls(calls);
            } else {
                succeeded = call(calls, arguments.words());
            }
        }
        System.exit(succeeded ? 0 : 1);
    }

    private static void readCalls(AdminCalls calls) throws IOException {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            if (line.equals("quit")) {
                return;
            }
            call(calls, Arrays.asList(line.strip().split(" +")));
        }
    }

    private static boolean call(AdminCalls calls, List<String> words) {
        String name = words.get(0);
        try {
            Events.print(name, "result", calls.call(name, words.subList(1, words.size())));
            return true;
        } catch (Exception error) {
            Events.printError(name, error);
            return false;
        }
    }
}
