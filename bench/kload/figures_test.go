package main

import (
	"math"
	"os"
	"testing"
	"time"
)

func TestBucketsAreInOrderAndNarrow(t *testing.T) {
	last := -1
	for v := 1.0; v < 1e12; v *= 1.003 {
		d := time.Duration(v)
		bucket := bucketOf(d)
		top := bucketTop(bucket)
		if bucket < last || top < d || float64(top-d) > 0.01*float64(d)+1 {
			t.Fatalf("%v is in bucket %d, whose top is %v", d, bucket, top)
		}
		last = bucket
	}
	if bucket := bucketOf(math.MaxInt64); bucket >= len(histogram{}.buckets) {
		t.Errorf("the longest duration has no bucket: %d", bucket)
	}
}

func TestQuantiles(t *testing.T) {
	var low, high histogram
	for i := 1; i <= 500; i++ {
		low.add(time.Duration(i) * time.Millisecond)
		high.add(time.Duration(i+500) * time.Millisecond)
	}
	low.merge(&high)
	for q, want := range map[float64]float64{0.5: 500, 0.9: 900, 0.99: 990, 0.999: 999, 1: 1000} {
		if got := toMs(low.quantile(q)); math.Abs(got-want) > want/100 {
			t.Errorf("quantile %v is %v ms, not about %v", q, got, want)
		}
	}
	if toMs(low.max) != 1000 || low.count != 1000 {
		t.Errorf("max %v of %d", low.max, low.count)
	}
	if (&histogram{}).milliseconds() != nil {
		t.Error("latency of nothing")
	}
}

func TestProcessFigures(t *testing.T) {
	var own processes
	if err := own.Set("x"); err == nil {
		t.Error("no number, no error")
	}
	own = nil
	if err := own.Set("1,2"); err != nil || len(own) != 2 {
		t.Errorf("%v, %v", own, err)
	}
	own = processes{os.Getpid()}
	for before := ownCPUSeconds(); ownCPUSeconds() < before+0.05; {
	}
	cpu, err := own.cpuSeconds()
	if err != nil || math.Abs(cpu-ownCPUSeconds()) > 0.04 {
		t.Errorf("%v s, not %v s; %v", cpu, ownCPUSeconds(), err)
	}
	if rss, err := own.rssBytes(); err != nil || rss < 1<<20 {
		t.Errorf("%d bytes, %v", rss, err)
	}
}
