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
// its assigned partitions, revokes the others, and reports both with the next heartbeat.
//
// The partitions in a response are those that the member may own now. It drops the others and
// takes the new ones in one step, and acknowledges with the list of owned partitions; only then
// does the coordinator assign a dropped partition to another member.
type member struct {
	group, id  string
	topic      topic
	epoch      int32 // 0: not a member
	intervalMs int32
	owned      []int32 // sorted
	mustAck    bool    // owned has changed since the last heartbeat
	askedAt    time.Time
}

func newMember(group string, t topic) *member {
	var id [16]byte
	rand.Read(id[:])
	return &member{group: group, id: base64.RawURLEncoding.EncodeToString(id[:]), topic: t}
}

// request is the next heartbeat for the member's state.
func (m *member) request() []byte {
	h := heartbeat{group: m.group, member: m.id, epoch: m.epoch, rebalanceTimeoutMs: -1}
	switch {
	case m.epoch == epochJoin:
		h.rebalanceTimeoutMs = rebalanceTimeoutMs
		h.subscribed = []string{m.topic.name}
		h.owned = []int32{}
	case m.mustAck:
		h.topic = m.topic.id
		h.owned = append([]int32{}, m.owned...) // An empty list must be sent, too.
	}
	return h.encode()
}

func (m *member) leaveRequest() []byte {
	return heartbeat{
		group: m.group, member: m.id, epoch: epochLeave, rebalanceTimeoutMs: -1,
	}.encode()
}

// apply handles the response to the last request. A fenced member has lost its partitions and
// rejoins; other errors change nothing, so the same request is sent again.
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

// step sends one heartbeat of the member on a connection and returns its error code.
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

// leave removes the member from its group; it is not an error if it is gone already.
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
