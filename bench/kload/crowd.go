package main

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// diallers connect concurrently when many members join.
const diallers = 32

// crowd is one group whose members behave like real clients: one connection each, a heartbeat at the
// interval of the last response, counted from the last request, one request in
// flight, and immediate acknowledgements.
type crowd struct {
	addr    address
	topic   topic
	group   string
	tracker *tracker
	admin   *client
	adding  sync.Mutex
	actors  []*actor
	failed  chan error
	running sync.WaitGroup
}

func newCrowd(o options) (*crowd, error) {
	admin, err := dial(o.addr)
	if err != nil {
		return nil, err
	}
	t, err := admin.ensureTopic(o.topic, o.partitions)
	if err != nil {
		return nil, err
	}
	c := &crowd{
		addr: o.addr, topic: t, group: groupNames(1)[0], tracker: newTracker(t.partitions),
		admin: admin, failed: make(chan error, 1),
	}
	return c, admin.findCoordinators([]string{c.group})
}

// gather lets members join and waits until the coordinator reports the group as stable, too.
func (c *crowd) gather(members int) (time.Duration, error) {
	c.tracker.expect(members, 0)
	started := time.Now()
	if err := c.addAll(members); err != nil {
		return 0, err
	}
	deadline := time.Now().Add(settleTime)
	for time.Now().Before(deadline) {
		if epoch := c.tracker.epoch(); epoch != 0 {
			d, err := c.admin.describe(c.group)
			if err != nil {
				return 0, err
			}
			if d.isStableAt(epoch) {
				return time.Since(started), nil
			}
		}
		select {
		case err := <-c.failed:
			return 0, err
		case <-time.After(settlePause):
		}
	}
	return 0, fmt.Errorf("the group is not stable after %v", settleTime)
}

// addAll adds members, some concurrently, like processes that start together.
func (c *crowd) addAll(members int) error {
	failures := make(chan error, diallers)
	var dialling sync.WaitGroup
	for d := range diallers {
		dialling.Add(1)
		go func() {
			defer dialling.Done()
			for i := d; i < members; i += diallers {
				// Members that join together would send heartbeats together forever; real ones do not.
				if err := c.add(float64(i+1) / float64(members)); err != nil {
					failures <- err
					return
				}
			}
		}()
	}
	dialling.Wait()
	close(failures)
	return <-failures
}

// add connects one more member and lets it join. Its first idle interval is shortened to the
// fraction firstRest.
func (c *crowd) add(firstRest float64) error {
	conn, err := dial(c.addr)
	if err != nil {
		return err
	}
	a := &actor{
		crowd: c, member: newMember(c.group, c.topic), client: conn, leaving: make(chan struct{}),
		left: make(chan time.Time, 1), firstRest: firstRest,
	}
	c.adding.Lock()
	c.actors = append(c.actors, a)
	c.adding.Unlock()
	c.running.Add(1)
	go a.live()
	return nil
}

// converge makes a change and returns the time until all members own their final partitions.
func (c *crowd) converge(members int, change func() (time.Time, error)) (time.Duration, error) {
	epoch := c.tracker.epoch()
	if epoch == 0 {
		return 0, errors.New("the group did not stay settled")
	}
	c.tracker.expect(members, epoch)
	started, err := change()
	if err != nil {
		return 0, err
	}
	select {
	case reached := <-c.tracker.reached:
		return reached.Sub(started), nil
	case err := <-c.failed:
		return 0, err
	case <-time.After(settleTime):
		return 0, fmt.Errorf("the group has not converged after %v", settleTime)
	}
}

// joinOne returns the time at which the new member started.
func (c *crowd) joinOne() (time.Time, error) {
	started := time.Now()
	return started, c.add(1)
}

// leaveOne lets the first member leave and returns when its request was sent: like every
// client it first waits for the response in flight.
func (c *crowd) leaveOne() (time.Time, error) {
	a := c.actors[0]
	c.actors = c.actors[1:]
	close(a.leaving)
	select {
	case at := <-a.left:
		return at, nil
	case err := <-c.failed:
		return time.Time{}, err
	}
}

func (c *crowd) disperse() {
	for _, a := range c.actors {
		close(a.leaving)
	}
	c.running.Wait()
	c.admin.conn.Close()
}

func (c *crowd) fail(err error) {
	select {
	case c.failed <- err:
	default:
	}
}

// actor is one member of a crowd with its connection.
type actor struct {
	crowd     *crowd
	member    *member
	client    *client
	leaving   chan struct{}
	left      chan time.Time // when the request to leave was sent
	firstRest float64
}

func (a *actor) live() {
	defer a.crowd.running.Done()
	defer a.client.conn.Close()
	share := a.firstRest
	for {
		sentAt := time.Now()
		code, err := a.beat()
		if err != nil {
			a.crowd.fail(err)
			return
		}
		pause := time.Until(sentAt.Add(time.Duration(a.member.intervalMs) * time.Millisecond))
		switch {
		case isRetriable(code):
			pause = retryPause
		case code != codeNone || a.member.mustAck:
			pause = 0
		default:
			pause, share = time.Duration(float64(pause)*share), 1
		}
		if a.rest(pause) {
			continue
		}
		if err := a.leave(); err != nil {
			a.crowd.fail(err)
		}
		return
	}
}

// rest waits; it returns false when the member has to leave.
func (a *actor) rest(pause time.Duration) bool {
	select {
	case <-a.leaving:
		return false
	case <-time.After(max(pause, 0)):
		return true
	}
}

// beat sends one heartbeat. A fenced member rejoins; other errors end the run.
func (a *actor) beat() (int16, error) {
	before := a.member.holding()
	code, err := a.member.step(a.client)
	if err != nil {
		return 0, fmt.Errorf("member of %s: %w", a.crowd.group, err)
	}
	a.crowd.tracker.change(before, a.member.holding(), code)
	switch {
	case code == codeNone, code == codeFencedMemberEpoch, code == codeUnknownMemberID, isRetriable(code):
		return code, nil
	}
	return 0, fmt.Errorf("heartbeat in group %s: error %d", a.crowd.group, code)
}

func (a *actor) leave() error {
	before := a.member.holding()
	// Its partitions may have other owners before the response arrives.
	a.crowd.tracker.change(before, nil, codeNone)
	a.left <- time.Now()
	return a.member.leave(a.client)
}
