/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the fuzz targets share. A target is one file with LLVMFuzzerTestOneInput, which reads one input as the program
 * would read it and checks what must be true of every answer (CHECK aborts, and that is the alarm).
 *
 * The same file is built twice: with libFuzzer, and with runner.c as an ordinary test.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Whether the last input was taken: set by the target, compared by the runner with what a file's name says. */
extern bool fuzz_accepted;

/* The story of a refusal: some text, a code that matches `rc`; shown on a terminal it is one line that commands nothing. */
void fuzz_check_refusal(int rc, const struct err *err);
/* As before, of an input that has lines: a place is named, inside the text. */
void fuzz_check_place(int rc, const struct err *err, const char *text, size_t size);
/* The first line of what is left at *text, without its newline; false when nothing is left. */
bool fuzz_line(const char **text, size_t *size, const char **ret_line, size_t *ret_size);
/* Takes decimal digits and one space from the front; false when there are none or more than nine. */
bool fuzz_number(const char **text, size_t *size, uint32_t *ret);
