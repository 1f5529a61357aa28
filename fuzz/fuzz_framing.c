/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where requests begin and end. Three judges: the same bytes in other cuts give the same answer; a second, simple reading of
 * a whole head (head_is_fit) agrees on every head; and lengths add up.
 *
 * The first byte of the input chooses the cuts, the rest is what the client sent.
 */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "api/http/framing.h"
#include "base/check.h"

enum { BODY_MAX = 96, EVENTS_MAX = 256 };

struct told {
	enum framing_event event;
	size_t at; /* bytes read when it was told */
	int problem, body;
	uint64_t length;
};

struct account {
	struct told told[EVENTS_MAX];
	size_t count;
};

/* Feeds in pieces of 1 to most bytes. */
static void feed(const char *text, size_t size, uint32_t dice, size_t most, struct account *ret)
{
	struct framing f;
	size_t at = 0;

	ret->count = 0;
	framing_init(&f, BODY_MAX);
	CHECK(framing_idle(&f));
	while (at < size && ret->count < EVENTS_MAX) {
		size_t piece, used;
		enum framing_event event;

		dice = dice * 1664525u + 1013904223u;
		piece = most == 1 ? 1 : 1 + (dice >> 8) % most;
		if (piece > size - at)
			piece = size - at;
		event = framing_feed(&f, text + at, piece, &used);
		CHECK(used <= piece);
		at += used;
		if (event == FRAMING_MORE) {
			CHECK(used == piece);
			continue;
		}
		ret->told[ret->count++] = (struct told){ event, at, f.problem, f.body,
							 event == FRAMING_HEAD ? f.length : 0 };
		if (event == FRAMING_BAD) {
			CHECK(f.problem > FRAMING_OK && f.problem < FRAMING_PROBLEM_COUNT);
			CHECK(framing_feed(&f, "GET", 3, &used) == FRAMING_BAD &&
			      used == 0); /* for ever */
			return;
		}
		CHECK(used > 0);
	}
}

static bool is_token(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("!#$%&'*+-.^_`|~", c));
}

/* The request line, without CR LF. */
static bool line_is_fit(const char *line, size_t size)
{
	const char *space = memchr(line, ' ', size), *end = size > 9 ? line + size - 9 : line;

	if (!space || space == line || space - line > 16 || end <= space + 1 ||
	    memcmp(end, " HTTP/1.1", 9) != 0 || space[1] != '/')
		return false;
	for (const char *p = line; p < space; p++)
		if (*p < 'A' || *p > 'Z')
			return false;
	for (const char *p = space + 1; p < end; p++)
		if (*p <= 0x20 || *p >= 0x7f || strchr("\"#<>\\^`{|}", *p))
			return false;
	return end - space - 1 <= FRAMING_TARGET_MAX;
}

struct head {
	int hosts, lengths, codings, fields;
	uint64_t length;
};

static bool value_of_length(const char *value, size_t size, uint64_t *ret)
{
	*ret = 0;
	for (size_t i = 0; i < size; i++) {
		if (value[i] < '0' || value[i] > '9')
			return false;
		*ret = *ret * 10 + (uint64_t)(value[i] - '0');
	}
	return size > 0 && size <= 18;
}

static bool field_is_fit(const char *line, size_t size, struct head *head)
{
	const char *colon = memchr(line, ':', size), *value;
	size_t name, left;

	if (!colon || colon == line || colon - line > FRAMING_NAME_MAX)
		return false;
	name = (size_t)(colon - line);
	for (size_t i = 0; i < name; i++)
		if (!is_token((unsigned char)line[i]))
			return false;
	value = colon + 1;
	left = size - name - 1;
	for (size_t i = 0; i < left; i++)
		if (((unsigned char)value[i] < 0x20 && value[i] != '\t') || value[i] == 0x7f)
			return false;
	while (left && (*value == ' ' || *value == '\t'))
		value++, left--;
	while (left && (value[left - 1] == ' ' || value[left - 1] == '\t'))
		left--;
	head->fields++;
	if (name == 4 && strncasecmp(line, "host", 4) == 0 && (++head->hosts > 1 || !left))
		return false;
	if (name == 14 && strncasecmp(line, "content-length", 14) == 0 &&
	    (++head->lengths > 1 || !value_of_length(value, left, &head->length)))
		return false;
	if (name == 17 && strncasecmp(line, "transfer-encoding", 17) == 0 &&
	    (++head->codings > 1 || left != 7 || strncasecmp(value, "chunked", 7) != 0))
		return false;
	if (name == 6 && strncasecmp(line, "expect", 6) == 0 &&
	    (left != 12 || strncasecmp(value, "100-continue", 12) != 0))
		return false;
	return true;
}

