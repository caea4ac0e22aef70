// Command leavers is many groups of two franz-go consumers, of which one leaves again and again. Its
// options are -bootstrap, -topic (of 4 partitions), -groups and -rounds; its events are those of
// tests/latency/events.py.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"muster/tests/interop/goprogram"
)

const (
	partitions   = 4
	takenWithin  = 25 * time.Second
	sharedWithin = 60 * time.Second
	pause        = 10 * time.Millisecond
)

var (
	bootstrap = flag.String("bootstrap", "", "HOST:PORT")
	topic     = flag.String("topic", "", "of 4 partitions")
	groups    = flag.Int("groups", 1, "groups")
	rounds    = flag.Int("rounds", 1, "leaves in each group")
)

type member struct {
	client *kgo.Client
	held   atomic.Int64
	stop   context.CancelFunc
	ended  chan struct{}
}

func main() {
	flag.Parse()
	var running sync.WaitGroup
	for number := range *groups {
		running.Add(1)
		go func() {
			defer running.Done()
			runGroup(number)
		}()
	}
	running.Wait()
}

func join(group, clientID string) *member {
	joined := &member{ended: make(chan struct{})}
	count := func(sign int64) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, _ *kgo.Client, changed map[string][]int32) {
			for _, numbers := range changed {
				joined.held.Add(sign * int64(len(numbers)))
			}
		}
	}
	client, err := kgo.NewClient(
		kgo.SeedBrokers(*bootstrap),
		kgo.ClientID(clientID),
		kgo.ConsumerGroup(group),
		kgo.ConsumeTopics(*topic),
		kgo.DisableAutoCommit(),
		kgo.ServerSideBalancer(),
		kgo.Balancers(kgo.StickyBalancer()),
		kgo.OnPartitionsAssigned(count(1)),
		kgo.OnPartitionsRevoked(count(-1)),
		kgo.OnPartitionsLost(count(-1)),
	)
	if err != nil {
		goprogram.Fail(err)
	}
	joined.client = client
	polling, stop := context.WithCancel(context.Background())
	joined.stop = stop
	go func() {
		defer close(joined.ended)
		for polling.Err() == nil {
			client.PollFetches(polling)
		}
	}()
	return joined
}

func (one *member) leave() {
	if err := one.client.LeaveGroupContext(context.Background()); err != nil {
		goprogram.Emit("given-up", goprogram.Fields{"message": err.Error()})
	}
	one.stop()
	<-one.ended
	one.client.Close()
}

func runGroup(number int) {
	group, random := fmt.Sprintf("latency-%d", number), rand.New(rand.NewSource(int64(number)))
	stayer := join(group, "stays")
	hasAll := func() bool { return stayer.held.Load() == partitions }
	await(hasAll, sharedWithin)
	for range *rounds {
		leaver := join(group, "leaves")
		shared := await(func() bool {
			return stayer.held.Load() == partitions/2 && leaver.held.Load() == partitions/2
		}, sharedWithin)
		time.Sleep(500*time.Millisecond + time.Duration(random.Int63n(int64(2*time.Second))))
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			leaver.leave()
		}()
		taken := await(hasAll, takenWithin)
		<-closed
		switch {
		case shared < 0:
			goprogram.Emit("late", nil)
		case taken < 0:
			goprogram.Emit("lost", nil)
		default:
			goprogram.Emit("taken", goprogram.Fields{
				"share_ms": shared.Milliseconds(), "after_ms": taken.Milliseconds(),
			})
		}
	}
	stayer.leave()
}

// await gives the time until it was so, -1 where it never was.
func await(isDone func() bool, within time.Duration) time.Duration {
	began := time.Now()
	for time.Since(began) < within {
		if isDone() {
			return time.Since(began)
		}
		time.Sleep(pause)
	}
	return -1
}
