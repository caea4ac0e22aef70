package main

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// The engine keeps many connections busy with prebuilt frames at minimal cost per request: one
// thread with its own epoll, and system calls that bypass Go's scheduler. A generator as
// expensive as the server would measure itself.

// load is what one connection of the engine sends.
type load interface {
	// next is the frame to send now, complete except for its correlation id; nil at the end.
	next() []byte
	// answered takes the payload of the response to the oldest unanswered frame.
	answered(payload []byte) (int16, error)
}

type engineConfig struct {
	threads  int
	inFlight int
	rate     int // requests a second of all connections; 0: as fast as the answers come
	warmUp   time.Duration
	duration time.Duration // 0: until every load has ended
	server   processes
}

// outcome is what the engine measured after the warm-up.
type outcome struct {
	window  *window
	ops     int64
	latency histogram
	errors  codes
}

const (
	pollTimeoutMs = 10
	// With a rate, requests become due without an event.
	pacedTimeoutMs = 1
	inputSize      = 64 << 10
)

// runEngine drives each load on the client with the same index, and closes the clients' connections.
func runEngine(clients []*client, loads []load, config engineConfig) (*outcome, error) {
	// The engine allocates nothing while it runs, and a collection would stop its threads.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(config.threads + 2))
	now := &phase{}
	loops, err := newLoops(clients, loads, config, now)
	defer func() {
		for _, l := range loops {
			l.close()
		}
	}()
	if err != nil {
		return nil, err
	}
	w, err := measure(loops, config, now)
	result := &outcome{window: w, errors: codes{}}
	for _, l := range loops {
		err = errors.Join(err, l.failure)
		result.ops += l.latency.count
		result.latency.merge(&l.latency)
		result.errors.merge(l.errors)
	}
	return result, err
}

// measure runs the loops, and opens the window after the warm-up, or before they start without one.
func measure(loops []*loop, config engineConfig, now *phase) (w *window, err error) {
	if config.duration == 0 {
		now.recording.Store(true)
		if w, err = openWindow(config.server); err != nil {
			return nil, err
		}
		start(loops).Wait()
		return w, w.close()
	}
	running := start(loops)
	time.Sleep(config.warmUp)
	w, err = openWindow(config.server)
	now.recording.Store(true)
	time.Sleep(config.duration)
	now.recording.Store(false)
	err = errors.Join(err, w.close())
	now.ended.Store(true)
	running.Wait()
	return w, err
}

// phase is what the loops do with the responses they get.
type phase struct{ recording, ended atomic.Bool }

func newLoops(
	clients []*client, loads []load, config engineConfig, now *phase,
) ([]*loop, error) {
	var loops []*loop
	for range min(config.threads, len(clients)) {
		epoll, err := syscall.EpollCreate1(0)
		if err != nil {
			return loops, err
		}
		loops = append(loops, &loop{
			epoll: epoll, started: time.Now(), phase: now, errors: codes{},
			rate: float64(config.rate) / float64(min(config.threads, len(clients))),
		})
	}
	for i, c := range clients {
		if err := loops[i%len(loops)].watch(c, loads[i], config.inFlight); err != nil {
			return loops, err
		}
	}
	return loops, nil
}

func start(loops []*loop) *sync.WaitGroup {
	var running sync.WaitGroup
	for _, l := range loops {
		running.Add(1)
		go func() {
			defer running.Done()
			runtime.LockOSThread()
			l.failure = l.run()
		}()
	}
	return &running
}

// loop is one thread with the connections it serves.
type loop struct {
	epoll   int
	sockets []*socket
	open    int // sockets with more to send or to receive
	started time.Time
	rate    float64 // requests a second; 0: no limit
	issued  int64
	turn    int
	phase   *phase
	latency histogram
	errors  codes
	failure error
}

