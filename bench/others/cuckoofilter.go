// SPDX-License-Identifier: BSD-2-Clause

// cuckoofilter N REMOVE
//
// Adds the keys id1 to idN to a cuckoo filter (Go, seiflotfy/cuckoofilter),
// asks for keys that were never added until REMOVE of them are found, removes
// these, and asks for all keys again. Prints how many keys it asked for, how
// many removals the filter reported, how many of the removed keys it still
// finds, and how many of the N keys it does not find any more.

package main

import (
	"fmt"
	"os"
	"strconv"

	"github.com/seiflotfy/cuckoofilter"
)

func main() {
	n, _ := strconv.Atoi(os.Args[1])
	remove, _ := strconv.Atoi(os.Args[2])

	filter := cuckoo.NewFilter(uint(n + n/10))
	has := 0

	for i := 1; i <= n; i++ {
		if filter.Insert([]byte("id" + strconv.Itoa(i))) {
			has++
		}
	}

	asked := 0
	var found [][]byte

	for len(found) < remove {
		key := []byte("never" + strconv.Itoa(asked))
		asked++

		if filter.Lookup(key) {
			found = append(found, key)
		}
	}

	removed := 0

	for _, key := range found {
		if filter.Delete(key) {
			removed++
		}
	}

	still, left := 0, 0

	for _, key := range found {
		if filter.Lookup(key) {
			still++
		}
	}

	for i := 1; i <= n; i++ {
		if filter.Lookup([]byte("id" + strconv.Itoa(i))) {
			left++
		}
	}

	fmt.Println(asked, removed, still, has-left)
}
