// SPDX-License-Identifier: BSD-2-Clause

// This program writes and checks filters with bits-and-blooms itself, for
// t/import/bits-and-blooms.t and t/golden/foreign:
//
//	write FORM M K FILE < keys    writes a filter of M bits and K hashes
//	check FORM FILE < keys        prints 0 or 1 for each key
//
// FORM is binary, little (binary with little-endian words), words (binary, with
// a set that is longer than the filter), json or std (json in the other
// base64).
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strconv"

	"github.com/bits-and-blooms/bitset"
	"github.com/bits-and-blooms/bloom"
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func number(text string) uint {
	n, err := strconv.ParseUint(text, 10, 64)
	must(err)
	return uint(n)
}

func keys(f func(key []byte)) {
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		f(in.Bytes())
	}
	must(in.Err())
}

func main() {
	form := os.Args[2]
	if form == "little" {
		bitset.LittleEndian()
	}
	if form == "std" {
		bitset.Base64StdEncoding()
	}
	isJSON := form == "json" || form == "std"

	if os.Args[1] == "write" {
		m, k := number(os.Args[3]), number(os.Args[4])
		filter := bloom.New(m, k)
		if form == "words" {
			filter = bloom.FromWithM(make([]uint64, (m+63)/64), m, k)
		}
		keys(func(key []byte) { filter.Add(key) })

		var out bytes.Buffer
		if isJSON {
			text, err := json.Marshal(filter)
			must(err)
			out.Write(text)
		} else {
			_, err := filter.WriteTo(&out)
			must(err)
		}
		must(os.WriteFile(os.Args[5], out.Bytes(), 0666))
		return
	}

	data, err := os.ReadFile(os.Args[3])
	must(err)
	filter := &bloom.BloomFilter{}
	if isJSON {
		must(json.Unmarshal(data, filter))
	} else {
		_, err = filter.ReadFrom(bytes.NewReader(data))
		must(err)
	}
	keys(func(key []byte) {
		if filter.Test(key) {
			fmt.Print("1")
		} else {
			fmt.Print("0")
		}
	})
	fmt.Println()
}
