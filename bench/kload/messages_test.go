package main

import (
	"encoding/hex"
	"reflect"
	"testing"
)

// answer puts the header of an answer before a body that Kafka's own codec has written.
func answer(t *testing.T, body string) []byte {
	t.Helper()
	b, err := hex.DecodeString("00000001" + "00" + body)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

const (
	beatFilled = "0000a5f900020972616e67652d35390c636f6e73756d65722d36300000bd4a0000bcc401038f081090e5fa" +
		"9be20d639155d39296790300010e84000095e8009e7bef88ee7b1d05e9cea062bbf54a73030000d5580001840" +
		"0000000"
	beatMinimal = "00000000000000000000000000000000ff00"
	// Throttle, no error, member "m", epoch 7, interval 5000, an assignment of no topic.
	beatEmpty = "0000000000000002" + "6d" + "00000007" + "00001388" + "01" + "01" + "00" + "00"
)

func TestDecodeHeartbeat(t *testing.T) {
	cases := map[string]beat{
		beatFilled: {
			code: 2, message: "range-59", epoch: 48458, intervalMs: 48324, assigned: true,
			partitions: []int32{69252, 38376, 54616, 99328},
		},
		beatMinimal: {},
		beatEmpty:   {epoch: 7, intervalMs: 5000, assigned: true, partitions: []int32{}},
	}
	for body, want := range cases {
		got, err := decodeHeartbeat(answer(t, body))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v; want %+v", body, got, err, want)
		}
	}
}

func TestAnAnswerThatEndsEarlyIsAnError(t *testing.T) {
	whole := answer(t, beatFilled)
	for size := 5; size < len(whole)-1; size++ {
		if _, err := decodeHeartbeat(whole[:size]); err == nil && size < len(whole)-3 {
			t.Errorf("no error after %d of %d bytes", size, len(whole))
		}
	}
}

func TestDecodeCommit(t *testing.T) {
	byName := "0000493a030d756e69666f726d2d313433350300016f92004f000000fd46005000000b72616e67652d3134" +
		"3336030000718f00410000008b7d0061000000"
	byID := "000139ca03f549a0a86ef4e3f5bd55842d21b6cba7030000ff1300620000011dec00610000f3f36014ab81" +
		"c9eb6344ae49b7167a3e030000a7d300490000005353002b000000"
	for version, c := range map[int16]struct {
		body string
		want []int16
	}{9: {byName, []int16{79, 80, 65, 97}}, 10: {byID, []int16{98, 97, 73, 43}}} {
		got, err := decodeCommit(answer(t, c.body), version)
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("v%d: %v, %v", version, got, err)
		}
	}
}

func TestDecodeFindCoordinatorGivesTheFirstError(t *testing.T) {
	body := "0000d044030c6f72646572732d31373833000043f30e7061796d656e74732d3137383400014449005b0e636f6e" +
		"73756d65722d31373835000d756e69666f726d2d31373836000031e00e636f6e73756d65722d313738370000" +
		"1a0900060e7061796d656e74732d313738380000"
	if code, err := decodeFindCoordinator(answer(t, body)); code != 91 || err != nil {
		t.Errorf("%d, %v", code, err)
	}
}

func TestEncodeCommitSaysWhereTheOffsetsStand(t *testing.T) {
	for _, version := range []int16{9, 10} {
		frame, at := encodeCommit("g", topic{name: "t"}, version, []int32{3, 4})
		for i, partition := range []byte{3, 4} {
			if frame[at[i]-1] != partition || frame[at[i]+8] != 0xff {
				t.Errorf("v%d: offset %d is not between its partition and its leader epoch", version, i)
			}
		}
	}
}
