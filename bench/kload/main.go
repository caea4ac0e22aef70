// kload drives a server of the Kafka protocol, Kafka or Muster alike, and prints its measurements
// as one JSON object. It knows only the server's address and, if given, its process id.
//
//	kload SUBCOMMAND -addr HOST:PORT [options]
//	kload SUBCOMMAND -addr HOST:PORT -tls-ca FILE [-sasl MECHANISM -sasl-user NAME ...] [options]
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

// options of all subcommands; each subcommand's flags say which it accepts.
type options struct {
	addr            address
	server          processes
	topic           string
	partitions      int
	topicPartitions int
	members         int
	groups          int
	conns           int
	threads         int
	inFlight        int
	rate            int
	hasRate         bool
	version         int
	rounds          int
	grownBy         int
	count           int
	kind            string
	group           string
	warmUp          time.Duration
	duration        time.Duration
	pause           time.Duration
	hold            bool
	words           []string
}

func (o options) engine() engineConfig {
	return engineConfig{
		threads: o.threads, inFlight: o.inFlight, rate: o.rate, warmUp: o.warmUp,
		duration: o.duration, server: o.server,
	}
}

// subcommand has its own defaults; a zero value means that it does not accept the option.
type subcommand struct {
	run      func(options) (report, error)
	says     string
	defaults options
}

var subcommands = map[string]subcommand{
	"heartbeats": {runHeartbeats, "steady heartbeats of settled groups", options{
		topic: "kload", members: 1000, groups: 10, conns: 32, threads: 1, inFlight: 1,
		hasRate: true, duration: 4 * time.Second,
	}},
	"commits": {runCommits, "OffsetCommit of groups without members", options{
		topic: "kload-commits", partitions: 1, topicPartitions: 100, groups: 32, conns: 32, threads: 1,
		inFlight: 1, version: 9, duration: 4 * time.Second,
	}},
	"joins": {runJoins, "new members joining one group", options{
		topic: "kload", members: 1000, conns: 32, threads: 1, inFlight: 1, rounds: 1,
	}},
	"converge": {runConverge, "one joins, then one leaves, a group of members with their own connections",
		options{topic: "kload", members: 1000, rounds: 1, warmUp: 2 * time.Second, pause: time.Second}},
	"idle": {runIdle, "a settled group of members with their own connections", options{
		topic: "kload", members: 1000, warmUp: 2 * time.Second, duration: 10 * time.Second,
	}},
	"memory": {runMemory, "the server's resident memory by settled member", options{
		topic: "kload", members: 50_000, groups: 500, conns: 32,
	}},
	"grow": {runGrow, "the topic of a settled group grows, members with their own connections", options{
		topic: "kload-grow", partitions: 100, members: 10, grownBy: 900, rounds: 1,
		warmUp: 2 * time.Second, pause: time.Second,
	}},
	"member-commits": {runMemberCommits, "OffsetCommit of members, classic, with their own connections",
		options{
			topic: "kload-members", partitions: 1000, members: 1000, groups: 1, threads: 1, inFlight: 1,
			duration: 4 * time.Second,
		}},
	"moves": {runMoves, "members of a group, classic, that is moved meanwhile; see moves.go", options{
		topic: "kload-moves", partitions: 100, members: 100, pause: 100 * time.Millisecond, group: "kload",
	}},
	"asks": {runAsks, "requests of one -kind, as they go through a relay", options{
		topic: "kload-asks", partitions: 4, conns: 1, threads: 1, inFlight: 1, group: "kload",
		kind: "metadata", duration: 4 * time.Second,
	}},
	"connects": {runConnects, "new connections with one ApiVersions each", options{
		conns: 16, duration: 4 * time.Second,
	}},
	"topics": {runTopics, "create topics, given as NAME=PARTITIONS", options{}},
}

func main() {
	if len(os.Args) < 2 {
		fail(usage())
	}
	name := os.Args[1]
	command, ok := subcommands[name]
	if !ok {
		fail(usage())
	}
	o := parse(name, command.defaults, os.Args[2:])
	result, err := command.run(o)
	if err != nil {
		fail(fmt.Sprintf("kload %s: %v", name, err))
	}
	if result != nil {
		result.print()
	}
}

