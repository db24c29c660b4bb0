// SPDX-License-Identifier: BSD-2-Clause

// Go's bits-and-blooms as bench/filter.c describes it.

package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/bits-and-blooms/bloom"
)

func makeKey(key []byte, x uint64) {
	binary.LittleEndian.PutUint64(key, x)
	binary.LittleEndian.PutUint64(key[8:], x*0x9e3779b97f4a7c15)
}

func main() {
	n, _ := strconv.ParseUint(os.Args[1], 10, 64)
	rate, _ := strconv.ParseFloat(os.Args[2], 64)

	filter := bloom.NewWithEstimates(uint(n), rate)
	key := make([]byte, 16)

	for i := uint64(0); i < n; i++ {
		makeKey(key, i)
		filter.Add(key)
	}

	fmt.Println(filter.Cap())

	state := uint64(1)
	in := bufio.NewScanner(os.Stdin)

	for in.Scan() {
		var hits, count uint64
		fmt.Sscanf(in.Text(), "%d %d", &hits, &count)
		keys := make([]byte, 16*count)

		for i := uint64(0); i < count; i++ {
			state = state*6364136223846793005 + 1442695040888963407
			x := state >> 33
			if hits == 1 {
				x %= n
			} else {
				x += n
			}
			makeKey(keys[16*i:], x)
		}

		found := 0
		start := time.Now()

		for i := uint64(0); i < count; i++ {
			if filter.Test(keys[16*i : 16*i+16]) {
				found++
			}
		}

		ns := float64(time.Since(start).Nanoseconds()) / float64(count)
		fmt.Println(ns, found)
	}
}
