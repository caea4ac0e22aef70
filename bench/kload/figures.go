package main

import (
	"math"
	"math/bits"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// histogram counts durations in buckets whose width is below 1 % of their value.
type histogram struct {
	buckets [64 << subBits]int64
	count   int64
	max     time.Duration
}

const subBits = 7

func bucketOf(d time.Duration) int {
	v := uint64(d)
	if v < 1<<subBits {
		return int(v)
	}
	shift := bits.Len64(v) - 1 - subBits
	return (shift+1)<<subBits + int(v>>shift) - 1<<subBits
}

// bucketTop is the longest duration that falls into a bucket.
func bucketTop(bucket int) time.Duration {
	if bucket < 1<<subBits {
		return time.Duration(bucket)
	}
	shift := bucket>>subBits - 1
	low := uint64(bucket&(1<<subBits-1)) + 1<<subBits
	return time.Duration((low+1)<<shift - 1)
}

func (h *histogram) add(d time.Duration) {
	h.buckets[bucketOf(max(d, 0))]++
	h.count++
	h.max = max(h.max, d)
}

func (h *histogram) merge(other *histogram) {
	for i, n := range other.buckets {
		h.buckets[i] += n
	}
	h.count += other.count
	h.max = max(h.max, other.max)
}

func (h *histogram) quantile(q float64) time.Duration {
	rank := int64(math.Ceil(q * float64(h.count)))
	for i, n := range h.buckets {
		if rank -= n; rank <= 0 && n > 0 {
			return min(bucketTop(i), h.max)
		}
	}
	return h.max
}

func (h *histogram) milliseconds() map[string]float64 {
	if h.count == 0 {
		return nil
	}
	return map[string]float64{
		"p50":  toMs(h.quantile(0.5)),
		"p90":  toMs(h.quantile(0.9)),
		"p99":  toMs(h.quantile(0.99)),
		"p999": toMs(h.quantile(0.999)),
		"max":  toMs(h.max),
	}
}

func toMs(d time.Duration) float64 { return round(float64(d) / float64(time.Millisecond)) }

// round drops insignificant digits.
func round(v float64) float64 { return math.Round(v*10_000) / 10_000 }

// codes counts responses by Kafka error code.
type codes map[int16]int64

func (c codes) named() map[string]int64 {
	named := map[string]int64{}
	for code, n := range c {
		named[strconv.Itoa(int(code))] = n
	}
	return named
}

func (c codes) merge(other codes) {
	for code, n := range other {
		c[code] += n
	}
}

// processes are the server's; CPU time and memory are read from /proc. The list may be empty.
type processes []int

func (p *processes) String() string { return "" }

// Set parses process ids separated by commas.
func (p *processes) Set(text string) error {
	for _, word := range strings.Split(text, ",") {
		pid, err := strconv.Atoi(word)
		if err != nil {
			return err
		}
		*p = append(*p, pid)
	}
	return nil
}

const clockTicks = 100 // USER_HZ, the same on every Linux that Go runs on

// cpuSeconds is the user and system time of all threads of the processes so far.
func (p processes) cpuSeconds() (float64, error) {
	var ticks int64
	for _, pid := range p {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil {
			return 0, err
		}
		text := string(stat)
		fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
		for _, field := range fields[11:13] {
			n, err := strconv.ParseInt(field, 10, 64)
			if err != nil {
				return 0, err
			}
			ticks += n
		}
	}
	return float64(ticks) / clockTicks, nil
}

// rssBytes is the resident memory of the processes.
func (p processes) rssBytes() (int64, error) {
	var bytes int64
	for _, pid := range p {
		statm, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
		if err != nil {
			return 0, err
		}
		pages, err := strconv.ParseInt(strings.Fields(string(statm))[1], 10, 64)
		if err != nil {
			return 0, err
		}
		bytes += pages * int64(os.Getpagesize())
	}
	return bytes, nil
}

// ownCPUSeconds is the CPU time of kload itself: near one second per second and thread, the
// generator is the bottleneck.
func ownCPUSeconds() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds()
}

// window is a measurement interval, with the CPU that server and generator used in it.
type window struct {
	server     processes
	started    time.Time
	serverCPU  float64
	ownCPU     float64
	seconds    float64
	hasServers bool
}

func openWindow(server processes) (*window, error) {
	cpu, err := server.cpuSeconds()
	return &window{
		server: server, started: time.Now(), serverCPU: cpu, ownCPU: ownCPUSeconds(),
		hasServers: len(server) > 0,
	}, err
}

func (w *window) close() error {
	w.seconds = time.Since(w.started).Seconds()
	w.ownCPU = ownCPUSeconds() - w.ownCPU
	cpu, err := w.server.cpuSeconds()
	w.serverCPU = cpu - w.serverCPU
	return err
}

// report is what a subcommand prints, as one JSON object.
type report map[string]any

// addRate adds the figures of every measurement of many operations.
func (r report) addRate(ops int64, w *window, latency *histogram, errors codes) {
	r["ops"] = ops
	r["seconds"] = round(w.seconds)
	r["rate"] = round(float64(ops) / w.seconds)
	r["errors"] = errors.named()
	if latency != nil {
		r["latency_ms"] = latency.milliseconds()
	}
	r.addCPU(w)
	if ops > 0 {
		r["client_cpu_us_per_op"] = round(w.ownCPU * 1e6 / float64(ops))
		if w.hasServers {
			r["server_cpu_us_per_op"] = round(w.serverCPU * 1e6 / float64(ops))
		}
	}
}

func (r report) addCPU(w *window) {
	r["client_cpu_seconds"] = round(w.ownCPU)
	if w.hasServers {
		r["server_cpu_seconds"] = round(w.serverCPU)
	}
}
