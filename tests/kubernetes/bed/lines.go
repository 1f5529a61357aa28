// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
)

// A line of JSON for each line of JSON, of at most `most` bytes. What a program of the bed ends with.
func answerLines[Question, Answer any](in io.Reader, out io.Writer, most int, one func(Question) Answer) int {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, most)
	written := bufio.NewWriter(out)
	defer written.Flush()
	for lines.Scan() {
		var question Question
		if err := json.Unmarshal(lines.Bytes(), &question); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		text, err := json.Marshal(one(question))
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		written.Write(append(text, '\n'))
	}
	if err := lines.Err(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
