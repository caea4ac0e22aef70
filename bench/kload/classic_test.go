package main

import (
	"encoding/binary"
	"hash/crc32"
	"reflect"
	"testing"
	"time"
)

func TestAnAssignmentIsReadAsItWasWritten(t *testing.T) {
	for _, partitions := range [][]int32{{}, {7}, {1, 2, 3}} {
		got, err := decodeAssignment(encodeAssignment("orders", partitions))
		if err != nil || !reflect.DeepEqual(got, partitions) {
			t.Errorf("%v: %v, %v", partitions, got, err)
		}
	}
	if got, err := decodeAssignment(nil); got != nil || err != nil {
		t.Errorf("nothing: %v, %v", got, err)
	}
	whole := encodeAssignment("orders", []int32{1, 2})
	// The user data at its end does not matter.
	for size := 1; size < len(whole)-4; size++ {
		if _, err := decodeAssignment(whole[:size]); err == nil {
			t.Errorf("no error after %d of %d bytes", size, len(whole))
		}
	}
}

func TestPartitionsAreDealtOutToAllMembers(t *testing.T) {
	s := newSeat("g", topic{name: "t", partitions: 5})
	var all [][]int32
	for _, g := range s.share([]string{"a", "b"}) {
		owned, err := decodeAssignment(g.assignment)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, owned)
	}
	if !reflect.DeepEqual(all, [][]int32{{0, 2, 4}, {1, 3}}) {
		t.Error(all)
	}
}

func TestABatchIsAsLongAsItIsToBe(t *testing.T) {
	for _, size := range []int{64 << 10, recordsSize} {
		b := makeBatch(size)
		sum := crc32.Checksum(b[crcFrom:], crc32.MakeTable(crc32.Castagnoli))
		if len(b) != size || int(binary.BigEndian.Uint32(b[8:])) != size-12 ||
			binary.BigEndian.Uint32(b[17:]) != sum {
			t.Errorf("a batch of %d has %d bytes", size, len(b))
		}
		length, n := binary.Varint(b[batchHeader:])
		if int(length) != size-batchHeader-n {
			t.Errorf("its record says %d, and %d bytes follow", length, size-batchHeader-n)
		}
	}
}

// script answers with payloads in turn.
type script struct{ answers [][]byte }

func (s *script) roundTrip([]byte) ([]byte, error) {
	if len(s.answers) == 0 {
		return nil, errClosed
	}
	answer := s.answers[0]
	s.answers = s.answers[1:]
	return answer, nil
}

// payload is what a request writer writes after its header, as the body of an answer.
func payload(write func(w *writer)) []byte {
	w := &writer{b: make([]byte, 4)}
	w.noTags()
	w.int32(0)
	write(w)
	w.noTags()
	return w.b
}

func joinAnswer(code int16, generation int32, leader, member string, members ...string) []byte {
	return payload(func(w *writer) {
		w.int16(code)
		w.int32(generation)
		w.string(protocolType)
		w.string(protocolName)
		w.string(leader)
		w.bool(false)
		w.string(member)
		w.length(len(members))
		for _, m := range members {
			w.string(m)
			w.null()
			w.bytes(nil)
			w.noTags()
		}
	})
}

func syncAnswer(code int16, assignment []byte) []byte {
	return payload(func(w *writer) {
		w.int16(code)
		w.string(protocolType)
		w.string(protocolName)
		w.bytes(assignment)
	})
}

func TestASeatTakesItsIdAndItsPartitions(t *testing.T) {
	s := newSeat("g", topic{name: "t", partitions: 2})
	to := &script{[][]byte{
		joinAnswer(codeMemberIDRequired, noGeneration, "", "m"),
		joinAnswer(codeNone, 4, "m", "m", "m", "n"),
		syncAnswer(codeNone, encodeAssignment("t", []int32{0})),
	}}
	if code, err := s.join(to); code != codeMemberIDRequired || s.id != "m" || err != nil {
		t.Fatalf("%d, %v: %+v", code, err, s)
	}
	code, err := s.join(to)
	if code != codeNone || err != nil || s.generation != 4 || !reflect.DeepEqual(s.owned, []int32{0}) {
		t.Errorf("%d, %v: %+v", code, err, s)
	}
}

func TestASeatThatIsUnknownStartsAgain(t *testing.T) {
	s := &seat{group: "g", id: "m", generation: 4, owned: []int32{1}}
	to := &script{[][]byte{joinAnswer(codeUnknownMemberID, noGeneration, "", "")}}
	if code, err := s.join(to); code != codeUnknownMemberID || err != nil {
		t.Errorf("%d, %v", code, err)
	}
	if s.id != "" || s.generation != noGeneration || s.owned != nil {
		t.Errorf("%+v", s)
	}
}

func TestAGroupHasSettledWhenAllHaveJoinedAndWorkAtOnePlace(t *testing.T) {
	m := &moving{errors: codes{}, states: make([]moverState, 2)}
	movers := []*mover{
		{moving: m, index: 0, seat: &seat{generation: 1}, coordinator: "old"},
		{moving: m, index: 1, seat: &seat{generation: 1}, coordinator: "old"},
	}
	work := func(v *mover) {
		m.noteJoined(v, codeNone)
		m.note(v, codeNone)
	}
	work(movers[0])
	if m.isSettled(false) {
		t.Error("one has not joined")
	}
	work(movers[1])
	if !m.isSettled(false) {
		t.Error("both work: ", m.describe())
	}
	m.endPhase("join", time.Now())
	if m.isSettled(false) {
		t.Error("nobody has joined since")
	}
	for _, v := range movers {
		v.seat.generation = 2
		work(v)
	}
	if !m.isSettled(false) || m.isSettled(true) {
		t.Error("they have joined where they were")
	}
	movers[0].coordinator = "new"
	work(movers[0])
	if m.isSettled(true) {
		t.Error("one is where it was")
	}
	movers[1].coordinator = "new"
	work(movers[1])
	if !m.isSettled(true) {
		t.Error("both have moved: ", m.describe())
	}
}

func TestAMemberStandsStillBetweenTwoSuccesses(t *testing.T) {
	m := &moving{errors: codes{}, states: make([]moverState, 1)}
	v := &mover{moving: m, seat: &seat{generation: 1}}
	m.note(v, codeNone)
	const still = time.Hour
	m.states[0].lastGood = m.states[0].lastGood.Add(-still)
	m.note(v, codeRebalanceInProgress)
	if m.states[0].longest != 0 {
		t.Error("an error is no success")
	}
	m.note(v, codeNone)
	if longest := m.states[0].longest; longest < still || longest > 2*still {
		t.Errorf("stood still for %v", longest)
	}
	r := m.endPhase("take", time.Now())
	if m.states[0].longest != 0 || !reflect.DeepEqual(r["codes"], map[string]int64{"27": 1}) {
		t.Errorf("%v", r)
	}
}