// socket is one connection of a loop.
type socket struct {
	fd          int
	load        load
	tls         *tls.Conn // nil: plain
	seam        *seam     // the socket's side of the TLS connection
	sealed      []byte    // where its bytes are read
	in          []byte
	filled      int
	out         []byte // what the kernel has not accepted yet
	sentAt      []time.Duration
	sent, taken uint32 // requests sent and answered; the correlation id is their number
	exhausted   bool
}

func (l *loop) now() time.Duration { return time.Since(l.started) }

func (l *loop) watch(c *client, what load, inFlight int) error {
	fd, err := c.detach()
	if err != nil {
		return err
	}
	s := &socket{fd: fd, load: what, in: make([]byte, inputSize), sentAt: make([]time.Duration, inFlight)}
	if c.tls != nil {
		s.tls, s.seam, s.sealed = c.tls, c.seam, make([]byte, inputSize)
	}
	l.sockets = append(l.sockets, s)
	l.open++
	return l.control(syscall.EPOLL_CTL_ADD, len(l.sockets)-1, syscall.EPOLLIN)
}

func (l *loop) control(operation, index int, events uint32) error {
	event := syscall.EpollEvent{Events: events, Fd: int32(index)}
	return syscall.EpollCtl(l.epoll, operation, l.sockets[index].fd, &event)
}

func (l *loop) close() {
	for _, s := range l.sockets {
		syscall.Close(s.fd)
	}
	syscall.Close(l.epoll)
}

func (l *loop) run() error {
	for i := range l.sockets {
		if err := l.fill(i); err != nil {
			return err
		}
	}
	events := make([]syscall.EpollEvent, 256)
	timeoutMs := pollTimeoutMs
	if l.rate > 0 {
		timeoutMs = pacedTimeoutMs
	}
	for l.open > 0 && !l.phase.ended.Load() {
		n, errno := epollWait(l.epoll, events, timeoutMs)
		if errno != 0 && errno != syscall.EINTR {
			return errno
		}
		for _, event := range events[:max(n, 0)] {
			if err := l.serve(int(event.Fd), event.Events); err != nil {
				return err
			}
		}
		if err := l.fillAll(); err != nil {
			return err
		}
	}
	return nil
}

// fillAll sends what has become due on connections that wait for no answer.
func (l *loop) fillAll() error {
	for i := 0; l.rate > 0 && i < len(l.sockets) && l.isDue(); i++ {
		l.turn = (l.turn + 1) % len(l.sockets)
		if err := l.fill(l.turn); err != nil {
			return err
		}
	}
	return nil
}

// isDue tells whether the rate allows another request. What could not be sent in time is sent later.
func (l *loop) isDue() bool {
	return l.rate == 0 || float64(l.issued) < l.rate*l.now().Seconds()
}

var errClosed = errors.New("the server closed a connection")

func (l *loop) serve(index int, events uint32) error {
	s := l.sockets[index]
	if events&syscall.EPOLLOUT != 0 {
		if err := l.write(index, nil); err != nil {
			return err
		}
	}
	if events&^uint32(syscall.EPOLLOUT) == 0 {
		return nil
	}
	n, errno := call(syscall.SYS_READ, s.fd, s.room())
	switch {
	case errno == syscall.EAGAIN || errno == syscall.EINTR:
		return nil
	case errno != 0:
		return errno
	case n == 0:
		return errClosed
	}
	if err := l.take(s, n); err != nil {
		return err
	}
	return l.fill(index)
}

// room is where the bytes of the network are read into.
func (s *socket) room() []byte {
	if s.tls != nil {
		return s.sealed
	}
	return s.in[s.filled:]
}

// take handles n bytes that were read into the room.
func (l *loop) take(s *socket, n int) error {
	if s.tls == nil {
		s.filled += n
		return l.takeAnswers(s)
	}
	s.seam.in = s.sealed[:n]
	for {
		n, err := s.tls.Read(s.in[s.filled:])
		s.filled += n
		switch {
		case errors.Is(err, errNothingYet):
			return nil
		case errors.Is(err, io.EOF):
			return errClosed
		case err != nil:
			return err
		}
		if err := l.takeAnswers(s); err != nil {
			return err
		}
	}
}

