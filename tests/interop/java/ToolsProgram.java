import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.FileReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.common.utils.Exit;
import org.apache.kafka.tools.AclCommand;
import org.apache.kafka.tools.TopicCommand;
import org.apache.kafka.tools.consumer.group.ConsumerGroupCommand;

/**
 * Runs Kafka's command line tools, many in one JVM.
 *
 * <p>Each line of standard input is a JSON array: {@code groups} for kafka-consumer-groups,
 * {@code configs} for kafka-configs, {@code topics} for kafka-topics or {@code acls} for kafka-acls,
 * and its arguments; or {@code admin}, a bootstrap address, the file of the client's settings or
 * nothing, and a call of {@link GroupCalls} (or, after {@code plain}, of {@link AdminCalls}, or,
 * after {@code access}, of {@link AccessCalls}) with its arguments.
 * Each run prints an event {@code done} with the exit code and what the tool printed.
 */
public final class ToolsProgram {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Map<List<String>, Admin> ADMINS = new HashMap<>();

    private ToolsProgram() {}

    /** The first exit code of a run: a tool may catch what stops it, and end a second time. */
    private static Integer exitCode;

    /** In place of the end of the process. */
    private static final class Ended extends RuntimeException {
        private static final long serialVersionUID = 1;

        Ended() {
            super("the tool ends", null, false, false);
        }
    }

    public static void main(String[] args) throws IOException {
        Exit.setExitProcedure((code, message) -> {
            exitCode = exitCode == null ? code : exitCode;
            throw new Ended();
        });
        PrintStream out = System.out;
        PrintStream err = System.err;
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = JSON.readValue(line, String[].class);
            ByteArrayOutputStream printed = new ByteArrayOutputStream();
            PrintStream captured = new PrintStream(printed, true, StandardCharsets.UTF_8);
            System.setOut(captured);
            System.setErr(captured);
            int code = run(words[0], Arrays.copyOfRange(words, 1, words.length));
            System.setOut(out);
            System.setErr(err);
            Events.print("done", "exit", code, "printed", printed.toString(StandardCharsets.UTF_8));
        }
    }

    private static int run(String tool, String[] arguments) throws IOException {
        exitCode = null;
        try {
            switch (tool) {
                case "admin" -> System.out.println(JSON.writeValueAsString(call(arguments)));
                case "acls" -> AclCommand.main(arguments);
                case "groups" -> ConsumerGroupCommand.main(arguments);
                case "topics" -> TopicCommand.main(arguments);
                case "configs" -> kafka.admin.ConfigCommand.main(arguments);
                default -> throw new IllegalArgumentException("no tool " + tool);
            }
        } catch (Ended ended) {
            // Its code is kept.
        }
        return exitCode == null ? 0 : exitCode;
    }

    private static Object call(String[] arguments) throws IOException {
        List<String> whom = Arrays.asList(arguments).subList(0, 2);
        Admin admin = ADMINS.get(whom);
        if (admin == null) {
            admin = connect(whom.get(0), whom.get(1));
            ADMINS.put(whom, admin);
        }
        String name = arguments[2];
        List<String> words = Arrays.asList(arguments).subList(3, arguments.length);
        List<String> rest = words.isEmpty() ? words : words.subList(1, words.size());
        try {
            return switch (name) {
                case "plain" -> new AdminCalls(admin).call(words.get(0), rest);
                case "access" -> new AccessCalls(admin).call(words.get(0), rest);
                default -> new GroupCalls(admin).call(name, words);
            };
        } catch (Exception error) {
            Throwable cause = error.getCause() == null ? error : error.getCause();
            return cause.getClass().getSimpleName() + ": " + cause.getMessage();
        }
    }

    private static Admin connect(String address, String file) throws IOException {
        Properties settings = new Properties();
        if (!file.isEmpty()) {
            try (FileReader reader = new FileReader(file)) {
                settings.load(reader);
            }
        }
        settings.put(AdminClientConfig.BOOTSTRAP_SERVERS_CONFIG, address);
        settings.put(AdminClientConfig.DEFAULT_API_TIMEOUT_MS_CONFIG, 15_000);
        settings.put(AdminClientConfig.REQUEST_TIMEOUT_MS_CONFIG, 10_000);
        return Admin.create(settings);
    }
}
