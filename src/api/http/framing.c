/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state machine. One state per place in the grammar; every byte is looked at once; what has no transition is
 * refused. Names and values are kept only as far as the four fields need that decide on framing.
 */
#include "api/http/framing.h"

#include <string.h>
#include "base/check.h"

enum state {
	S_START, /* nothing of a request came yet */
	S_METHOD,
	S_TARGET_FIRST,
	S_TARGET,
	S_VERSION, /* digits counts into "HTTP/1.1" */
	S_LINE_LF, /* LF of the request line */
	S_FIELD_FIRST, /* first byte of a field line, or CR of the empty line */
	S_NAME,
	S_VALUE_SPACE, /* optional space before the value */
	S_VALUE,
	S_VALUE_LF,
	S_HEAD_LF, /* LF of the empty line */
	S_BODY,
	S_CHUNK_SIZE,
	S_CHUNK_SIZE_LF,
	S_CHUNK_DATA,
	S_CHUNK_CR,
	S_CHUNK_LF,
	S_LAST_CR, /* the empty line behind the last chunk */
	S_LAST_LF,
	S_BAD
};

enum field { FIELD_OTHER, FIELD_HOST, FIELD_LENGTH, FIELD_CODING, FIELD_EXPECT };

/* Character classes. */
enum { C_TOKEN = 1, C_TARGET = 2, C_VALUE = 4 };
static uint8_t classes[256];

__attribute__((constructor)) static void classes_fill(void)
{
	for (int c = 0; c < 256; c++) {
		uint8_t class = 0;

		if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
		    (c && strchr("!#$%&'*+-.^_`|~", c)))
			class |= C_TOKEN;
		/* RFC 3986 without the fragment; whatever else is visible must come percent-encoded. */
		if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
		    (c && strchr("-._~:/?[]@!$&'()*+,;=%", c)))
			class |= C_TARGET;
		if ((c >= 0x20 && c != 0x7f) || c == '\t')
			class |= C_VALUE;
		classes[c] = class;
	}
}

static const struct {
	uint16_t http;
	const char *text;
} problems[FRAMING_PROBLEM_COUNT] = {
	[FRAMING_OK] = { 200, "the request is well formed" },
#define P(NAME, http, text) [FRAMING_##NAME] = { http, text },
#include "api/http/framing.def"
#undef P
};

const char *framing_problem_text(enum framing_problem problem)
{
	CHECK((unsigned int)problem < FRAMING_PROBLEM_COUNT);
	return problems[problem].text;
}

int framing_problem_http(enum framing_problem problem)
{
	CHECK((unsigned int)problem < FRAMING_PROBLEM_COUNT);
	return problems[problem].http;
}

void framing_init(struct framing *f, uint64_t body_max)
{
	memset(f, 0, sizeof *f);
	f->body_max = body_max;
}

bool framing_idle(const struct framing *f)
{
	return f->state == S_START;
}

bool framing_in_head(const struct framing *f)
{
	return f->state > S_START && f->state <= S_HEAD_LF;
}

static enum framing_event bad(struct framing *f, enum framing_problem problem)
{
	f->state = S_BAD;
	f->problem = (uint8_t)problem;
	return FRAMING_BAD;
}

static void request_begin(struct framing *f)
{
	uint64_t body_max = f->body_max;

	framing_init(f, body_max);
	f->state = S_METHOD;
}

static void name_end(struct framing *f)
{
	static const struct {
		const char *name;
		uint8_t field;
	} known[] = {
		{ "host", FIELD_HOST },
		{ "content-length", FIELD_LENGTH },
		{ "transfer-encoding", FIELD_CODING },
		{ "expect", FIELD_EXPECT },
	};

	f->name[f->name_bytes] = '\0';
	f->field = FIELD_OTHER;
	f->value_bytes = 0;
	f->pending_space = 0;
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (!strcmp(f->name, known[i].name))
			f->field = known[i].field;
	f->state = S_VALUE_SPACE;
}

static int length_parse(const struct framing *f, uint64_t *ret)
{
	uint64_t number = 0;

	if (!f->value_bytes || f->value_bytes > 18)
		return -1;
	for (unsigned int i = 0; i < f->value_bytes; i++) {
		if (f->value[i] < '0' || f->value[i] > '9')
			return -1;
		number = number * 10 + (uint64_t)(f->value[i] - '0');
	}
	*ret = number;
	return 0;
}

