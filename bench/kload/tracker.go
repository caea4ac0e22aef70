package main

import (
	"sync"
	"time"
)

// tracker follows, for one group, who owns which partition at which epoch, and detects when all own
// their final ones. It sees each change before the member acknowledges it.
type tracker struct {
	mu       sync.Mutex
	expected int           // members that the group will have
	floor    int32         // the final epoch is above this one
	epochs   map[int32]int // members by their epoch
	sizes    map[int]int   // members by their number of partitions
	owners   []int         // by partition
	once     int           // partitions with exactly one owner
	doubled  int64         // how often a partition had two owners; must be 0
	beats    int64
	errors   codes
	reached  chan time.Time
}

func newTracker(partitions int) *tracker {
	return &tracker{
		epochs: map[int32]int{}, sizes: map[int]int{}, owners: make([]int, partitions), errors: codes{},
		reached: make(chan time.Time, 1),
	}
}

// holding is a member's epoch and partitions at one moment; nil means no member.
type holding struct {
	epoch int32
	owned []int32
}

func (m *member) holding() *holding {
	if m.epoch == epochJoin {
		return nil
	}
	return &holding{epoch: m.epoch, owned: m.owned}
}

// expect starts waiting for this number of members at an epoch above floor.
func (t *tracker) expect(members int, floor int32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.expected, t.floor = members, floor
	select {
	case <-t.reached:
	default:
	}
}

// grow sets a new number of partitions of the topic.
func (t *tracker) grow(partitions int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.owners = append(t.owners, make([]int, partitions-len(t.owners))...)
}

func (t *tracker) change(before, after *holding, code int16) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.beats++
	if code != codeNone {
		t.errors[code]++
	}
	t.count(before, -1)
	t.count(after, 1)
	if t.isConverged() {
		select {
		case t.reached <- time.Now():
		default:
		}
	}
}

func (t *tracker) count(h *holding, by int) {
	if h == nil {
		return
	}
	if t.epochs[h.epoch] += by; t.epochs[h.epoch] == 0 {
		delete(t.epochs, h.epoch)
	}
	if t.sizes[len(h.owned)] += by; t.sizes[len(h.owned)] == 0 {
		delete(t.sizes, len(h.owned))
	}
	for _, partition := range h.owned {
		if t.owners[partition] == 1 {
			t.once--
		}
		t.owners[partition] += by
		switch t.owners[partition] {
		case 1:
			t.once++
		case 2:
			t.doubled++
		}
	}
}

// isConverged: all members are at the same new epoch, every partition has one owner, and no member
// has two more than another.
func (t *tracker) isConverged() bool {
	if len(t.epochs) != 1 || t.once != len(t.owners) {
		return false
	}
	for epoch, members := range t.epochs {
		if epoch <= t.floor || members != t.expected {
			return false
		}
	}
	least, most := len(t.owners), 0
	for size := range t.sizes {
		least, most = min(least, size), max(most, size)
	}
	return most-least <= 1
}

// epoch is the common epoch of all members, or 0 if they differ.
func (t *tracker) epoch() int32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.isConverged() {
		return 0
	}
	for epoch := range t.epochs {
		return epoch
	}
	return 0
}

// tally is what the tracker has counted so far.
type tally struct {
	beats, doubled int64
	errors         codes
}

func (t *tracker) tally() tally {
	t.mu.Lock()
	defer t.mu.Unlock()
	errors := codes{}
	errors.merge(t.errors)
	return tally{beats: t.beats, doubled: t.doubled, errors: errors}
}
