// Package goprogram is what the programs of the Go clients share: options, commands and events. They
// are those of the Java ConsumerProgram, as far as the clients have them.
package goprogram

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

// Options say how a member is to be; empty where it has none.
type Options struct {
	Bootstrap, Group, Topics, Pattern, InstanceID, ClientID, Protocol string
	// Of a classic member: with commas between them.
	Strategies         string
	Session, Heartbeat time.Duration
}

// ReadOptions takes them from the command line.
func ReadOptions(clientID, protocol string) Options {
	var given Options
	flag.StringVar(&given.Bootstrap, "bootstrap", "", "HOST:PORT")
	flag.StringVar(&given.Group, "group", "", "group id")
	flag.StringVar(&given.Topics, "topics", "", "names, with commas between them")
	flag.StringVar(&given.Pattern, "pattern", "", "RE2 in place of names")
	flag.StringVar(&given.InstanceID, "instance-id", "", "for a static member")
	flag.StringVar(&given.ClientID, "client-id", clientID, "client id")
	flag.StringVar(&given.Protocol, "protocol", protocol, "consumer or classic")
	flag.StringVar(&given.Strategies, "strategies", "range", "of a classic member, with commas")
	sessionMs := flag.Int("session-ms", 6000, "session timeout of a classic member")
	heartbeatMs := flag.Int("heartbeat-ms", 300, "time between heartbeats of a classic member")
	flag.Parse()
	given.Session = time.Duration(*sessionMs) * time.Millisecond
	given.Heartbeat = time.Duration(*heartbeatMs) * time.Millisecond
	return given
}

// ReadCommands gives the lines of standard input as they come; at its end "close".
func ReadCommands() <-chan string {
	commands := make(chan string)
	go func() {
		lines := bufio.NewScanner(os.Stdin)
		for lines.Scan() {
			commands <- strings.TrimSpace(lines.Text())
		}
		commands <- "close"
	}()
	return commands
}

// Name is that of a partition, as orders-0.
func Name(topic string, partition int32) string {
	return fmt.Sprintf("%s-%d", topic, partition)
}

// Fields of an event.
type Fields map[string]any

var printing sync.Mutex

// Emit prints an event: a JSON object on a line of its own.
func Emit(event string, more Fields) {
	line := Fields{"event": event}
	for field, value := range more {
		line[field] = value
	}
	text, err := json.Marshal(line)
	if err != nil {
		panic(err)
	}
	printing.Lock()
	defer printing.Unlock()
	fmt.Println(string(text))
}

// Fail ends the program for a mistake in its options.
func Fail(reason any) {
	fmt.Fprintln(os.Stderr, reason)
	os.Exit(2)
}
