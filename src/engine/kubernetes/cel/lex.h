/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Words of an expression. */
#include "engine/kubernetes/cel/tree.h"

enum word_kind {
	WORD_END,
	WORD_NAME,
	WORD_INT,
	WORD_STRING,
	WORD_SIGN, /* sign: its characters, of two the first in the higher byte */
};

#define SIGN2(a, b) ((uint16_t)((a) << 8 | (b)))

struct word {
	enum word_kind kind;
	uint16_t sign;
	bool too_large; /* an int that is one only behind a minus: 9223372036854775808 */
	uint32_t at;
	struct string text; /* of a name or a string: without quotes and escapes */
	int64_t number;
};

/* Reads the word at *at and moves behind it. After an error it is WORD_END. */
struct word word_next(struct source *source, uint32_t *at);
