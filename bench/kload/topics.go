package main

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// runTopics creates topics given as NAME=PARTITIONS; one that exists with as many is left alone.
func runTopics(o options) (report, error) {
	admin, err := dial(o.addr)
	if err != nil {
		return nil, err
	}
	defer admin.conn.Close()
	created := map[string]any{}
	for _, word := range o.words {
		name, count, _ := strings.Cut(word, "=")
		partitions, err := strconv.Atoi(count)
		if err != nil || partitions < 1 || name == "" {
			return nil, fmt.Errorf("a topic is given as NAME=PARTITIONS, not as %q", word)
		}
		t, err := admin.ensureTopic(name, partitions)
		if err != nil {
			return nil, err
		}
		created[name] = map[string]any{"id": hex.EncodeToString(t.id[:]), "partitions": t.partitions}
	}
	return report{"topics": created}, nil
}