/* A field is complete: what it says of the framing. */
static enum framing_problem field_end(struct framing *f)
{
	switch ((enum field)f->field) {
	case FIELD_OTHER: return FRAMING_OK;
	case FIELD_EXPECT:
		if (f->value_bytes != 12 || strncasecmp(f->value, "100-continue", 12) != 0)
			return FRAMING_EXPECT;
		f->expects = true;
		return FRAMING_OK;
	case FIELD_HOST:
		if (f->host)
			return FRAMING_HOST_TWICE;
		f->host = true;
		return f->value_bytes ? FRAMING_OK : FRAMING_HOST;
	case FIELD_LENGTH:
		if (f->has_length)
			return FRAMING_LENGTH_TWICE;
		f->has_length = true;
		return length_parse(f, &f->length) < 0 ? FRAMING_LENGTH : FRAMING_OK;
	case FIELD_CODING:
		if (f->has_coding || f->value_bytes != 7 ||
		    strncasecmp(f->value, "chunked", 7) != 0)
			return FRAMING_CODING;
		f->has_coding = true;
		return FRAMING_OK;
	}
	UNREACHABLE();
}

/* Keeps the start of a value, without the space behind it. */
static void value_add(struct framing *f, char c)
{
	if (f->field == FIELD_OTHER)
		return;
	if (c == ' ' || c == '\t') {
		if (f->pending_space < 255)
			f->pending_space++;
		return;
	}
	/* A space inside: no value that matters here has one, so one stands for all. */
	if (f->pending_space && f->value_bytes && f->value_bytes < sizeof f->value)
		f->value[f->value_bytes++] = ' ';
	f->pending_space = 0;
	if (f->value_bytes < sizeof f->value)
		f->value[f->value_bytes++] = c;
}

static enum framing_event head_end(struct framing *f)
{
	if (!f->host)
		return bad(f, FRAMING_HOST);
	if (f->has_length && f->has_coding)
		return bad(f, FRAMING_LENGTH_CODING);
	if (f->has_length && f->length > f->body_max)
		return bad(f, FRAMING_BODY_LARGE);
	if (f->has_coding) {
		f->body = FRAMING_BODY_CHUNKED;
		f->length = 0;
		f->left = 0;
		f->digits = 0;
		f->state = S_CHUNK_SIZE;
	} else if (f->has_length && f->length) {
		f->body = FRAMING_BODY_LENGTH;
		f->left = f->length;
		f->state = S_BODY;
	} else {
		f->body = FRAMING_BODY_NONE;
		f->state = S_START;
	}
	return FRAMING_HEAD;
}

