package main

import (
	"fmt"
	"time"
)

// runGrow measures how long a settled group takes after its topic has got more partitions. Each
// round has its own group and topic. The time starts with the response to the request, when the
// growth is known.
func runGrow(o options) (report, error) {
	var grown []float64
	var doubled int64
	for round := range o.rounds {
		one := o
		one.topic = fmt.Sprintf("%s-%s-%d", o.topic, groupNames(1)[0], round)
		took, c, err := growOnce(one)
		if err != nil {
			return nil, err
		}
		grown = append(grown, toMs(took))
		doubled += c.tracker.tally().doubled
	}
	return report{
		"members": o.members, "partitions": o.partitions, "grown_by": o.grownBy, "rounds": o.rounds,
		"grow_ms": grown, "double_owned": doubled,
	}, nil
}

func growOnce(o options) (time.Duration, *crowd, error) {
	c, err := newCrowd(o)
	if err != nil {
		return 0, nil, err
	}
	if _, err := c.gather(o.members); err != nil {
		return 0, nil, err
	}
	time.Sleep(o.warmUp)
	partitions := o.partitions + o.grownBy
	took, err := c.converge(o.members, func() (time.Time, error) {
		c.tracker.grow(partitions)
		err := c.admin.growTopic(o.topic, partitions)
		return time.Now(), err
	})
	if err != nil {
		return 0, nil, err
	}
	time.Sleep(o.pause)
	c.disperse()
	return took, c, nil
}
