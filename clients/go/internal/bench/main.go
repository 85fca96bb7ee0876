// Command bench measures the client on one connection against a running server and prints one JSON line.
//
//	TURNKEEP_ADDR=127.0.0.1:9009 TURNKEEP_TOKEN=… go run ./internal/bench
//
// Appends are durable, of 1 KiB and all different, submitted with a window in flight by one goroutine;
// reads are GET_LAST of 64 turns with payload, by a few goroutines. Only answered requests count.
package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	turnkeep "turnkeep.dev/go"
)

const (
	payloadBytes = 1024
	pageTurns    = 64
)

type settings struct {
	addr, token string
	window      int
	readers     int
	rounds      int
	round       time.Duration
	gcPercent   int
}

type result struct {
	Client        string  `json:"client"`
	AppendsPerSec float64 `json:"appends_per_second"`
	ReadsPerSec   float64 `json:"pages_per_second"`
	Window        int     `json:"appends_in_flight"`
	Readers       int     `json:"reads_in_flight"`
	PayloadBytes  int     `json:"payload_bytes"`
	Rounds        int     `json:"rounds"`
	GCPercent     int     `json:"gc_percent"`
}

func main() {
	var s settings
	flag.StringVar(&s.addr, "addr", os.Getenv("TURNKEEP_ADDR"), "address of the binary protocol")
	flag.StringVar(&s.token, "token", os.Getenv("TURNKEEP_TOKEN"), "the server's token")
	flag.IntVar(&s.window, "window", 512, "appends in flight")
	flag.IntVar(&s.readers, "readers", 16, "reads in flight")
	flag.IntVar(&s.rounds, "rounds", 5, "rounds, of which the median counts")
	flag.DurationVar(&s.round, "round", 2*time.Second, "length of a round")
	flag.IntVar(&s.gcPercent, "gc", 100, "GOGC; a larger value stands for a program with a larger heap")
	profile := flag.String("cpuprofile", "", "write a CPU profile to this file")
	flag.Parse()
	if *profile != "" {
		file, err := os.Create(*profile)
		if err != nil {
			log.Fatal(err)
		}
		if err := pprof.StartCPUProfile(file); err != nil {
			log.Fatal(err)
		}
		defer pprof.StopCPUProfile()
	}
	measured, err := run(context.Background(), s)
	if err != nil {
		log.Print(err)
		return
	}
	line, err := json.Marshal(measured)
	if err != nil {
		log.Print(err)
		return
	}
	fmt.Println(string(line))
}

func run(ctx context.Context, s settings) (result, error) {
	debug.SetGCPercent(s.gcPercent)
	measured := result{Client: "go", Window: s.window, Readers: s.readers, PayloadBytes: payloadBytes, Rounds: s.rounds,
		GCPercent: s.gcPercent}
	client, err := turnkeep.Dial(ctx, s.addr, turnkeep.WithToken(s.token), turnkeep.WithTag("bench-go"))
	if err != nil {
		return measured, err
	}
	defer client.Close()
	head, err := client.CreateContext(ctx, turnkeep.NewContext{})
	if err != nil {
		return measured, err
	}
	measured.AppendsPerSec, err = median(s, func() (float64, error) { return appends(ctx, client, head.Context, s) })
	if err != nil {
		return measured, err
	}
	measured.ReadsPerSec, err = median(s, func() (float64, error) { return reads(ctx, client, head.Context, s) })
	return measured, err
}

// median runs a warm-up and the rounds.
func median(s settings, round func() (float64, error)) (float64, error) {
	var rates []float64
	for range s.rounds + 1 {
		rate, err := round()
		if err != nil {
			return 0, err
		}
		rates = append(rates, rate)
	}
	rates = rates[1:]
	slices.Sort(rates)
	return rates[len(rates)/2], nil
}

// appends keeps a window of appends in flight and returns how many were acked per second.
func appends(ctx context.Context, client *turnkeep.Client, id turnkeep.ContextID, s settings) (float64, error) {
	payload := make([]byte, payloadBytes)
	window := make([]*turnkeep.PendingAppend, s.window)
	began := time.Now()
	acked := 0
	for sent := 0; time.Since(began) < s.round; sent++ {
		slot := &window[sent%s.window]
		if *slot != nil {
			if _, err := (*slot).Wait(ctx); err != nil {
				return 0, err
			}
			acked++
		}
		binary.LittleEndian.PutUint64(payload, uint64(began.UnixNano())+uint64(sent))
		var err error
		*slot, err = client.SubmitAppend(ctx, turnkeep.Append{Context: id, Turn: turnkeep.Msgpack("bench.Turn", 1, payload)})
		if err != nil {
			return 0, err
		}
	}
	elapsed := time.Since(began)
	for _, pending := range window {
		if pending == nil {
			continue
		}
		if _, err := pending.Wait(ctx); err != nil {
			return 0, err
		}
	}
	return float64(acked) / elapsed.Seconds(), nil
}

// reads lets a few goroutines read pages and returns how many came per second.
func reads(ctx context.Context, client *turnkeep.Client, id turnkeep.ContextID, s settings) (float64, error) {
	var pages atomic.Int64
	var readers sync.WaitGroup
	failures := make(chan error, s.readers)
	began := time.Now()
	for range s.readers {
		readers.Add(1)
		go func() {
			defer readers.Done()
			for time.Since(began) < s.round {
				turns, err := client.Last(ctx, id, pageTurns, turnkeep.Read{Payload: true})
				if err == nil && len(turns) != pageTurns {
					err = fmt.Errorf("a page has %d turns", len(turns))
				}
				if err != nil {
					failures <- err
					return
				}
				pages.Add(1)
			}
		}()
	}
	readers.Wait()
	elapsed := time.Since(began)
	select {
	case err := <-failures:
		return 0, err
	default:
		return float64(pages.Load()) / elapsed.Seconds(), nil
	}
}
