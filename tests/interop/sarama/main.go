// Command consumer is a member of a classic group with sarama that reads until it is told to close.
// Its options, events and commands are those of the Java ConsumerProgram, as far as a test of
// classic groups needs them.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

var strategies = map[string]func() sarama.BalanceStrategy{
	"range":      sarama.NewBalanceStrategyRange,
	"roundrobin": sarama.NewBalanceStrategyRoundRobin,
	"sticky":     sarama.NewBalanceStrategySticky,
}

type options struct {
	bootstrap, group, topics, clientID, instanceID, protocol, strategies string
	session, heartbeat                                                   time.Duration
}

func main() {
	sarama.Logger = log.New(os.Stderr, "", log.LstdFlags)
	given := readOptions()
	group, err := sarama.NewConsumerGroup(
		[]string{given.bootstrap}, given.group, given.configuration())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	emit("started", nil)
	ctx, stop := context.WithCancel(context.Background())
	handler := &member{}
	go func() {
		handler.obey(readCommands())
		stop()
	}()
	consume(ctx, group, strings.Split(given.topics, ","), handler)
	if err := group.Close(); err != nil {
		emit("failed", fields{"message": err.Error()})
		os.Exit(1)
	}
	emit("closed", fields{"total": handler.total})
}

func readOptions() options {
	var given options
	flag.StringVar(&given.bootstrap, "bootstrap", "", "HOST:PORT")
	flag.StringVar(&given.group, "group", "", "group id")
	flag.StringVar(&given.topics, "topics", "", "names, with commas between them")
	flag.StringVar(&given.clientID, "client-id", "sarama", "client id")
	flag.StringVar(&given.instanceID, "instance-id", "", "for a static member")
	flag.StringVar(&given.protocol, "protocol", "classic", "classic, the only one that sarama has")
	flag.StringVar(&given.strategies, "strategies", "range", "with commas between them")
	sessionMs := flag.Int("session-ms", 6000, "session timeout")
	heartbeatMs := flag.Int("heartbeat-ms", 300, "time between heartbeats")
	flag.Parse()
	given.session = time.Duration(*sessionMs) * time.Millisecond
	given.heartbeat = time.Duration(*heartbeatMs) * time.Millisecond
	return given
}

func (given options) configuration() *sarama.Config {
	chosen := sarama.NewConfig()
	chosen.Version = sarama.MaxVersion
	chosen.ClientID = given.clientID
	chosen.Consumer.Offsets.Initial = sarama.OffsetOldest
	chosen.Consumer.Offsets.AutoCommit.Enable = false
	chosen.Consumer.Group.InstanceId = given.instanceID
	chosen.Consumer.Group.Session.Timeout = given.session
	chosen.Consumer.Group.Heartbeat.Interval = given.heartbeat
	chosen.Consumer.Group.Rebalance.GroupStrategies = nil
	for _, name := range strings.Split(given.strategies, ",") {
		chosen.Consumer.Group.Rebalance.GroupStrategies = append(
			chosen.Consumer.Group.Rebalance.GroupStrategies, strategies[name]())
	}
	return chosen
}

// consume joins again after every session, as sarama asks of its users.
func consume(ctx context.Context, group sarama.ConsumerGroup, topics []string, handler *member) {
	for ctx.Err() == nil {
		err := group.Consume(ctx, topics, handler)
		switch {
		case errors.Is(err, sarama.ErrInconsistentGroupProtocol):
			emit("failed", fields{"error": "InconsistentGroupProtocol", "message": err.Error()})
			os.Exit(1)
		case err != nil && ctx.Err() == nil:
			emit("complained", fields{"message": err.Error()})
			time.Sleep(200 * time.Millisecond)
		}
	}
}

// member handles the sessions of a consumer group; sarama gives each partition a goroutine.
type member struct {
	lock  sync.Mutex
	total int
}

func (m *member) Setup(session sarama.ConsumerGroupSession) error {
	emit("assigned", fields{"partitions": claims(session)})
	return nil
}

func (m *member) Cleanup(session sarama.ConsumerGroupSession) error {
	emit("revoked", fields{"partitions": claims(session)})
	return nil
}

func (m *member) ConsumeClaim(
	session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim,
) error {
	for {
		select {
		case message, open := <-claim.Messages():
			if !open {
				return nil
			}
			m.process(session, message)
		case <-session.Context().Done():
			return nil
		}
	}
}

func (m *member) process(session sarama.ConsumerGroupSession, message *sarama.ConsumerMessage) {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.total++
	last := map[string]int64{name(message.Topic, message.Partition): message.Offset}
	emit("records", fields{"count": 1, "total": m.total, "last": last})
	session.MarkMessage(message, "")
	session.Commit()
	emit("committed", nil)
}

// obey returns when the member is to leave.
func (m *member) obey(commands <-chan string) {
	for command := range commands {
		if command == "close" {
			return
		}
		emit("unknown-command", fields{"command": command})
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

func claims(session sarama.ConsumerGroupSession) []string {
	names := []string{}
	for topic, partitions := range session.Claims() {
		for _, partition := range partitions {
			names = append(names, name(topic, partition))
		}
	}
	sort.Strings(names)
	return names
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
