package main

// runJoins measures new members that join one group, in several rounds with a new group each.
func runJoins(o options) (report, error) {
	total := &outcome{window: &window{}, errors: codes{}}
	var rates []float64
	for range o.rounds {
		result, err := joinOnce(o)
		if err != nil {
			return nil, err
		}
		rates = append(rates, round(float64(result.ops)/result.window.seconds))
		total.add(result)
	}
	r := report{"members": o.members, "conns": o.conns, "rounds": o.rounds, "rates": rates}
	r.addRate(total.ops, total.window, &total.latency, total.errors)
	return r, nil
}

func joinOnce(o options) (*outcome, error) {
	p, err := newPopulation(o, 1)
	if err != nil {
		return nil, err
	}
	// Create the group first: a member of its own joins, and waits until the coordinator is loaded.
	if err := p.joinFirst(); err != nil {
		return nil, err
	}
	loads := make([]load, len(p.clients))
	for i, members := range p.byConn {
		loads[i] = newJoinLoad(members)
	}
	config := o.engine()
	config.warmUp, config.duration = 0, 0
	result, err := runEngine(p.clients, loads, config)
	if err != nil {
		return nil, err
	}
	return result, p.leave()
}

func (p *population) joinFirst() error {
	first := newMember(p.groups[0][0].group, p.topic)
	if err := stepUntilAcked(first, p.clients[0]); err != nil {
		return err
	}
	return first.leave(p.clients[0])
}

func (o *outcome) add(other *outcome) {
	o.ops += other.ops
	o.latency.merge(&other.latency)
	o.errors.merge(other.errors)
	o.window.seconds += other.window.seconds
	o.window.serverCPU += other.window.serverCPU
	o.window.ownCPU += other.window.ownCPU
	o.window.hasServers = other.window.hasServers
}

// joinLoad sends the join of each of its members once.
type joinLoad struct {
	members       []*member
	frames        [][]byte
	sent, arrived int
}

func newJoinLoad(members []*member) *joinLoad {
	j := &joinLoad{members: members}
	for _, m := range members {
		j.frames = append(j.frames, m.request())
	}
	return j
}

func (j *joinLoad) next() []byte {
	if j.sent == len(j.frames) {
		return nil
	}
	j.sent++
	return j.frames[j.sent-1]
}

func (j *joinLoad) answered(payload []byte) (int16, error) {
	b, err := decodeHeartbeat(payload)
	if err == nil {
		j.members[j.arrived].apply(b)
		j.arrived++
	}
	return b.code, err
}
