// SPDX-License-Identifier: BSD-2-Clause

// This program fills and checks filters with go-zero itself, in a Redis at
// ADDRESS, for t/golden/foreign:
//
//	go_zero write ADDRESS KEY BITS < keys   fills a filter
//	go_zero check ADDRESS KEY BITS < keys   prints 0 or 1 for each key
//
// Keys are lines.
package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"

	"github.com/zeromicro/go-zero/core/bloom"
	"github.com/zeromicro/go-zero/core/stores/redis"
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	bits, err := strconv.ParseUint(os.Args[4], 10, 64)
	must(err)

	filter := bloom.New(redis.New(os.Args[2]), os.Args[3], uint(bits))
	in := bufio.NewScanner(os.Stdin)

	for in.Scan() {
		key := append([]byte{}, in.Bytes()...)

		if os.Args[1] == "write" {
			must(filter.Add(key))
			continue
		}

		found, err := filter.Exists(key)
		must(err)

		if found {
			fmt.Print("1")
		} else {
			fmt.Print("0")
		}
	}

	must(in.Err())

	if os.Args[1] == "check" {
		fmt.Println()
	}
}
