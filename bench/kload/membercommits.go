package main

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// leaveBatch is how many members one LeaveGroup names.
const leaveBatch = 1000

// runMemberCommits measures OffsetCommit of members of the classic protocol, each of which has a
// connection of its own and commits one of its own partitions.
func runMemberCommits(o options) (report, error) {
	admin, err := dial(o.addr)
	if err != nil {
		return nil, err
	}
	defer admin.conn.Close()
	t, err := admin.ensureTopic(o.topic, o.partitions)
	if err != nil {
		return nil, err
	}
	if t.partitions < o.members/o.groups {
		return nil, fmt.Errorf("topic %s has fewer partitions than a group has members", t.name)
	}
	names := groupNames(o.groups)
	if err := admin.awaitCoordinators(names, o.addr.hostPort); err != nil {
		return nil, err
	}
	seats := make([]*seat, o.members)
	for i := range seats {
		seats[i] = newSeat(names[i%len(names)], t)
	}
	clients, err := dialAll(o.addr, o.members)
	if err != nil {
		return nil, err
	}
	if err := settleSeats(seats, clients); err != nil {
		return nil, err
	}
	loads := make([]load, len(seats))
	for i, s := range seats {
		loads[i] = newMemberCommits(s)
	}
	result, err := runEngine(clients, loads, o.engine())
	if err != nil {
		return nil, err
	}
	if err := admin.leaveSeats(seats); err != nil {
		return nil, err
	}
	r := report{"members": o.members, "groups": o.groups}
	r.addRate(result.ops, result.window, &result.latency, result.errors)
	return r, nil
}

// awaitCoordinators asks until every group is coordinated at that address.
func (c *client) awaitCoordinators(groups []string, hostPort string) error {
	deadline := time.Now().Add(settleTime)
	for {
		isThere := true
		for _, group := range groups {
			found, code, err := c.findCoordinator(group)
			if err != nil {
				return err
			}
			isThere = isThere && code == codeNone && found == hostPort
		}
		switch {
		case isThere:
			return nil
		case time.Now().After(deadline):
			return fmt.Errorf("the groups are not coordinated by %s after %v", hostPort, settleTime)
		}
		time.Sleep(retryPause)
	}
}

func (c *client) findCoordinator(group string) (hostPort string, code int16, err error) {
	payload, err := c.roundTrip(encodeFindCoordinator([]string{group}))
	if err != nil {
		return "", codeNone, err
	}
	return decodeCoordinator(payload)
}

// settleSeats lets all members join at once, until no group rebalances any more.
func settleSeats(seats []*seat, clients []*client) error {
	deadline := time.Now().Add(settleTime)
	for time.Now().Before(deadline) {
		if err := joinAll(seats, clients); err != nil {
			return err
		}
		if err := forAll(len(seats), func(i int) error { return checkSeat(seats[i], clients[i]) }); err != nil {
			return err
		}
		if areSettled(seats) {
			return nil
		}
	}
	return fmt.Errorf("the groups are not stable after %v", settleTime)
}

// joinAll returns when each member has joined. Until then those that have joined send heartbeats,
// and join again if their group rebalances: a late member's join waits for them.
func joinAll(seats []*seat, clients []*client) error {
	var missing atomic.Int64
	missing.Store(int64(len(seats)))
	return forAll(len(seats), func(i int) error {
		deadline := time.Now().Add(settleTime)
		if err := joinSeat(seats[i], clients[i]); err != nil {
			return err
		}
		for missing.Add(-1); missing.Load() > 0 && time.Now().Before(deadline); time.Sleep(retryPause) {
			if err := checkSeat(seats[i], clients[i]); err != nil {
				return err
			}
			if seats[i].generation != noGeneration {
				continue
			}
			missing.Add(1)
			if err := joinSeat(seats[i], clients[i]); err != nil {
				return err
			}
			missing.Add(-1)
		}
		return nil
	})
}

func forAll(count int, do func(int) error) error {
	failures := make(chan error, count)
	var running sync.WaitGroup
	for i := range count {
		running.Add(1)
		go func() {
			defer running.Done()
			if err := do(i); err != nil {
				failures <- err
			}
		}()
	}
	running.Wait()
	close(failures)
	return <-failures
}

// joinSeat joins unless the member is in its group.
func joinSeat(s *seat, c *client) error {
	deadline := time.Now().Add(settleTime)
	for s.generation == noGeneration {
		code, err := s.join(c)
		switch {
		case err != nil:
			return err
		case code == codeNone, code == codeMemberIDRequired, code == codeRebalanceInProgress:
			continue
		case !isRetriable(code) && code != codeUnknownMemberID:
			return fmt.Errorf("join group %s: error %d", s.group, code)
		case time.Now().After(deadline):
			return fmt.Errorf("join group %s: still error %d after %v", s.group, code, settleTime)
		}
		time.Sleep(retryPause)
	}
	return nil
}

// checkSeat hears whether the group rebalances.
func checkSeat(s *seat, c *client) error {
	payload, err := c.roundTrip(s.heartbeat())
	if err != nil {
		return err
	}
	code, err := decodeCode(payload)
	switch code {
	case codeNone:
	case codeUnknownMemberID:
		s.forget()
	default:
		s.generation = noGeneration
	}
	return err
}

// areSettled: all members of a group are of one generation, and own something.
func areSettled(seats []*seat) bool {
	generations := map[string]int32{}
	for _, s := range seats {
		generation, known := generations[s.group]
		if s.generation == noGeneration || len(s.owned) == 0 || known && generation != s.generation {
			return false
		}
		generations[s.group] = s.generation
	}
	return true
}

// newMemberCommits commits the first partition that the member owns, again and again.
func newMemberCommits(s *seat) *steadyCommits {
	frame, offsetsAt := encodeCommitAs(s.group, s.id, s.generation, s.topic, 9, s.owned[:1])
	return &steadyCommits{
		version: 9, frames: [][]byte{frame}, offsetsAt: [][]int{offsetsAt}, accepted: make([][]byte, 1),
	}
}

func (c *client) leaveSeats(seats []*seat) error {
	byGroup := map[string][]string{}
	for _, s := range seats {
		byGroup[s.group] = append(byGroup[s.group], s.id)
	}
	for group, members := range byGroup {
		for len(members) > 0 {
			batch := members[:min(leaveBatch, len(members))]
			members = members[len(batch):]
			payload, err := c.roundTrip(encodeLeave(group, batch))
			if err != nil {
				return err
			}
			code, err := decodeCode(payload)
			if err == nil && code != codeNone {
				err = fmt.Errorf("leave group %s: error %d", group, code)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}
