package main

import "testing"

func TestTrackerReachesOnlyTheFinalState(t *testing.T) {
	k := newTracker(3)
	k.expect(2, 0)
	a := &holding{epoch: 2, owned: []int32{0, 1, 2}}
	k.change(nil, a, codeNone)
	expectReached(t, k, false, "one of two members")
	b := &holding{epoch: 3}
	k.change(nil, b, codeNone)
	expectReached(t, k, false, "members at two epochs")
	a = k.moveTo(a, &holding{epoch: 3, owned: []int32{0, 1, 2}})
	expectReached(t, k, false, "all at one epoch, but one has nothing")
	a = k.moveTo(a, &holding{epoch: 3, owned: []int32{0, 1}})
	expectReached(t, k, false, "a partition that nobody has")
	b = k.moveTo(b, &holding{epoch: 3, owned: []int32{2}})
	expectReached(t, k, true, "the final state")
	if k.epoch() != 3 {
		t.Errorf("epoch %d", k.epoch())
	}

	k.expect(1, 3)
	k.change(b, nil, codeNone)
	expectReached(t, k, false, "the partitions of the one that left are free")
	a = k.moveTo(a, &holding{epoch: 3, owned: []int32{0, 1, 2}})
	expectReached(t, k, false, "the old epoch")
	k.moveTo(a, &holding{epoch: 4, owned: []int32{0, 1, 2}})
	expectReached(t, k, true, "all with the one that is left")
	if k.doubled != 0 {
		t.Errorf("doubled %d", k.doubled)
	}
}

func TestTrackerCountsTwoOwnersAndErrors(t *testing.T) {
	k := newTracker(2)
	k.expect(2, 0)
	k.change(nil, &holding{epoch: 2, owned: []int32{0, 1}}, codeNone)
	b := &holding{epoch: 2, owned: []int32{1}}
	k.change(nil, b, codeNone)
	expectReached(t, k, false, "a partition with two owners")
	k.change(b, nil, codeFencedMemberEpoch)
	got := k.tally()
	if got.doubled != 1 || got.beats != 3 || got.errors[codeFencedMemberEpoch] != 1 {
		t.Errorf("%+v", got)
	}
}

func (t *tracker) moveTo(before, after *holding) *holding {
	t.change(before, after, codeNone)
	return after
}

func expectReached(t *testing.T, k *tracker, want bool, says string) {
	t.Helper()
	select {
	case <-k.reached:
		if !want {
			t.Error("reached: " + says)
		}
	default:
		if want {
			t.Error("not reached: " + says)
		}
	}
}
