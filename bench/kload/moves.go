package main

import (
	"bufio"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"
)

// runMoves keeps members of the classic protocol in one group that is moved meanwhile. Each line of
// standard input names a change: "add" lets one more member join; "moved" says that the group is
// coordinated elsewhere now. When all members have joined again and work, or after "moved" work
// elsewhere, a report of the change is printed: how long members stood still. At the end of the
// input all leave.
func runMoves(o options) (report, error) {
	m, err := newMoving(o)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	for i := range o.members {
		m.add(i)
	}
	if err := m.settle(false); err != nil {
		return nil, err
	}
	r := m.endPhase("join", began)
	r.print()
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		// The change has begun before the line is here: what stood still since the last one counts.
		began = time.Now()
		switch lines.Text() {
		case "add":
			m.add(len(m.movers))
			err = m.settle(false)
		case "moved":
			err = m.settle(true)
		default:
			err = fmt.Errorf("what is %q?", lines.Text())
		}
		if err != nil {
			return nil, err
		}
		r := m.endPhase(lines.Text(), began)
		r.print()
	}
	m.disperse()
	return nil, lines.Err()
}

// moving is the group and its members.
type moving struct {
	to      address
	group   string
	topic   topic
	pause   time.Duration // between two commits of a member
	spread  int           // over so many moments their heartbeats are spread
	movers  []*mover
	running sync.WaitGroup
	leaving chan struct{}
	failed  chan error
	// What follows is of the members' goroutines, too.
	mu          sync.Mutex
	states      []moverState
	errors      codes
	coordinator string // where all members were at the end of the last change
}

// moverState is what a member has seen in the current phase.
type moverState struct {
	joins       int
	works       bool // something has succeeded since it last joined
	generation  int32
	coordinator string
	lastGood    time.Time
	longest     time.Duration // between two successes
}

func newMoving(o options) (*moving, error) {
	admin, err := dial(o.addr)
	if err != nil {
		return nil, err
	}
	defer admin.conn.Close()
	t, err := admin.ensureTopic(o.topic, o.partitions)
	if err != nil {
		return nil, err
	}
	if t.partitions < o.members {
		return nil, errors.New("more members than partitions")
	}
	return &moving{
		to: o.addr, group: o.group, topic: t, pause: o.pause, spread: o.members, leaving: make(chan struct{}),
		failed: make(chan error, 1), errors: codes{},
	}, nil
}

func (m *moving) add(index int) {
	v := &mover{moving: m, index: index, seat: newSeat(m.group, m.topic)}
	m.movers = append(m.movers, v)
	m.mu.Lock()
	m.states = append(m.states, moverState{})
	m.mu.Unlock()
	m.running.Add(1)
	go func() {
		defer m.running.Done()
		if err := v.live(); err != nil {
			select {
			case m.failed <- err:
			default:
			}
		}
	}()
}

func (m *moving) settle(hasMoved bool) error {
	deadline := time.After(settleTime)
	for !m.isSettled(hasMoved) {
		select {
		case err := <-m.failed:
			return err
		case <-deadline:
			return fmt.Errorf("group %s is not settled after %v: %s", m.group, settleTime, m.describe())
		case <-time.After(10 * time.Millisecond):
		}
	}
	return nil
}

// isSettled: all work in one generation at one coordinator. After a move it is not the one before,
// and members may have gone on without joining; after any other change each has joined.
func (m *moving) isSettled(hasMoved bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	first := m.states[0]
	if hasMoved && first.coordinator == m.coordinator {
		return false
	}
	for _, s := range m.states {
		if (s.joins == 0 && !hasMoved) || !s.works || s.generation != first.generation ||
			s.coordinator != first.coordinator {
			return false
		}
	}
	return true
}

// describe says how many members are where, for people.
func (m *moving) describe() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	counts := map[string]int{}
	for _, s := range m.states {
		counts[fmt.Sprintf("joins %d, works %v, generation %d at %s",
			s.joins, s.works, s.generation, s.coordinator)]++
	}
	return fmt.Sprint(counts, m.errors.named())
}

// endPhase reports what members have seen since the last change, and begins the next one.
func (m *moving) endPhase(name string, began time.Time) report {
	m.mu.Lock()
	defer m.mu.Unlock()
	stood := make([]time.Duration, 0, len(m.states))
	joins := 0
	for i := range m.states {
		s := &m.states[i]
		stood = append(stood, s.longest)
		joins = max(joins, s.joins)
		s.joins, s.longest = 0, 0
	}
	slices.Sort(stood)
	m.coordinator = m.states[0].coordinator
	r := report{
		"change": name, "members": len(stood), "generation": m.states[0].generation,
		"coordinator": m.coordinator, "joins": joins, "settled_ms": toMs(time.Since(began)),
		"longest_pause_ms": toMs(stood[len(stood)-1]), "median_pause_ms": toMs(stood[len(stood)/2]),
		"codes": maps.Clone(m.errors).named(),
	}
	m.errors = codes{}
	return r
}

func (m *moving) disperse() {
	close(m.leaving)
	m.running.Wait()
}

// note takes the answer to a commit or a heartbeat of a member.
func (m *moving) note(v *mover, code int16) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if code != codeNone {
		m.errors[code]++
		return
	}
	now, s := time.Now(), &m.states[v.index]
	if !s.lastGood.IsZero() {
		s.longest = max(s.longest, now.Sub(s.lastGood))
	}
	s.lastGood, s.works = now, true
	s.generation, s.coordinator = v.seat.generation, v.coordinator
}

func (m *moving) noteJoined(v *mover, code int16) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := &m.states[v.index]
	if code != codeNone {
		m.errors[code]++
		return
	}
	s.joins++
	s.works = false
}
