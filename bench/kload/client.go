package main

import (
	"bufio"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"
)

const (
	dialTimeout   = 10 * time.Second
	answerTimeout = 90 * time.Second
	retryPause    = 100 * time.Millisecond
	retryTime     = 60 * time.Second
)

// client is one connection with one request in flight.
type client struct {
	conn        net.Conn // what requests are written to
	socket      *net.TCPConn
	tls         *tls.Conn // nil: plain
	seam        *seam
	in          *bufio.Reader
	correlation uint32
}

// dial connects, and makes the handshake and the login that the address asks for.
func dial(addr address) (*client, error) {
	conn, err := net.DialTimeout("tcp", addr.hostPort, dialTimeout)
	if err != nil {
		return nil, err
	}
	c := &client{conn: conn, socket: conn.(*net.TCPConn)}
	if err := c.secure(addr); err != nil {
		conn.Close()
		return nil, err
	}
	return c, nil
}

func (c *client) secure(addr address) error {
	if addr.tls != nil {
		c.seam = &seam{Conn: c.socket}
		c.tls = tls.Client(c.seam, addr.tls)
		c.conn = c.tls
		if err := c.conn.SetDeadline(time.Now().Add(dialTimeout)); err != nil {
			return err
		}
		if err := c.tls.Handshake(); err != nil {
			return fmt.Errorf("handshake: %w", err)
		}
	}
	c.in = bufio.NewReader(c.conn)
	if addr.login != nil {
		return addr.login.authenticate(c)
	}
	return nil
}

func dialAll(addr address, count int) ([]*client, error) {
	clients := make([]*client, 0, count)
	for range count {
		c, err := dial(addr)
		if err != nil {
			closeAll(clients)
			return nil, err
		}
		clients = append(clients, c)
	}
	return clients, nil
}

func closeAll(clients []*client) {
	for _, c := range clients {
		c.conn.Close()
	}
}

// roundTrip sends a frame and returns the payload of its response, starting at the correlation id.
func (c *client) roundTrip(frame []byte) ([]byte, error) {
	c.correlation++
	binary.BigEndian.PutUint32(frame[correlationOffset:], c.correlation)
	if err := c.conn.SetDeadline(time.Now().Add(answerTimeout)); err != nil {
		return nil, err
	}
	if _, err := c.conn.Write(frame); err != nil {
		return nil, err
	}
	var size [4]byte
	if _, err := io.ReadFull(c.in, size[:]); err != nil {
		return nil, fmt.Errorf("no answer: %w", err)
	}
	payload := make([]byte, binary.BigEndian.Uint32(size[:]))
	if _, err := io.ReadFull(c.in, payload); err != nil {
		return nil, fmt.Errorf("half an answer: %w", err)
	}
	if len(payload) < 4 || binary.BigEndian.Uint32(payload) != c.correlation {
		return nil, fmt.Errorf("an answer to another request than the one sent")
	}
	return payload, nil
}

// detach returns a descriptor of the connection that Go's own poller does not watch.
func (c *client) detach() (fd int, err error) {
	raw, err := c.socket.SyscallConn()
	if err != nil {
		return -1, err
	}
	controlErr := raw.Control(func(watched uintptr) { fd, err = syscall.Dup(int(watched)) })
	if controlErr != nil {
		return -1, controlErr
	}
	if err != nil {
		return -1, err
	}
	// Not the TLS connection, which would tell the server that it ends.
	c.socket.Close()
	if c.seam != nil {
		c.seam.isDetached = true
	}
	return fd, syscall.SetNonblock(fd, true)
}

// retry repeats a call while it returns a temporary error code.
func retry(what string, call func() (int16, error)) error {
	deadline := time.Now().Add(retryTime)
	for {
		code, err := call()
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", what, err)
		case code == codeNone:
			return nil
		case !isRetriable(code) && code != codeLeaderNotAvailable && code != codeUnknownTopicOrPartition:
			return fmt.Errorf("%s: error %d", what, code)
		case time.Now().After(deadline):
			return fmt.Errorf("%s: still error %d after %v", what, code, retryTime)
		}
		time.Sleep(retryPause)
	}
}

// findCoordinators looks up the groups' coordinators, as clients do first: this makes a new Kafka
// create the offsets topic. The result is ignored, because kload keeps its address.
func (c *client) findCoordinators(groups []string) error {
	return retry("find the coordinator", func() (int16, error) {
		payload, err := c.roundTrip(encodeFindCoordinator(groups))
		if err != nil {
			return 0, err
		}
		return decodeFindCoordinator(payload)
	})
}

// ensureTopic creates the topic if it is missing and returns it when every partition has a
// leader. With partitions 0 the topic must exist, with any number of partitions.
func (c *client) ensureTopic(name string, partitions int) (topic, error) {
	if partitions > 0 {
		payload, err := c.roundTrip(encodeCreateTopics(name, partitions))
		if err != nil {
			return topic{}, err
		}
		code, message, err := decodeCreateTopics(payload)
		if err != nil {
			return topic{}, err
		}
		if code != codeNone && code != codeTopicAlreadyExists {
			return topic{}, fmt.Errorf("create topic %s: error %d %s", name, code, message)
		}
	}
	found, err := c.findTopic(name)
	if err == nil && partitions > 0 && found.partitions != partitions {
		err = fmt.Errorf("topic %s has %d partitions, not %d", name, found.partitions, partitions)
	}
	return found, err
}

// growTopic increases the number of partitions of a topic.
func (c *client) growTopic(name string, partitions int) error {
	payload, err := c.roundTrip(encodeCreatePartitions(name, partitions))
	if err != nil {
		return err
	}
	code, message, err := decodeCreatePartitions(payload)
	if err == nil && code != codeNone {
		err = fmt.Errorf("grow topic %s: error %d %s", name, code, message)
	}
	return err
}

func (c *client) findTopic(name string) (found topic, err error) {
	err = retry("metadata of topic "+name, func() (int16, error) {
		payload, err := c.roundTrip(encodeMetadata(name))
		if err != nil {
			return 0, err
		}
		var code int16
		found, code, err = decodeMetadata(payload)
		return code, err
	})
	return found, err
}

func (c *client) describe(group string) (description, error) {
	payload, err := c.roundTrip(encodeDescribe(group))
	if err != nil {
		return description{}, err
	}
	return decodeDescribe(payload)
}
