/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A set of small numbers as bits, with a second row that says which words are not empty: finding the next
 * member skips 4,096 absent ones per step. Used for sets of nodes by rank.
 *
 * The words belong to the caller: bits_words(room) of them, zeroed = empty set.
 */
#include <stdbool.h>
#include <stdint.h>

/* How many bits are set. The processor's own instruction is not in the least common denominator that is compiled for. */
static inline uint32_t bits_count(uint32_t x)
{
	x -= x >> 1 & UINT32_C(0x55555555);
	x = (x & UINT32_C(0x33333333)) + (x >> 2 & UINT32_C(0x33333333));
	return ((x + (x >> 4)) & UINT32_C(0x0f0f0f0f)) * UINT32_C(0x01010101) >> 24;
}

static inline uint32_t bits_row(uint32_t room)
{
	return (room + 63) / 64;
}
static inline uint32_t bits_words(uint32_t room)
{
	return bits_row(room) + bits_row(bits_row(room));
}

static inline void bits_add(uint64_t *words, uint32_t room, uint32_t member)
{
	words[member / 64] |= UINT64_C(1) << member % 64;
	words[bits_row(room) + member / 4096] |= UINT64_C(1) << member / 64 % 64;
}

static inline void bits_remove(uint64_t *words, uint32_t room, uint32_t member)
{
	words[member / 64] &= ~(UINT64_C(1) << member % 64);
	if (!words[member / 64])
		words[bits_row(room) + member / 4096] &= ~(UINT64_C(1) << member / 64 % 64);
}

/* The first member of both sets >= from and < end; end when there is none. */
static inline uint32_t bits_next_both(const uint64_t *a, const uint64_t *b, uint32_t room,
				      uint32_t from, uint32_t end)
{
	uint32_t rows = bits_row(room), word = from / 64;
	uint64_t bits;

	if (from >= end)
		return end;
	bits = a[word] & b[word] & ~UINT64_C(0) << from % 64;
	while (!bits) {
		uint32_t next = word + 1, top = next / 64;
		uint64_t words;

		if (next >= rows)
			return end;
		words = a[rows + top] & b[rows + top] & ~UINT64_C(0) << next % 64;
		while (!words) {
			if (++top >= bits_row(rows))
				return end;
			words = a[rows + top] & b[rows + top];
		}
		word = top * 64 + (uint32_t)__builtin_ctzll(words);
		bits = a[word] & b[word];
	}
	word = word * 64 + (uint32_t)__builtin_ctzll(bits);
	return word < end ? word : end;
}

/* The first member >= from and < end; end when there is none. */
static inline uint32_t bits_next(const uint64_t *words, uint32_t room, uint32_t from, uint32_t end)
{
	uint32_t word = from / 64, rows = bits_row(room), tops = bits_row(rows), found;
	uint64_t bits;

	if (from >= end)
		return end;
	bits = words[word] & ~UINT64_C(0) << from % 64;
	if (!bits) {
		uint32_t next = word + 1, top = next / 64;

		if (next >= rows)
			return end;
		bits = words[rows + top] & ~UINT64_C(0) << next % 64;
		while (!bits) {
			if (++top >= tops)
				return end;
			bits = words[rows + top];
		}
		word = top * 64 + (uint32_t)__builtin_ctzll(bits);
		bits = words[word];
	}
	found = word * 64 + (uint32_t)__builtin_ctzll(bits);
	return found < end ? found : end;
}
