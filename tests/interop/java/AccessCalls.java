import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ScramCredentialInfo;
import org.apache.kafka.clients.admin.ScramMechanism;
import org.apache.kafka.clients.admin.UserScramCredentialAlteration;
import org.apache.kafka.clients.admin.UserScramCredentialDeletion;
import org.apache.kafka.clients.admin.UserScramCredentialUpsertion;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AccessControlEntryFilter;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.quota.ClientQuotaFilter;
import org.apache.kafka.common.quota.ClientQuotaFilterComponent;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourcePatternFilter;
import org.apache.kafka.common.resource.ResourceType;

/**
 * The calls of the admin client about ACLs, users and quotas, each with the outcome of every row: a
 * value, or the error and its message.
 *
 * <p>An ACL is {@code GROUP:PREFIXED:name:User:alice:*:READ:ALLOW}, and a filter has {@code -} for
 * what is not named; an entity of quotas is {@code user=alice,client-id=app}, and {@code -} is the
 * default.
 */
final class AccessCalls {
    private final Admin admin;

    AccessCalls(Admin admin) {
        this.admin = admin;
    }

    Object call(String name, List<String> words) throws Exception {
        return switch (name) {
            case "createAcls" -> createAcls(words); // ACL ...
            case "describeAcls" -> admin.describeAcls(filter(words.get(0))).values().get().stream()
                .map(AclBinding::toString).sorted().toList(); // FILTER
            case "deleteAcls" -> deleteAcls(words); // FILTER ...
            case "users" -> users(words); // USER ...; all for none
            case "alterUsers" -> alterUsers(words); // USER:MECHANISM:ITERATIONS:PASSWORD USER:MECHANISM
            case "quotas" -> quotas(words); // user=alice client-id=- ip ...; strict for the exact ones
            case "alterQuotas" -> alterQuotas(words); // ENTITY name=value name= ...
            default -> throw new IllegalArgumentException("no call " + name);
        };
    }

    private Object createAcls(List<String> words) {
        return each(admin.createAcls(words.stream().map(AccessCalls::binding).toList()).values());
    }

    private Object deleteAcls(List<String> words) {
        Map<String, Object> shown = new TreeMap<>();
        admin.deleteAcls(words.stream().map(AccessCalls::filter).toList()).values()
            .forEach((filter, future) -> shown.put(filter.toString(), outcome(future, found ->
                found.values().stream().map(row -> row.binding().toString()).sorted().toList())));
        return shown;
    }

    private static AclBinding binding(String word) {
        AclBindingFilter given = filter(word);
        AccessControlEntryFilter entry = given.entryFilter();
        ResourcePatternFilter pattern = given.patternFilter();
        return new AclBinding(
            new ResourcePattern(pattern.resourceType(), pattern.name(), pattern.patternType()),
            new AccessControlEntry(
                entry.principal(), entry.host(), entry.operation(), entry.permissionType()));
    }

    private static AclBindingFilter filter(String word) {
        String[] parts = word.split(":");
        String principal = parts[3].equals("-") ? null : parts[3] + ":" + parts[4];
        int after = parts[3].equals("-") ? 4 : 5;
        return new AclBindingFilter(
            new ResourcePatternFilter(
                parts[0].equals("-") ? ResourceType.ANY : ResourceType.fromString(parts[0]),
                parts[2].equals("-") ? null : parts[2],
                parts[1].equals("-") ? PatternType.ANY : PatternType.fromString(parts[1])),
            new AccessControlEntryFilter(
                principal,
                parts[after].equals("-") ? null : parts[after],
                parts[after + 1].equals("-") ? AclOperation.ANY : AclOperation.fromString(parts[after + 1]),
                parts[after + 2].equals("-")
                    ? AclPermissionType.ANY : AclPermissionType.fromString(parts[after + 2])));
    }

    private Object users(List<String> words) throws Exception {
        var result = words.isEmpty()
            ? admin.describeUserScramCredentials() : admin.describeUserScramCredentials(words);
        Map<String, KafkaFuture<?>> futures = new TreeMap<>();
        for (String user : words.isEmpty() ? result.users().get() : words) {
            futures.put(user, result.description(user));
        }
        return each(futures);
    }

    private Object alterUsers(List<String> words) {
        List<UserScramCredentialAlteration> changes = new ArrayList<>();
        for (String word : words) {
            String[] parts = word.split(":");
            ScramMechanism mechanism = ScramMechanism.fromMechanismName(parts[1]);
            if (parts.length == 2) {
                changes.add(new UserScramCredentialDeletion(parts[0], mechanism));
            } else {
                var info = new ScramCredentialInfo(mechanism, Integer.parseInt(parts[2]));
                changes.add(new UserScramCredentialUpsertion(parts[0], info, parts[3]));
            }
        }
        return each(admin.alterUserScramCredentials(changes).values());
    }

    private Object quotas(List<String> words) throws Exception {
        List<ClientQuotaFilterComponent> wanted = new ArrayList<>();
        for (String word : words) {
            String[] parts = word.split("=");
            if (parts.length == 1 && !word.equals("strict")) {
                wanted.add(ClientQuotaFilterComponent.ofEntityType(parts[0]));
            } else if (parts.length == 2) {
                wanted.add(parts[1].equals("-")
                    ? ClientQuotaFilterComponent.ofDefaultEntity(parts[0])
                    : ClientQuotaFilterComponent.ofEntity(parts[0], parts[1]));
            }
        }
        Map<String, Object> shown = new TreeMap<>();
        admin.describeClientQuotas(
            words.contains("strict")
                ? ClientQuotaFilter.containsOnly(wanted) : ClientQuotaFilter.contains(wanted))
            .entities().get()
            .forEach((entity, limits) -> shown.put(show(entity), new TreeMap<>(limits)));
        return shown;
    }

    private Object alterQuotas(List<String> words) {
        Map<String, String> entries = new LinkedHashMap<>();
        for (String word : words.get(0).split(",")) {
            String[] parts = word.split("=");
            entries.put(parts[0], parts[1].equals("-") ? null : parts[1]);
        }
        List<ClientQuotaAlteration.Op> changes = new ArrayList<>();
        for (String word : words.subList(1, words.size())) {
            String[] parts = word.split("=");
            Double value = parts.length == 1 ? null : Double.valueOf(parts[1]);
            changes.add(new ClientQuotaAlteration.Op(parts[0], value));
        }
        Map<String, Object> shown = new TreeMap<>();
        admin.alterClientQuotas(
            List.of(new ClientQuotaAlteration(new ClientQuotaEntity(entries), changes))).values()
            .forEach((entity, future) -> shown.put(show(entity), outcome(future, done -> "done")));
        return shown;
    }

    private static String show(ClientQuotaEntity entity) {
        return new TreeMap<>(entity.entries()).toString();
    }

    private static Object each(Map<?, ? extends KafkaFuture<?>> futures) {
        Map<String, Object> shown = new TreeMap<>();
        futures.forEach((key, future) -> shown.put(key.toString(), outcome(
            future, value -> value == null ? "done" : value.toString())));
        return shown;
    }

    /** What {@code show} makes of a value, which for a row without one is null. */
    private static <V> Object outcome(
        KafkaFuture<V> future, java.util.function.Function<V, Object> show) {
        try {
            return show.apply(future.get());
        } catch (ExecutionException | InterruptedException error) {
            Throwable cause = error.getCause() == null ? error : error.getCause();
            return cause.getClass().getSimpleName() + ": " + cause.getMessage();
        }
    }
}
