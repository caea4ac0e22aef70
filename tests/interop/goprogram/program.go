// Package goprogram is what the programs of the Go clients share: options, commands and events. They
// are those of the Java ConsumerProgram, as far as the clients have them.
package goprogram

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
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
	Security           Security
}

// Security is how a member is to show who it is, and to know its server: tests/interop/security.py.
type Security struct {
	Protocol    string `json:"protocol"`
	CA          string `json:"ca"`
	Certificate string `json:"certificate"`
	Mechanism   string `json:"mechanism"`
	User        string `json:"user"`
	Password    string `json:"password"`
	TokenFile   string `json:"token_file"`
}

// TLS is nil where the server is not to be spoken to by TLS.
func (given Security) TLS() *tls.Config {
	if !strings.HasSuffix(given.Protocol, "SSL") {
		return nil
	}
	trusted := x509.NewCertPool()
	text, err := os.ReadFile(given.CA)
	if err != nil || !trusted.AppendCertsFromPEM(text) {
		Fail("no certificates in " + given.CA)
	}
	config := &tls.Config{RootCAs: trusted}
	if given.Certificate != "" {
		own, err := tls.LoadX509KeyPair(given.Certificate, given.Certificate)
		if err != nil {
			Fail(err)
		}
		config.Certificates = []tls.Certificate{own}
	}
	return config
}

// Token is what the file of the token holds now.
func (given Security) Token() (string, error) {
	text, err := os.ReadFile(given.TokenFile)
	return string(text), err
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
	security := flag.String("security", "{}", "JSON")
	sessionMs := flag.Int("session-ms", 6000, "session timeout of a classic member")
	heartbeatMs := flag.Int("heartbeat-ms", 300, "time between heartbeats of a classic member")
	flag.Parse()
	if err := json.Unmarshal([]byte(*security), &given.Security); err != nil {
		Fail(err)
	}
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

// Seeds are the addresses to begin with.
func (given Options) Seeds() []string {
	return strings.Split(given.Bootstrap, ",")
}

// Spans are the first and last offset of each run of records, by partition.
type Spans map[string][][2]int64

// Add takes in the next record of a partition.
func (spans Spans) Add(name string, offset int64) {
	runs := spans[name]
	if last := len(runs) - 1; last >= 0 && runs[last][1]+1 == offset {
		runs[last][1] = offset
		return
	}
	spans[name] = append(runs, [2]int64{offset, offset})
}

// Fields of an event.
type Fields map[string]any

var printing sync.Mutex

// Emit prints an event: a JSON object on a line of its own.
func Emit(event string, more Fields) {
	line := Fields{"event": event, "at_ms": time.Now().UnixMilli()}
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
