package main

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"slices"
	"time"
)

const rebalanceTimeoutMs = 300_000

// member is the client's side of KIP-848 for one member subscribed to one topic: it joins, takes
// what it is assigned, gives up what it is not, and says so with the next heartbeat.
//
// The partitions of an answer are the ones the member may hold now. It drops the others and
// takes the new ones in one step, and acknowledges with the list of what it owns; the coordinator
// gives a dropped partition to another member only after that.
type member struct {
	group, id  string
	topic      topic
	epoch      int32 // 0: not a member
	intervalMs int32
	owned      []int32 // sorted
	mustAck    bool    // owned has changed since the coordinator was told
	askedAt    time.Time
}

func newMember(group string, t topic) *member {
	var id [16]byte
	rand.Read(id[:])
	return &member{group: group, id: base64.RawURLEncoding.EncodeToString(id[:]), topic: t}
}

// request is the heartbeat that the member's state asks for now.
func (m *member) request() []byte {
	h := heartbeat{group: m.group, member: m.id, epoch: m.epoch, rebalanceTimeoutMs: -1}
	switch {
	case m.epoch == epochJoin:
		h.rebalanceTimeoutMs = rebalanceTimeoutMs
		h.subscribed = []string{m.topic.name}
		h.owned = []int32{}
	case m.mustAck:
		h.topic = m.topic.id
		h.owned = append([]int32{}, m.owned...) // An empty list, too, has to be said.
	}
	return h.encode()
}

func (m *member) leaveRequest() []byte {
	return heartbeat{
		group: m.group, member: m.id, epoch: epochLeave, rebalanceTimeoutMs: -1,
	}.encode()
}

// apply takes the answer to the last request. A fenced member has lost its partitions and joins
// anew; other errors change nothing, so the same request is made again.
func (m *member) apply(b beat) {
	switch b.code {
	case codeNone:
	case codeFencedMemberEpoch, codeUnknownMemberID:
		m.epoch, m.owned, m.mustAck = epochJoin, nil, false
		return
	default:
		return
	}
	m.epoch, m.intervalMs, m.mustAck = b.epoch, b.intervalMs, false
	if !b.assigned {
		return
	}
	slices.Sort(b.partitions)
	if !slices.Equal(b.partitions, m.owned) {
		m.owned, m.mustAck = b.partitions, true
	}
}

// step makes one heartbeat of the member on a connection and returns the error code of the answer.
func (m *member) step(c *client) (int16, error) {
	m.askedAt = time.Now()
	payload, err := c.roundTrip(m.request())
	if err != nil {
		return 0, err
	}
	b, err := decodeHeartbeat(payload)
	if err != nil {
		return 0, err
	}
	m.apply(b)
	return b.code, nil
}

// leave takes the member out of its group; that it is gone already is no error.
func (m *member) leave(c *client) error {
	payload, err := c.roundTrip(m.leaveRequest())
	if err != nil {
		return err
	}
	b, err := decodeHeartbeat(payload)
	if err != nil {
		return err
	}
	if b.code != codeNone && b.code != codeUnknownMemberID {
		return fmt.Errorf("leave group %s: error %d %s", m.group, b.code, b.message)
	}
	m.epoch, m.owned, m.mustAck = epochJoin, nil, false
	return nil
}
