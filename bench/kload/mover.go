package main

import (
	"encoding/binary"
	"fmt"
	"time"
)

// classicInterval is a stock consumer's heartbeat.interval.ms.
const classicInterval = 3 * time.Second

// mover is one member of a group that moves. It does what stock consumers do: heartbeats and commits
// share a connection to the coordinator, a heartbeat every 3 s; it goes on committing until a
// response says that the group rebalances, joins again, and looks for its coordinator where a
// response or the end of the connection says that it has moved.
type mover struct {
	moving      *moving
	index       int
	seat        *seat
	mustJoin    bool
	coordinator string
	pipe        *pipe
	offset      uint64
	nextBeat    time.Time // counts on where the coordinator moves
}

// live returns when the members are to leave, or with an error that no member expects.
func (v *mover) live() error {
	v.mustJoin = true
	for !v.isLeaving() {
		if v.pipe == nil && !v.connect() {
			v.rest()
			continue
		}
		var code int16
		var err error
		if v.mustJoin {
			code, err = v.seat.join(v.pipe)
			if err == nil {
				v.moving.noteJoined(v, code)
				v.mustJoin = code != codeNone
				v.nextBeat = time.Now().Add(v.firstRest())
				if isRetriable(code) {
					v.rest()
				}
			}
		} else {
			code, err = v.work()
		}
		if err != nil {
			v.disconnect()
			continue
		}
		if err := v.take(code); err != nil {
			return err
		}
	}
	if v.pipe != nil && v.seat.id != "" {
		_, _ = v.pipe.roundTrip(encodeLeave(v.seat.group, []string{v.seat.id}))
		v.pipe.close()
	}
	return nil
}

// take does what an error code asks for.
func (v *mover) take(code int16) error {
	switch code {
	case codeNone, codeMemberIDRequired:
	case codeNotCoordinator, codeCoordinatorNotAvailable:
		v.disconnect()
	case codeCoordinatorLoading:
		if !v.mustJoin {
			v.rest()
		}
	case codeUnknownMemberID:
		v.seat.forget()
		v.mustJoin = true
	case codeRebalanceInProgress, codeIllegalGeneration:
		v.mustJoin = true
	default:
		return fmt.Errorf("member of %s: error %d", v.seat.group, code)
	}
	return nil
}

func (v *mover) isLeaving() bool {
	select {
	case <-v.moving.leaving:
		return true
	default:
		return false
	}
}

// rest is a stock consumer's retry.backoff.ms.
func (v *mover) rest() {
	select {
	case <-v.moving.leaving:
	case <-time.After(retryPause):
	}
}

// connect finds the coordinator and connects to it; false if there is none now.
func (v *mover) connect() bool {
	admin, err := dial(v.moving.to)
	if err != nil {
		return false
	}
	defer admin.conn.Close()
	found, code, err := admin.findCoordinator(v.seat.group)
	if err != nil || code != codeNone {
		return false
	}
	to := v.moving.to
	to.hostPort = found
	if v.pipe, err = dialPipe(to); err != nil {
		v.pipe = nil
		return false
	}
	v.coordinator = found
	return true
}

func (v *mover) disconnect() {
	if v.pipe != nil {
		v.pipe.close()
		v.pipe = nil
	}
}

// firstRest spreads the heartbeats of members that have joined together over the interval: those of
// real ones drift apart, and each hears of the next rebalance at another time.
func (v *mover) firstRest() time.Duration {
	steps := v.moving.spread
	return classicInterval * time.Duration(v.index%steps+1) / time.Duration(steps)
}

// work sends commits and heartbeats until a response is an error, whose code it returns.
func (v *mover) work() (int16, error) {
	partitions := v.seat.owned[:min(1, len(v.seat.owned))]
	frame, offsetsAt := encodeCommitAs(
		v.seat.group, v.seat.id, v.seat.generation, v.seat.topic, 9, partitions)
	commits, beats := time.NewTimer(0), time.NewTimer(time.Until(v.nextBeat))
	defer commits.Stop()
	defer beats.Stop()
	late := time.NewTicker(answerTimeout)
	defer late.Stop()
	var committing, beating <-chan []byte
	var isAnswered bool
	for {
		var code int16
		var err error
		select {
		case <-v.moving.leaving:
			return codeNone, nil
		case <-late.C:
			if !isAnswered {
				return codeNone, errNoAnswer
			}
			isAnswered = false
			continue
		case <-commits.C:
			v.offset++
			for _, at := range offsetsAt {
				binary.BigEndian.PutUint64(frame[at:], v.offset)
			}
			committing = v.pipe.send(frame)
			continue
		case <-beats.C:
			beating = v.pipe.send(v.seat.heartbeat())
			continue
		case payload, ok := <-committing:
			committing = nil
			commits.Reset(v.moving.pause)
			code, err = v.readCommit(payload, ok)
		case payload, ok := <-beating:
			beating = nil
			beats.Reset(classicInterval)
			if code, err = codeNone, errClosed; ok {
				code, err = decodeCode(payload)
			}
			v.nextBeat = time.Now().Add(classicInterval)
			if err != nil || isRetriable(code) {
				v.nextBeat = time.Now().Add(retryPause)
			}
		}
		if err != nil {
			return codeNone, err
		}
		isAnswered = true
		v.moving.note(v, code)
		if code != codeNone {
			return code, nil
		}
	}
}

func (v *mover) readCommit(payload []byte, ok bool) (int16, error) {
	if !ok {
		return codeNone, errClosed
	}
	byPartition, err := decodeCommit(payload, 9)
	for _, code := range byPartition {
		if code != codeNone {
			return code, err
		}
	}
	return codeNone, err
}