static int hex_value(unsigned char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* One byte of the request line. */
static enum framing_event line_byte(struct framing *f, unsigned char c)
{
	static const char version[] = "HTTP/1.1";

	switch (f->state) {
	case S_METHOD:
		if (c == ' ' && f->method_bytes) {
			f->state = S_TARGET_FIRST;
			return FRAMING_MORE;
		}
		if (c < 'A' || c > 'Z' || ++f->method_bytes > 16)
			return bad(f, FRAMING_METHOD);
		return FRAMING_MORE;
	case S_TARGET_FIRST:
		if (c != '/')
			return bad(f, FRAMING_TARGET);
		f->state = S_TARGET;
		f->target_bytes = 1;
		return FRAMING_MORE;
	case S_TARGET:
		if (c == ' ') {
			f->state = S_VERSION;
			f->digits = 0;
			return FRAMING_MORE;
		}
		if (!(classes[c] & C_TARGET))
			return bad(f, FRAMING_TARGET);
		return ++f->target_bytes > FRAMING_TARGET_MAX ? bad(f, FRAMING_TARGET_LONG)
							      : FRAMING_MORE;
	case S_VERSION:
		if (f->digits == sizeof version - 1) {
			if (c != '\r')
				return bad(f, c == '\n' ? FRAMING_LINE_END : FRAMING_VERSION);
			f->state = S_LINE_LF;
			return FRAMING_MORE;
		}
		return c == (unsigned char)version[f->digits++] ? FRAMING_MORE
								: bad(f, FRAMING_VERSION);
	default: UNREACHABLE();
	}
}

static enum framing_event name_byte(struct framing *f, unsigned char c)
{
	if (f->state == S_FIELD_FIRST) {
		if (c == '\r') {
			f->state = S_HEAD_LF;
			return FRAMING_MORE;
		}
		if (c == ' ' || c == '\t')
			return bad(f, FRAMING_FOLD);
		if (c == '\n')
			return bad(f, FRAMING_LINE_END);
		if (++f->fields > FRAMING_FIELDS_MAX)
			return bad(f, FRAMING_FIELDS_MANY);
		f->name_bytes = 0;
		f->state = S_NAME;
	}
	if (c == ':' && f->name_bytes) {
		name_end(f);
		return FRAMING_MORE;
	}
	if (!(classes[c] & C_TOKEN))
		return bad(f, FRAMING_NAME);
	if (f->name_bytes == FRAMING_NAME_MAX)
		return bad(f, FRAMING_NAME_LONG);
	f->name[f->name_bytes++] = (char)(c >= 'A' && c <= 'Z' ? c + 32 : c);
	return FRAMING_MORE;
}

static enum framing_event value_byte(struct framing *f, unsigned char c)
{
	enum framing_problem problem;

	if (c == '\r') {
		problem = field_end(f);
		if (problem)
			return bad(f, problem);
		f->state = S_VALUE_LF;
		return FRAMING_MORE;
	}
	if (c == '\n')
		return bad(f, FRAMING_LINE_END);
	if (!(classes[c] & C_VALUE))
		return bad(f, FRAMING_CONTROL);
	if (f->state == S_VALUE_SPACE && (c == ' ' || c == '\t'))
		return FRAMING_MORE;
	f->state = S_VALUE;
	value_add(f, (char)c);
	return FRAMING_MORE;
}

static enum framing_event head_byte(struct framing *f, unsigned char c)
{
	if (++f->head_bytes > FRAMING_HEAD_MAX)
		return bad(f, FRAMING_HEAD_LARGE);
	switch (f->state) {
	case S_METHOD:
	case S_TARGET_FIRST:
	case S_TARGET:
	case S_VERSION: return line_byte(f, c);
	case S_FIELD_FIRST:
	case S_NAME: return name_byte(f, c);
	case S_VALUE_SPACE:
	case S_VALUE: return value_byte(f, c);
	case S_LINE_LF:
	case S_VALUE_LF:
		if (c != '\n')
			return bad(f, FRAMING_LINE_END);
		f->state = S_FIELD_FIRST;
		return FRAMING_MORE;
	case S_HEAD_LF: return c == '\n' ? head_end(f) : bad(f, FRAMING_LINE_END);
	default: UNREACHABLE();
	}
}

static enum framing_event chunk_size_byte(struct framing *f, unsigned char c)
{
	int digit = hex_value(c);

	if (digit >= 0) {
		if (++f->digits > 8)
			return bad(f, FRAMING_CHUNK);
		f->left = f->left << 4 | (uint64_t)digit;
		return FRAMING_MORE;
	}
	if (c != '\r' || !f->digits)
		return bad(f, FRAMING_CHUNK);
	if (f->length + f->left > f->body_max)
		return bad(f, FRAMING_BODY_LARGE);
	f->length += f->left;
	f->state = S_CHUNK_SIZE_LF;
	return FRAMING_MORE;
}

static enum framing_event chunk_byte(struct framing *f, unsigned char c)
{
	switch (f->state) {
	case S_CHUNK_SIZE: return chunk_size_byte(f, c);
	case S_CHUNK_SIZE_LF:
		f->state = f->left ? S_CHUNK_DATA : S_LAST_CR;
		return c == '\n' ? FRAMING_MORE : bad(f, FRAMING_CHUNK);
	case S_CHUNK_CR:
		f->state = S_CHUNK_LF;
		return c == '\r' ? FRAMING_MORE : bad(f, FRAMING_CHUNK);
	case S_CHUNK_LF:
		f->state = S_CHUNK_SIZE;
		f->digits = 0;
		f->left = 0;
		return c == '\n' ? FRAMING_MORE : bad(f, FRAMING_CHUNK);
	case S_LAST_CR:
		f->state = S_LAST_LF;
		return c == '\r' ? FRAMING_MORE : bad(f, FRAMING_TRAILER);
	case S_LAST_LF:
		if (c != '\n')
			return bad(f, FRAMING_CHUNK);
		f->state = S_START;
		return FRAMING_END;
	default: UNREACHABLE();
	}
}

/* Bytes of a body that need no look. */
static size_t data_skip(struct framing *f, size_t size)
{
	size_t skip = size < f->left ? size : (size_t)f->left;

	f->left -= skip;
	return skip;
}

enum framing_event framing_feed(struct framing *f, const char *data, size_t size, size_t *ret_used)
{
	size_t at = 0;
	enum framing_event event = FRAMING_MORE;

	if (f->state == S_BAD) {
		*ret_used = 0;
		return FRAMING_BAD;
	}
	while (at < size && event == FRAMING_MORE) {
		if (f->state == S_START)
			request_begin(f);
		if (f->state == S_BODY) {
			at += data_skip(f, size - at);
			if (!f->left) {
				f->state = S_START;
				event = FRAMING_END;
			}
		} else if (f->state == S_CHUNK_DATA) {
			at += data_skip(f, size - at);
			if (!f->left)
				f->state = S_CHUNK_CR;
		} else if (f->state <= S_HEAD_LF) {
			event = head_byte(f, (unsigned char)data[at++]);
		} else {
			event = chunk_byte(f, (unsigned char)data[at++]);
		}
	}
	*ret_used = at;
	return event;
}
