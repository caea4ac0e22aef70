// Command consumer is a member of a group with franz-go, under KIP-848 or the classic protocol, that
// polls until it is told otherwise. Its options, events and commands are those of the Java ConsumerProgram,
// as far as franz-go has them.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const pollTime = 100 * time.Millisecond

type options struct {
	bootstrap, group, topics, pattern, instanceID, clientID string
	protocol, strategies                                    string
	session, heartbeat                                      time.Duration
}

var balancers = map[string]kgo.GroupBalancer{
	"range":              kgo.RangeBalancer(),
	"roundrobin":         kgo.RoundRobinBalancer(),
	"sticky":             kgo.StickyBalancer(),
	"cooperative-sticky": kgo.CooperativeStickyBalancer(),
}

func main() {
	given := readOptions()
	client, err := kgo.NewClient(given.clientOptions()...)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	emit("started", nil)
	run(client, readCommands())
}

func readOptions() options {
	var given options
	flag.StringVar(&given.bootstrap, "bootstrap", "", "HOST:PORT")
	flag.StringVar(&given.group, "group", "", "group id")
	flag.StringVar(&given.topics, "topics", "", "names, with commas between them")
	flag.StringVar(&given.pattern, "pattern", "", "RE2 in place of names")
	flag.StringVar(&given.instanceID, "instance-id", "", "for a static member")
	flag.StringVar(&given.clientID, "client-id", "franz", "client id")
	flag.StringVar(&given.protocol, "protocol", "consumer", "consumer or classic")
	flag.StringVar(&given.strategies, "strategies", "range", "of a classic member, with commas")
	sessionMs := flag.Int("session-ms", 6000, "session timeout of a classic member")
	heartbeatMs := flag.Int("heartbeat-ms", 300, "time between heartbeats of a classic member")
	flag.Parse()
	given.session = time.Duration(*sessionMs) * time.Millisecond
	given.heartbeat = time.Duration(*heartbeatMs) * time.Millisecond
	return given
}

func (given options) clientOptions() []kgo.Opt {
	chosen := []kgo.Opt{
		kgo.SeedBrokers(given.bootstrap),
		kgo.ClientID(given.clientID),
		kgo.ConsumerGroup(given.group),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(),
		kgo.WithLogger(kgo.BasicLogger(os.Stderr, kgo.LogLevelInfo, nil)),
		kgo.OnPartitionsAssigned(tell("assigned")),
		kgo.OnPartitionsRevoked(tell("revoked")),
		kgo.OnPartitionsLost(tell("lost")),
	}
	chosen = append(chosen, given.protocolOptions()...)
	if given.instanceID != "" {
		chosen = append(chosen, kgo.InstanceID(given.instanceID))
	}
	if given.pattern != "" {
		return append(chosen, kgo.ConsumeRegex(), kgo.ConsumeTopics(given.pattern))
	}
	return append(chosen, kgo.ConsumeTopics(strings.Split(given.topics, ",")...))
}

func (given options) protocolOptions() []kgo.Opt {
	if given.protocol == "consumer" {
		return []kgo.Opt{kgo.ServerSideBalancer(), kgo.Balancers(kgo.StickyBalancer())}
	}
	chosen := []kgo.GroupBalancer{}
	for _, name := range strings.Split(given.strategies, ",") {
		balancer, known := balancers[name]
		if !known {
			fmt.Fprintln(os.Stderr, "no such strategy:", name)
			os.Exit(2)
		}
		chosen = append(chosen, balancer)
	}
	return []kgo.Opt{
		kgo.Balancers(chosen...),
		kgo.SessionTimeout(given.session),
		kgo.HeartbeatInterval(given.heartbeat),
	}
}

func tell(event string) func(context.Context, *kgo.Client, map[string][]int32) {
	return func(_ context.Context, _ *kgo.Client, changed map[string][]int32) {
		names := []string{}
		for topic, partitions := range changed {
			for _, partition := range partitions {
				names = append(names, name(topic, partition))
			}
		}
		sort.Strings(names)
		emit(event, fields{"partitions": names})
	}
}

func readCommands() <-chan string {
	commands := make(chan string)
	go func() {
		lines := bufio.NewScanner(os.Stdin)
		for lines.Scan() {
			commands <- strings.TrimSpace(lines.Text())
		}
		commands <- "close"
	}()
	return commands
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
		emit("fetched", fields{"offsets": offsets(client.CommittedOffsets())})
	case "member":
		id, epoch := client.GroupMetadata()
		emit("member", fields{"member_id": id, "epoch": epoch})
	case "close":
		began := time.Now()
		err := client.LeaveGroupContext(context.Background())
		took := time.Since(began).Milliseconds()
		client.Close()
		if err != nil {
			emit("failed", fields{"message": err.Error()})
			os.Exit(1)
		}
		emit("closed", fields{"took_ms": took})
		return true
	case "quit":
		os.Exit(0)
	default:
		emit("unknown-command", fields{"command": command})
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
			emit("fetch-failed", fields{"message": failed.Err.Error()})
		}
	}
	read := fetches.Records()
	if len(read) == 0 {
		return 0
	}
	last := map[string]int64{}
	for _, record := range read {
		last[name(record.Topic, record.Partition)] = record.Offset
	}
	emit("records", fields{"count": len(read), "total": before + len(read), "last": last})
	if err := client.CommitRecords(context.Background(), read...); err != nil {
		emit("commit-failed", fields{"message": err.Error()})
	} else {
		emit("committed", fields{"count": len(read)})
	}
	return len(read)
}

func offsets(committed map[string]map[int32]kgo.EpochOffset) map[string]int64 {
	shown := map[string]int64{}
	for topic, partitions := range committed {
		for partition, found := range partitions {
			shown[name(topic, partition)] = found.Offset
		}
	}
	return shown
}

func name(topic string, partition int32) string {
	return fmt.Sprintf("%s-%d", topic, partition)
}

type fields map[string]any

var printing sync.Mutex

func emit(event string, more fields) {
	line := fields{"event": event}
	for field, value := range more {
		line[field] = value
	}
	text, err := json.Marshal(line)
	if err != nil {
		panic(err)
	}
	printing.Lock()
	defer printing.Unlock()
	fmt.Println(string(text))
}
