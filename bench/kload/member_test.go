package main

import (
	"bytes"
	"reflect"
	"testing"
)

func assigned(epoch int32, partitions ...int32) beat {
	return beat{epoch: epoch, intervalMs: 5000, assigned: true, partitions: partitions}
}

func TestMemberJoinsOwnsAcknowledgesAndRests(t *testing.T) {
	m := newMember("g", topic{name: "t", partitions: 4})
	join := heartbeat{
		group: "g", member: m.id, rebalanceTimeoutMs: rebalanceTimeoutMs, subscribed: []string{"t"},
		owned: []int32{},
	}
	if !bytes.Equal(m.request(), join.encode()) {
		t.Error("the first request is not a full join")
	}
	m.apply(assigned(2, 3, 1))
	if !m.mustAck || !reflect.DeepEqual(m.owned, []int32{1, 3}) {
		t.Errorf("after an assignment: %+v", m)
	}
	ack := heartbeat{group: "g", member: m.id, epoch: 2, rebalanceTimeoutMs: -1, owned: m.owned}
	if !bytes.Equal(m.request(), ack.encode()) {
		t.Error("the second request does not say what is owned")
	}
	m.apply(beat{epoch: 2, intervalMs: 5000})
	rest := heartbeat{group: "g", member: m.id, epoch: 2, rebalanceTimeoutMs: -1}
	if m.mustAck || !bytes.Equal(m.request(), rest.encode()) {
		t.Error("the third request is not a plain heartbeat")
	}
}

func TestMemberGivesUpWhatIsNotAssigned(t *testing.T) {
	m := newMember("g", topic{name: "t"})
	m.apply(assigned(2, 0, 1, 2))
	m.apply(assigned(2, 1))
	if !m.mustAck || !reflect.DeepEqual(m.owned, []int32{1}) {
		t.Errorf("%+v", m)
	}
	m.apply(assigned(3, 1))
	if m.mustAck || m.epoch != 3 {
		t.Errorf("the same assignment at a new epoch: %+v", m)
	}
	m.apply(assigned(4))
	if !m.mustAck || len(m.owned) != 0 {
		t.Errorf("an empty assignment: %+v", m)
	}
}

func TestAnAcknowledgementOfNothingIsNotTheSameAsSayingNothing(t *testing.T) {
	m := newMember("g", topic{name: "t"})
	m.apply(assigned(2, 0))
	m.apply(assigned(3))
	ack := heartbeat{group: "g", member: m.id, epoch: 3, rebalanceTimeoutMs: -1, owned: []int32{}}
	if !bytes.Equal(m.request(), ack.encode()) {
		t.Error("the list of owned partitions is missing")
	}
}

func TestMemberAfterErrors(t *testing.T) {
	for _, code := range []int16{codeFencedMemberEpoch, codeUnknownMemberID} {
		m := newMember("g", topic{name: "t"})
		m.apply(assigned(2, 0))
		m.apply(beat{code: code})
		if m.epoch != epochJoin || m.owned != nil || m.mustAck {
			t.Errorf("%d: %+v", code, m)
		}
	}
	m := newMember("g", topic{name: "t"})
	m.apply(assigned(2, 0))
	m.apply(beat{code: codeNotCoordinator})
	if m.epoch != 2 || !m.mustAck || len(m.owned) != 1 {
		t.Errorf("a passing error: %+v", m)
	}
}

func TestIsShared(t *testing.T) {
	at := func(epoch int32, owned ...int32) *member {
		return &member{topic: topic{partitions: 3}, epoch: epoch, owned: owned}
	}
	cases := []struct {
		says    string
		members []*member
		want    bool
	}{
		{"all held once at one epoch", members(at(4, 0), at(4, 1, 2)), true},
		{"one is behind", members(at(3, 0), at(4, 1, 2)), false},
		{"one partition is free", members(at(4, 0), at(4, 1)), false},
		{"one partition is held twice", members(at(4, 0, 1), at(4, 1, 2)), false},
		{"nobody has joined", members(at(0), at(0)), false},
	}
	for _, c := range cases {
		if isShared(c.members) != c.want {
			t.Error(c.says)
		}
	}
}

func members(all ...*member) []*member { return all }
