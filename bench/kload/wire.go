package main

import (
	"encoding/binary"
	"errors"
)

// Offsets within a request frame: size, API key, version, correlation id, ...
const correlationOffset = 8

const clientID = "kload"

var errMalformed = errors.New("the answer ends too early")

// writer builds one request frame of Kafka's flexible encoding.
type writer struct{ b []byte }

func newRequest(apiKey, version int16) *writer {
	w := &writer{b: make([]byte, 4, 128)}
	w.int16(apiKey)
	w.int16(version)
	w.int32(0)
	w.int16(int16(len(clientID)))
	w.b = append(w.b, clientID...)
	w.noTags()
	return w
}

// frame ends the request and returns it prefixed with its size.
func (w *writer) frame() []byte {
	w.noTags()
	return w.sized()
}

// sized ends a request that has no tags.
func (w *writer) sized() []byte {
	binary.BigEndian.PutUint32(w.b, uint32(len(w.b)-4))
	return w.b
}

func (w *writer) int8(v int8)   { w.b = append(w.b, byte(v)) }
func (w *writer) int16(v int16) { w.b = binary.BigEndian.AppendUint16(w.b, uint16(v)) }
func (w *writer) int32(v int32) { w.b = binary.BigEndian.AppendUint32(w.b, uint32(v)) }
func (w *writer) int64(v int64) { w.b = binary.BigEndian.AppendUint64(w.b, uint64(v)) }
func (w *writer) bool(v bool) {
	if v {
		w.int8(1)
	} else {
		w.int8(0)
	}
}

// length writes the length of a compact array or string; null differs from empty.
func (w *writer) length(n int) { w.b = binary.AppendUvarint(w.b, uint64(n)+1) }
func (w *writer) null()        { w.b = append(w.b, 0) }
func (w *writer) noTags()      { w.b = append(w.b, 0) }
func (w *writer) string(s string) {
	w.length(len(s))
	w.b = append(w.b, s...)
}
func (w *writer) uuid(id uuid) { w.b = append(w.b, id[:]...) }

type uuid [16]byte

// reader parses a response. After the end it returns zeros and remembers the failure, so
// that a decoder checks once, at its end.
type reader struct {
	b      []byte
	failed bool
}

// newAnswer starts after the correlation id and the tags of the response header.
func newAnswer(payload []byte) *reader {
	r := &reader{b: payload}
	r.int32()
	r.skipTags()
	return r
}

func (r *reader) take(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.failed = true
		r.b = nil
		return nil
	}
	taken := r.b[:n]
	r.b = r.b[n:]
	return taken
}

func (r *reader) int8() int8 {
	if b := r.take(1); b != nil {
		return int8(b[0])
	}
	return 0
}

func (r *reader) int16() int16 {
	if b := r.take(2); b != nil {
		return int16(binary.BigEndian.Uint16(b))
	}
	return 0
}

func (r *reader) int32() int32 {
	if b := r.take(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.failed = true
		r.b = nil
		return 0
	}
	r.b = r.b[n:]
	return v
}

// length reads a compact length; null counts as none.
func (r *reader) length() int {
	n := r.uvarint()
	if n == 0 {
		return 0
	}
	if n-1 > uint64(len(r.b)) {
		r.failed = true
		r.b = nil
		return 0
	}
	return int(n - 1)
}

func (r *reader) string() string { return string(r.take(r.length())) }

func (r *reader) uuid() (id uuid) {
	copy(id[:], r.take(len(id)))
	return id
}

func (r *reader) skipTags() {
	for n := r.uvarint(); n > 0 && !r.failed; n-- {
		r.uvarint()
		r.take(int(r.uvarint()))
	}
}

func (r *reader) err() error {
	if r.failed {
		return errMalformed
	}
	return nil
}