/* text[0, size) ends in the first CR LF CR LF: is it a head we take? Written for being right, not fast. */
static bool head_is_fit(const char *text, size_t size, struct head *head)
{
	size_t at = 0;

	memset(head, 0, sizeof(*head));
	if (size > FRAMING_HEAD_MAX)
		return false;
	while (at < size - 2) {
		const char *end = memmem(text + at, size - at, "\r\n", 2);
		const size_t line = (size_t)(end - (text + at));

		if (at == 0 ? !line_is_fit(text, line) : !field_is_fit(text + at, line, head))
			return false;
		at += line + 2;
	}
	if (head->fields > FRAMING_FIELDS_MAX || head->hosts != 1 ||
	    (head->lengths && head->codings))
		return false;
	return head->length <= BODY_MAX;
}

/* Each head that was told is fit, each fit head was told. */
static void check_heads(const char *text, size_t size, const struct account *account)
{
	size_t at = 0;

	for (size_t i = 0; i < account->count && at < size;) {
		const char *end = memmem(text + at, size - at, "\r\n\r\n", 4);
		const struct told *told = &account->told[i];
		struct head head;
		bool fit;

		if (!end) {
			CHECK(told->event == FRAMING_BAD);
			return;
		}
		fit = head_is_fit(text + at, (size_t)(end - text) + 4 - at, &head);
		CHECK(fit == (told->event == FRAMING_HEAD));
		if (!fit)
			return;
		CHECK(told->at == (size_t)(end - text) + 4);
		CHECK(told->body == (head.codings  ? FRAMING_BODY_CHUNKED
				     : head.length ? FRAMING_BODY_LENGTH
						   : FRAMING_BODY_NONE));
		CHECK(told->body == FRAMING_BODY_CHUNKED || told->length == head.length);
		at = told->at;
		i++;
		if (told->body == FRAMING_BODY_NONE)
			continue;
		if (i == account->count || account->told[i].event == FRAMING_BAD)
			return;
		CHECK(account->told[i].event == FRAMING_END);
		CHECK(told->body != FRAMING_BODY_LENGTH || account->told[i].at == at + head.length);
		at = account->told[i++].at;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct account whole, bytes, pieces;
	const char *text = (const char *)data + 1;

	if (size < 2 || size > 40000)
		return 0;
	size--;
	feed(text, size, 1, 1, &bytes);
	feed(text, size, data[0], 1 + data[0], &pieces);
	feed(text, size, data[0], 1 << 20, &whole);
	CHECK(whole.count == bytes.count && whole.count == pieces.count);
	for (size_t i = 0; i < whole.count; i++) {
		const struct told *a = &whole.told[i], *b = &bytes.told[i], *c = &pieces.told[i];

		CHECK(a->event == b->event && a->event == c->event && a->at == b->at &&
		      a->at == c->at);
		CHECK(a->problem == b->problem && a->problem == c->problem && a->body == b->body &&
		      a->body == c->body);
		CHECK(a->length == b->length && a->length == c->length);
	}
	if (whole.count < EVENTS_MAX)
		check_heads(text, size, &whole);
	fuzz_accepted = whole.count > 0 && whole.told[whole.count - 1].event != FRAMING_BAD;
	return 0;
}
