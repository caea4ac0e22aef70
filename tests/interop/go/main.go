// Command consumer is a member of a group with franz-go, under KIP-848 or the classic protocol, that
// polls until it is told otherwise. Its options, events and commands are those of the Java ConsumerProgram,
// as far as franz-go has them.
package main

import (
	"context"
	"errors"
	"os"
	"sort"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"muster/tests/interop/goprogram"
)

const pollTime = 100 * time.Millisecond

type options struct{ goprogram.Options }

var balancers = map[string]kgo.GroupBalancer{
	"range":              kgo.RangeBalancer(),
	"roundrobin":         kgo.RoundRobinBalancer(),
	"sticky":             kgo.StickyBalancer(),
	"cooperative-sticky": kgo.CooperativeStickyBalancer(),
}

func main() {
	given := options{goprogram.ReadOptions("franz", "consumer")}
	client, err := kgo.NewClient(given.clientOptions()...)
	if err != nil {
		goprogram.Fail(err)
	}
	goprogram.Emit("started", nil)
	run(client, goprogram.ReadCommands())
}

func (given options) clientOptions() []kgo.Opt {
	chosen := []kgo.Opt{
		kgo.SeedBrokers(given.Seeds()...),
		kgo.ClientID(given.ClientID),
		kgo.ConsumerGroup(given.Group),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(),
		kgo.WithLogger(kgo.BasicLogger(os.Stderr, kgo.LogLevelInfo, nil)),
		kgo.OnPartitionsAssigned(tell("assigned")),
		kgo.OnPartitionsRevoked(tell("revoked")),
		kgo.OnPartitionsLost(tell("lost")),
	}
	chosen = append(chosen, given.protocolOptions()...)
	chosen = append(chosen, securityOptions(given.Security)...)
	if given.InstanceID != "" {
		chosen = append(chosen, kgo.InstanceID(given.InstanceID))
	}
	if given.Pattern != "" {
		return append(chosen, kgo.ConsumeRegex(), kgo.ConsumeTopics(given.Pattern))
	}
	return append(chosen, kgo.ConsumeTopics(strings.Split(given.Topics, ",")...))
}

func securityOptions(given goprogram.Security) []kgo.Opt {
	chosen := []kgo.Opt{}
	if config := given.TLS(); config != nil {
		chosen = append(chosen, kgo.DialTLSConfig(config))
	}
	if given.Mechanism != "" {
		chosen = append(chosen, kgo.SASL(mechanism(given)))
	}
	return chosen
}

func mechanism(given goprogram.Security) sasl.Mechanism {
	switch given.Mechanism {
	case "PLAIN":
		return plain.Auth{User: given.User, Pass: given.Password}.AsMechanism()
	case "SCRAM-SHA-256":
		return scram.Auth{User: given.User, Pass: given.Password}.AsSha256Mechanism()
	case "SCRAM-SHA-512":
		return scram.Auth{User: given.User, Pass: given.Password}.AsSha512Mechanism()
	case "OAUTHBEARER":
		return oauth.Oauth(func(context.Context) (oauth.Auth, error) {
			token, err := given.Token()
			return oauth.Auth{Token: token}, err
		})
	}
	goprogram.Fail("no such mechanism: " + given.Mechanism)
	return nil
}

func (given options) protocolOptions() []kgo.Opt {
	if given.Protocol == "consumer" {
		return []kgo.Opt{kgo.ServerSideBalancer(), kgo.Balancers(kgo.StickyBalancer())}
	}
	chosen := []kgo.GroupBalancer{}
	for _, name := range strings.Split(given.Strategies, ",") {
		balancer, known := balancers[name]
		if !known {
			goprogram.Fail("no such strategy: " + name)
		}
		chosen = append(chosen, balancer)
	}
	return []kgo.Opt{
		kgo.Balancers(chosen...),
		kgo.SessionTimeout(given.Session),
		kgo.HeartbeatInterval(given.Heartbeat),
	}
}

func tell(event string) func(context.Context, *kgo.Client, map[string][]int32) {
	return func(_ context.Context, _ *kgo.Client, changed map[string][]int32) {
		names := []string{}
		for topic, partitions := range changed {
			for _, partition := range partitions {
				names = append(names, goprogram.Name(topic, partition))
			}
		}
		sort.Strings(names)
		goprogram.Emit(event, goprogram.Fields{"partitions": names})
	}
}

func run(client *kgo.Client, commands <-chan string) {
	total := 0
	for {
		select {
		case command := <-commands:
			if obey(client, command) {
				return
			}
		default:
			total += poll(client, total)
		}
	}
}

// obey carries a command out, and says whether it was the last one.
func obey(client *kgo.Client, command string) bool {
	switch command {
	case "committed":
		goprogram.Emit("fetched", goprogram.Fields{"offsets": offsets(client.CommittedOffsets())})
	case "member":
		id, epoch := client.GroupMetadata()
		goprogram.Emit("member", goprogram.Fields{"member_id": id, "epoch": epoch})
	case "close":
		began := time.Now()
		err := client.LeaveGroupContext(context.Background())
		took := time.Since(began).Milliseconds()
		client.Close()
		if err != nil {
			goprogram.Emit("failed", goprogram.Fields{"message": err.Error()})
			os.Exit(1)
		}
		goprogram.Emit("closed", goprogram.Fields{"took_ms": took})
		return true
	case "quit":
		os.Exit(0)
	default:
		goprogram.Emit("unknown-command", goprogram.Fields{"command": command})
	}
	return false
}

// poll waits for records, commits what it read, and gives their number.
func poll(client *kgo.Client, before int) int {
	patience, stop := context.WithTimeout(context.Background(), pollTime)
	defer stop()
	fetches := client.PollFetches(patience)
	for _, failed := range fetches.Errors() {
		if !errors.Is(failed.Err, context.DeadlineExceeded) {
			goprogram.Emit("fetch-failed", goprogram.Fields{"message": failed.Err.Error()})
		}
	}
	read := fetches.Records()
	if len(read) == 0 {
		return 0
	}
	last, spans := map[string]int64{}, goprogram.Spans{}
	for _, record := range read {
		name := goprogram.Name(record.Topic, record.Partition)
		last[name] = record.Offset
		spans.Add(name, record.Offset)
	}
	goprogram.Emit("records", goprogram.Fields{
		"count": len(read), "total": before + len(read), "last": last, "spans": spans,
	})
	if err := client.CommitRecords(context.Background(), read...); err != nil {
		goprogram.Emit("commit-failed", goprogram.Fields{"message": err.Error()})
	} else {
		goprogram.Emit("committed", goprogram.Fields{"count": len(read)})
	}
	return len(read)
}

func offsets(committed map[string]map[int32]kgo.EpochOffset) map[string]int64 {
	shown := map[string]int64{}
	for topic, partitions := range committed {
		for partition, found := range partitions {
			shown[goprogram.Name(topic, partition)] = found.Offset
		}
	}
	return shown
}