func usage() string {
	lines := []string{"usage: kload SUBCOMMAND -addr HOST:PORT [options], where SUBCOMMAND is one of"}
	for _, name := range slices.Sorted(maps.Keys(subcommands)) {
		lines = append(lines, fmt.Sprintf("  %-14s %s", name, subcommands[name].says))
	}
	return strings.Join(lines, "\n")
}

func fail(message string) {
	fmt.Fprintln(os.Stderr, message)
	os.Exit(1)
}

func (r report) print() {
	text, err := json.Marshal(r)
	if err != nil {
		fail(err.Error())
	}
	fmt.Println(string(text))
}

// parse reads the common options and those for which the subcommand has a default.
func parse(name string, o options, arguments []string) options {
	flags := flag.NewFlagSet("kload "+name, flag.ExitOnError)
	hostPort := flags.String("addr", "127.0.0.1:9092", "address of the server")
	var security securityFlags
	security.define(flags)
	flags.Var(&o.server, "pid", "process ids of the server, for its CPU time and memory")
	if o.topic != "" {
		flags.StringVar(&o.topic, "topic", o.topic, "topic of the members or offsets")
	}
	if o.topicPartitions > 0 {
		flags.IntVar(&o.partitions, "partitions", o.partitions, "partitions in each commit")
		flags.IntVar(&o.topicPartitions, "topic-partitions", o.topicPartitions,
			"create the topic with so many; 0: it is there")
		flags.IntVar(&o.version, "version", o.version, "9: topics by name; 10: by id")
	} else if o.topic != "" {
		flags.IntVar(&o.partitions, "partitions", o.partitions,
			"create the topic with so many; 0: it is there")
	}
	count(flags, &o.members, "members", "number of members")
	count(flags, &o.groups, "groups", "number of groups")
	count(flags, &o.conns, "conns", "number of connections")
	count(flags, &o.threads, "threads", "threads that drive the connections")
	count(flags, &o.inFlight, "in-flight", "requests in flight on a connection")
	if o.hasRate {
		flags.IntVar(&o.rate, "rate", o.rate, "requests a second, of all; 0: as fast as answers arrive")
	}
	count(flags, &o.rounds, "rounds", "times that it is measured")
	count(flags, &o.grownBy, "grown-by", "partitions that come on top")
	seconds(flags, &o.duration, "seconds", "seconds to measure", o.duration > 0)
	seconds(flags, &o.warmUp, "warm-up", "seconds of the same before it is measured",
		o.duration > 0 || o.pause > 0)
	seconds(flags, &o.pause, "pause", "seconds between two changes", o.pause > 0)
	if o.group != "" {
		flags.StringVar(&o.group, "group", o.group, "id of the group")
	}
	if o.kind != "" {
		flags.StringVar(&o.kind, "kind", o.kind, "what is asked: "+kindNames())
		flags.IntVar(&o.count, "count", o.count, "requests of a connection, instead of seconds")
	}
	if name == "memory" {
		flags.BoolVar(&o.hold, "hold", false, "keep the members until standard input ends")
	}
	_ = flags.Parse(arguments) // It exits by itself.
	var err error
	if o.addr, err = security.secure(*hostPort); err != nil {
		fail(fmt.Sprintf("kload %s: %v", name, err))
	}
	o.words = flags.Args()
	if name != "topics" && len(o.words) > 0 {
		fail(fmt.Sprintf("kload %s: what is %q?", name, o.words[0]))
	}
	return o
}

// count defines a flag if the subcommand has a default for it, and rejects values below one.
func count(flags *flag.FlagSet, value *int, name, says string) {
	if *value == 0 {
		return
	}
	flags.Func(name, fmt.Sprintf("%s (default %d)", says, *value), func(text string) error {
		n, err := fmt.Sscan(text, value)
		if err != nil || n != 1 || *value < 1 {
			return fmt.Errorf("must be a number above 0")
		}
		return nil
	})
}

func seconds(flags *flag.FlagSet, value *time.Duration, name, says string, isTaken bool) {
	if !isTaken {
		return
	}
	says = fmt.Sprintf("%s (default %g)", says, value.Seconds())
	flags.Func(name, says, func(text string) error {
		var amount float64
		if _, err := fmt.Sscan(text, &amount); err != nil || amount < 0 {
			return fmt.Errorf("must be a number of seconds")
		}
		*value = time.Duration(amount * float64(time.Second))
		return nil
	})
}