// takeAnswers handles every complete response that has been read, and keeps the rest.
func (l *loop) takeAnswers(s *socket) error {
	at := 0
	for s.filled-at >= 4 {
		size := int(binary.BigEndian.Uint32(s.in[at:]))
		if s.filled-at < 4+size {
			if 4+size > len(s.in) {
				s.in = append(s.in, make([]byte, 4+size)...)
			}
			break
		}
		if err := l.takeAnswer(s, s.in[at+4:at+4+size]); err != nil {
			return err
		}
		at += 4 + size
	}
	copy(s.in, s.in[at:s.filled])
	s.filled -= at
	return nil
}

func (l *loop) takeAnswer(s *socket, payload []byte) error {
	s.taken++
	if len(payload) < 4 || binary.BigEndian.Uint32(payload) != s.taken {
		return fmt.Errorf("an answer that is not to request %d", s.taken)
	}
	now := l.now()
	sentAt := s.sentAt[int(s.taken)%len(s.sentAt)]
	code, err := s.load.answered(payload)
	if err != nil {
		return err
	}
	if !l.phase.recording.Load() {
		return nil
	}
	l.latency.add(now - sentAt)
	if code != codeNone {
		l.errors[code]++
	}
	return nil
}

// fill sends until the maximum number of requests is in flight.
func (l *loop) fill(index int) error {
	s := l.sockets[index]
	for !s.exhausted && int(s.sent-s.taken) < len(s.sentAt) && l.isDue() {
		frame := s.load.next()
		if frame == nil {
			s.exhausted = true
			break
		}
		s.sent++
		l.issued++
		binary.BigEndian.PutUint32(frame[correlationOffset:], s.sent)
		s.sentAt[int(s.sent)%len(s.sentAt)] = l.now()
		if err := l.send(index, frame); err != nil {
			return err
		}
	}
	if s.exhausted && s.sent == s.taken && s.load != nil {
		s.load = nil
		l.open--
	}
	return nil
}

// send writes a frame, encrypted if the connection is.
func (l *loop) send(index int, frame []byte) error {
	s := l.sockets[index]
	if s.tls != nil {
		if _, err := s.tls.Write(frame); err != nil {
			return err
		}
		frame = s.seam.takeOut()
	}
	return l.write(index, frame)
}

// write sends the rest of earlier frames and then this one; what the kernel refuses is kept.
func (l *loop) write(index int, frame []byte) error {
	s := l.sockets[index]
	hadLeft := len(s.out) > 0
	rest := frame
	if hadLeft {
		s.out = append(s.out, frame...)
		rest = s.out
	}
	for len(rest) > 0 {
		n, errno := call(syscall.SYS_WRITE, s.fd, rest)
		if errno == syscall.EAGAIN {
			break
		}
		if errno != 0 && errno != syscall.EINTR {
			return errno
		}
		rest = rest[max(n, 0):]
	}
	s.out = append(s.out[:0], rest...)
	if hasLeft := len(s.out) > 0; hasLeft != hadLeft {
		events := uint32(syscall.EPOLLIN)
		if hasLeft {
			events |= syscall.EPOLLOUT
		}
		return l.control(syscall.EPOLL_CTL_MOD, index, events)
	}
	return nil
}

// call reads or writes a non-blocking descriptor without informing Go's scheduler.
func call(number uintptr, fd int, b []byte) (int, syscall.Errno) {
	n, _, errno := syscall.RawSyscall(
		number, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
	return int(n), errno
}

func epollWait(epoll int, events []syscall.EpollEvent, timeoutMs int) (int, syscall.Errno) {
	n, _, errno := syscall.RawSyscall6(
		syscall.SYS_EPOLL_PWAIT, uintptr(epoll), uintptr(unsafe.Pointer(&events[0])),
		uintptr(len(events)), uintptr(timeoutMs), 0, 0)
	return int(n), errno
}
