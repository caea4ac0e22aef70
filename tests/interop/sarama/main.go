// Command consumer is a member of a classic group with sarama that reads until it is told to close.
// Its options, events and commands are those of the Java ConsumerProgram, as far as a test of
// classic groups needs them.
package main

import (
	"context"
	"errors"
	"log"
	"os"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/IBM/sarama"
	"github.com/xdg-go/scram"

	"muster/tests/interop/goprogram"
)

var strategies = map[string]func() sarama.BalanceStrategy{
	"range":      sarama.NewBalanceStrategyRange,
	"roundrobin": sarama.NewBalanceStrategyRoundRobin,
	"sticky":     sarama.NewBalanceStrategySticky,
}

func main() {
	sarama.Logger = log.New(os.Stderr, "", log.LstdFlags)
	given := goprogram.ReadOptions("sarama", "classic")
	group, err := sarama.NewConsumerGroup(
		given.Seeds(), given.Group, configuration(given))
	if err != nil {
		goprogram.Fail(err)
	}
	goprogram.Emit("started", nil)
	ctx, stop := context.WithCancel(context.Background())
	handler := &member{}
	go func() {
		handler.obey(goprogram.ReadCommands())
		stop()
	}()
	consume(ctx, group, strings.Split(given.Topics, ","), handler)
	if err := group.Close(); err != nil {
		goprogram.Emit("failed", goprogram.Fields{"message": err.Error()})
		os.Exit(1)
	}
	goprogram.Emit("closed", goprogram.Fields{"total": handler.total})
}

func configuration(given goprogram.Options) *sarama.Config {
	chosen := sarama.NewConfig()
	chosen.Version = sarama.MaxVersion
	chosen.ClientID = given.ClientID
	chosen.Consumer.Offsets.Initial = sarama.OffsetOldest
	chosen.Consumer.Offsets.AutoCommit.Enable = false
	chosen.Consumer.Group.InstanceId = given.InstanceID
	chosen.Consumer.Group.Session.Timeout = given.Session
	chosen.Consumer.Group.Heartbeat.Interval = given.Heartbeat
	secure(chosen, given.Security)
	chosen.Consumer.Group.Rebalance.GroupStrategies = nil
	for _, name := range strings.Split(given.Strategies, ",") {
		chosen.Consumer.Group.Rebalance.GroupStrategies = append(
			chosen.Consumer.Group.Rebalance.GroupStrategies, strategies[name]())
	}
	return chosen
}

func secure(chosen *sarama.Config, given goprogram.Security) {
	if config := given.TLS(); config != nil {
		chosen.Net.TLS.Enable = true
		chosen.Net.TLS.Config = config
	}
	if given.Mechanism == "" {
		return
	}
	chosen.Net.SASL.Enable = true
	chosen.Net.SASL.Mechanism = sarama.SASLMechanism(given.Mechanism)
	chosen.Net.SASL.User = given.User
	chosen.Net.SASL.Password = given.Password
	chosen.Net.SASL.TokenProvider = fileToken{given}
	hash := scram.SHA256
	if given.Mechanism == "SCRAM-SHA-512" {
		hash = scram.SHA512
	}
	chosen.Net.SASL.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient {
		return &conversation{hash: hash}
	}
}

// conversation gives sarama the SCRAM that it leaves to its users.
type conversation struct {
	hash scram.HashGeneratorFcn
	*scram.ClientConversation
}

func (c *conversation) Begin(user, password, authzID string) error {
	client, err := c.hash.NewClient(user, password, authzID)
	if err != nil {
		return err
	}
	c.ClientConversation = client.NewConversation()
	return nil
}

type fileToken struct{ given goprogram.Security }

func (f fileToken) Token() (*sarama.AccessToken, error) {
	token, err := f.given.Token()
	return &sarama.AccessToken{Token: token}, err
}

// consume joins again after every session, as sarama asks of its users.
func consume(ctx context.Context, group sarama.ConsumerGroup, topics []string, handler *member) {
	for ctx.Err() == nil {
		err := group.Consume(ctx, topics, handler)
		switch {
		case errors.Is(err, sarama.ErrInconsistentGroupProtocol):
			goprogram.Emit("failed", goprogram.Fields{"error": "InconsistentGroupProtocol", "message": err.Error()})
			os.Exit(1)
		case err != nil && ctx.Err() == nil:
			goprogram.Emit("complained", goprogram.Fields{"message": err.Error()})
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
	goprogram.Emit("assigned", goprogram.Fields{"partitions": claims(session)})
	return nil
}

func (m *member) Cleanup(session sarama.ConsumerGroupSession) error {
	goprogram.Emit("revoked", goprogram.Fields{"partitions": claims(session)})
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
			m.process(session, drain(message, claim.Messages()))
		case <-session.Context().Done():
			return nil
		}
	}
}

// drain returns the message and those that wait behind it. A commit waits until the broker has
// answered the fetch before it, so one for each message would hold back all reading.
func drain(
	first *sarama.ConsumerMessage, more <-chan *sarama.ConsumerMessage,
) []*sarama.ConsumerMessage {
	messages := []*sarama.ConsumerMessage{first}
	for {
		select {
		case message, open := <-more:
			if !open {
				return messages
			}
			messages = append(messages, message)
		default:
			return messages
		}
	}
}

func (m *member) process(
	session sarama.ConsumerGroupSession, messages []*sarama.ConsumerMessage,
) {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.total += len(messages)
	latest := messages[len(messages)-1]
	name := goprogram.Name(latest.Topic, latest.Partition)
	last, spans := map[string]int64{name: latest.Offset}, goprogram.Spans{}
	for _, message := range messages {
		spans.Add(name, message.Offset)
	}
	goprogram.Emit("records", goprogram.Fields{
		"count": len(messages), "total": m.total, "last": last, "spans": spans,
	})
	session.MarkMessage(latest, "")
	session.Commit()
	goprogram.Emit("committed", nil)
}

// obey returns when the member is to leave.
func (m *member) obey(commands <-chan string) {
	for command := range commands {
		if command == "close" {
			return
		}
		goprogram.Emit("unknown-command", goprogram.Fields{"command": command})
	}
}

func claims(session sarama.ConsumerGroupSession) []string {
	names := []string{}
	for topic, partitions := range session.Claims() {
		for _, partition := range partitions {
			names = append(names, goprogram.Name(topic, partition))
		}
	}
	sort.Strings(names)
	return names
}
