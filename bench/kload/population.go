package main

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"sync"
	"time"
)

const (
	settleTime  = 180 * time.Second
	settlePause = 50 * time.Millisecond
	// waveMembers join at a time. A round through them takes some seconds, which is how long a
	// member waits for its turn: with all fifty thousand at once their sessions would expire.
	waveMembers = 2000
	// keepAlive is well within a session; settled members send a heartbeat after it.
	keepAlive = 10 * time.Second
)

// population is many members of several groups that share a few connections; each connection
// serves its members in turn.
type population struct {
	addr    address
	topic   topic
	groups  [][]*member
	clients []*client
	byConn  [][]*member
}

// newPopulation finds the coordinators and connects; no member has joined yet.
func newPopulation(o options, groups int) (*population, error) {
	admin, err := dial(o.addr)
	if err != nil {
		return nil, err
	}
	defer admin.conn.Close()
	t, err := admin.ensureTopic(o.topic, o.partitions)
	if err != nil {
		return nil, err
	}
	p := &population{addr: o.addr, topic: t, groups: make([][]*member, groups)}
	names := groupNames(groups)
	if err := admin.findCoordinators(names); err != nil {
		return nil, err
	}
	for i := range o.members {
		p.groups[i%groups] = append(p.groups[i%groups], newMember(names[i%groups], t))
	}
	conns := min(o.conns, o.members)
	p.byConn = make([][]*member, conns)
	next := 0
	for _, members := range p.groups {
		for _, m := range members {
			p.byConn[next%conns] = append(p.byConn[next%conns], m)
			next++
		}
	}
	p.clients, err = dialAll(o.addr, conns)
	return p, err
}

// groupNames are new in every run, so that no run finds the state of an earlier one.
func groupNames(count int) []string {
	var run [4]byte
	rand.Read(run[:])
	names := make([]string, count)
	for i := range names {
		names[i] = fmt.Sprintf("kload-%s-%d", hex.EncodeToString(run[:]), i)
	}
	return names
}

// settle joins all members, one wave of groups after the other, until every group is stable.
func (p *population) settle() error {
	for first := 0; first < len(p.groups); {
		count := 0
		end := first
		for ; end < len(p.groups) && (end == first || count+len(p.groups[end]) <= waveMembers); end++ {
			count += len(p.groups[end])
		}
		if err := p.settleWave(p.groups[first:end]); err != nil {
			return err
		}
		first = end
	}
	return nil
}

func (p *population) settleWave(groups [][]*member) error {
	wave := map[string]bool{}
	for _, members := range groups {
		wave[members[0].group] = true
	}
	isDue := func(m *member) bool {
		return wave[m.group] || m.epoch > 0 && time.Since(m.askedAt) > keepAlive
	}
	deadline := time.Now().Add(settleTime)
	for {
		if err := p.round(isDue); err != nil {
			return err
		}
		stable, err := p.isStable(groups)
		if err != nil || stable {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the groups are not stable after %v", settleTime)
		}
		time.Sleep(settlePause)
	}
}

func everyone(*member) bool { return true }

// round sends one heartbeat for every member that is due, and a second one if it has to
// acknowledge.
func (p *population) round(isDue func(*member) bool) error {
	return p.onEachConn(func(c *client, members []*member) error {
		for _, m := range members {
			if !isDue(m) {
				continue
			}
			if err := stepUntilAcked(m, c); err != nil {
				return err
			}
		}
		return nil
	})
}

func stepUntilAcked(m *member, c *client) error {
	what := "heartbeat in group " + m.group
	for {
		if err := retry(what, func() (int16, error) {
			code, err := m.step(c)
			if code == codeFencedMemberEpoch || code == codeUnknownMemberID {
				code = codeNone // It rejoins in the next round.
			}
			return code, err
		}); err != nil {
			return err
		}
		if !m.mustAck {
			return nil
		}
	}
}

// isStable checks the members first, which is cheap, and then the coordinator.
func (p *population) isStable(groups [][]*member) (bool, error) {
	for _, group := range groups {
		if !isShared(group) {
			return false, nil
		}
	}
	for _, group := range groups {
		d, err := p.clients[0].describe(group[0].group)
		if err != nil {
			return false, err
		}
		if !d.isStableAt(group[0].epoch) {
			return false, nil
		}
	}
	return true, nil
}

func (d description) isStableAt(epoch int32) bool {
	return d.code == codeNone && d.state == "Stable" && d.groupEpoch == epoch &&
		d.assignmentEpoch == epoch
}

// isShared checks that all members are at one epoch and own each partition exactly once.
func isShared(members []*member) bool {
	owned := make([]bool, members[0].topic.partitions)
	left := len(owned)
	for _, m := range members {
		if m.epoch <= 0 || m.epoch != members[0].epoch || m.mustAck {
			return false
		}
		for _, partition := range m.owned {
			if owned[partition] {
				return false
			}
			owned[partition] = true
			left--
		}
	}
	return left == 0
}

// leave removes every member, on new connections if the engine has taken the old ones.
func (p *population) leave() error {
	closeAll(p.clients)
	clients, err := dialAll(p.addr, len(p.byConn))
	if err != nil {
		return err
	}
	p.clients = clients
	defer closeAll(clients)
	return p.onEachConn(func(c *client, members []*member) error {
		for _, m := range members {
			if err := m.leave(c); err != nil {
				return err
			}
		}
		return nil
	})
}

func (p *population) onEachConn(do func(*client, []*member) error) error {
	failures := make(chan error, len(p.clients))
	var running sync.WaitGroup
	for i, c := range p.clients {
		running.Add(1)
		go func() {
			defer running.Done()
			if err := do(c, p.byConn[i]); err != nil {
				failures <- err
			}
		}()
	}
	running.Wait()
	close(failures)
	return <-failures
}
