/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pattern becomes a machine whose steps take a character or go on without one:
 *
 *	a|b*	 0 FORK 1 3	 1 TAKE a	 2 JUMP 5	 3 FORK 4 5	 4 TAKE b, JUMP 3	 5 DONE
 *
 * The text is read once; the set of steps that the machine could be at is kept. A pattern is first a tree, because what is repeated is
 * written several times.
 */
#include "engine/kubernetes/cel/pattern.h"

#include <string.h>

#include "base/arena.h"
#include "base/utf8.h"

enum { REPEAT_MAX = 1000, NEST_MAX = 100, NO_END = -1 };

enum piece_kind {
	PIECE_NOTHING,
	PIECE_SET, /* one character of it */
	PIECE_BEGIN, /* ^ */
	PIECE_END, /* $ */
	PIECE_BOTH, /* a, then b */
	PIECE_EITHER, /* a or b */
	PIECE_REPEAT, /* a, from `low` to `high` times; high NO_END = any number */
};

/* ASCII by bits; what lies beyond is in or out as a whole. */
struct set {
	uint64_t bits[2];
	bool beyond;
};

struct piece {
	enum piece_kind kind;
	struct set set;
	struct piece *a, *b;
	int low, high;
};

struct reader {
	struct arena *arena;
	const char *text;
	size_t size, at;
	uint32_t depth;
	struct value bad; /* VALUE_BOOL while all is well */
};

static struct piece *read_either(struct reader *r);

static struct piece *fail(struct reader *r)
{
	if (r->bad.kind == VALUE_BOOL)
		r->bad = value_failed("a text that is no pattern");
	return NULL;
}

static struct piece *refuse(struct reader *r, const char *why)
{
	if (r->bad.kind == VALUE_BOOL)
		r->bad = value_refused(why);
	return NULL;
}

static int peek(const struct reader *r, size_t ahead)
{
	return r->at + ahead < r->size ? (unsigned char)r->text[r->at + ahead] : -1;
}

static struct piece *piece_make(struct reader *r, enum piece_kind kind, struct piece *a,
				struct piece *b)
{
	struct piece *piece = arena_new(r->arena, struct piece);

	*piece = (struct piece){ .kind = kind, .a = a, .b = b };
	return piece;
}

/* -- sets of characters -- */

static void set_add(struct set *set, int first, int last)
{
	for (int c = first; c <= last; c++)
		set->bits[c / 64] |= UINT64_C(1) << (c % 64);
}

static void set_turn(struct set *set)
{
	set->bits[0] = ~set->bits[0];
	set->bits[1] = ~set->bits[1];
	set->beyond = !set->beyond;
}

static void set_join(struct set *set, const struct set *other)
{
	set->bits[0] |= other->bits[0];
	set->bits[1] |= other->bits[1];
	set->beyond |= other->beyond;
}

static bool set_has(const struct set *set, uint32_t code)
{
	return code < 128 ? set->bits[code / 64] >> (code % 64) & 1 : set->beyond;
}

/* \d and its kin. */
static bool class_find(int letter, struct set *ret)
{
	memset(ret, 0, sizeof(*ret));
	switch (letter | 0x20) {
	case 'd': set_add(ret, '0', '9'); break;
	case 'w':
		set_add(ret, '0', '9');
		set_add(ret, 'A', 'Z');
		set_add(ret, 'a', 'z');
		set_add(ret, '_', '_');
		break;
	case 's':
		set_add(ret, '\t', '\n');
		set_add(ret, '\f', '\r');
		set_add(ret, ' ', ' ');
		break;
	default: return false;
	}
	if (letter < 'a')
		set_turn(ret);
	return true;
}

/* The character behind a backslash, which is taken; -1 = none that is read here. */
static int read_escaped(struct reader *r)
{
	static const char letters[] = "afnrtv", means[] = "\a\f\n\r\t\v";
	int c = peek(r, 0);
	const char *letter = c > 0 ? strchr(letters, c) : NULL;

	if (c < 0) {
		fail(r);
		return -1;
	}
	if (letter) {
		r->at++;
		return means[letter - letters];
	}
	if (c < 0x80 && c > ' ' && !(c >= '0' && c <= '9') &&
	    !((c | 0x20) >= 'a' && (c | 0x20) <= 'z')) {
		r->at++;
		return c;
	}
	refuse(r, "this escape of a pattern is not built here");
	return -1;
}

/* One end of a range in [...]. */
static int read_bound(struct reader *r)
{
	int c = peek(r, 0);

	if (c >= 0x80) {
		refuse(r, "characters beyond ASCII in a pattern's [...] are not built here");
		return -1;
	}
	r->at++;
	return c == '\\' ? read_escaped(r) : c;
}

/* One item of [...]: a class, a character or a range. */
static void read_item(struct reader *r, struct set *set)
{
	struct set class;
	int first, last;

	if (peek(r, 0) == '[' && peek(r, 1) == ':') {
		refuse(r, "named classes in a pattern are not built here");
		return;
	}
	if (peek(r, 0) == '\\' && peek(r, 1) > 0 && class_find(peek(r, 1), &class)) {
		r->at += 2;
		set_join(set, &class);
		if (peek(r, 0) == '-' && peek(r, 1) != ']')
			refuse(r, "a range that begins with a class");
		return;
	}
	first = last = read_bound(r);
	if (first >= 0 && peek(r, 0) == '-' && peek(r, 1) >= 0 && peek(r, 1) != ']') {
		r->at++;
		last = read_bound(r);
	}
	if (first < 0 || last < 0)
		return;
	if (last < first)
		fail(r);
	else
		set_add(set, first, last);
}

/* Behind "[". */
static struct piece *read_set(struct reader *r)
{
	struct piece *piece = piece_make(r, PIECE_SET, NULL, NULL);
	bool turned = peek(r, 0) == '^', first = true;

	r->at += turned;
	for (; r->bad.kind == VALUE_BOOL && (first || peek(r, 0) != ']'); first = false) {
		if (peek(r, 0) < 0)
			return fail(r);
		read_item(r, &piece->set);
	}
	r->at++;
	if (turned)
		set_turn(&piece->set);
	return piece;
}

/* -- pieces -- */

static struct piece *one_character(struct reader *r, int c)
{
	struct piece *piece = piece_make(r, PIECE_SET, NULL, NULL);

	set_add(&piece->set, c, c);
	return piece;
}

/* Behind "(". */
static struct piece *read_group(struct reader *r)
{
	struct piece *piece;

	if (peek(r, 0) == '?') {
		if (peek(r, 1) != ':')
			return refuse(r, "flags and names in a pattern are not built here");
		r->at += 2;
	}
	if (r->depth == NEST_MAX)
		return refuse(r, "a pattern with too many brackets");
	r->depth++;
	piece = read_either(r);
	r->depth--;
	if (peek(r, 0) != ')')
		return fail(r);
	r->at++;
	return piece;
}

/* Behind a backslash. */
static struct piece *read_class(struct reader *r)
{
	struct piece *piece;
	struct set class;
	int c = peek(r, 0);

	if (c > 0 && class_find(c, &class)) {
		r->at++;
		piece = piece_make(r, PIECE_SET, NULL, NULL);
		piece->set = class;
		return piece;
	}
	c = read_escaped(r);
	return c < 0 ? NULL : one_character(r, c);
}

static struct piece *read_one(struct reader *r)
{
	int c = peek(r, 0);
	struct piece *piece;

	r->at++;
	switch (c) {
	case '(': return read_group(r);
	case '[': return read_set(r);
	case '\\': return read_class(r);
	case '^': return piece_make(r, PIECE_BEGIN, NULL, NULL);
	case '$': return piece_make(r, PIECE_END, NULL, NULL);
	case '.':
		piece = one_character(r, '\n');
		set_turn(&piece->set);
		return piece;
	case '*':
	case '+':
	case '?': return fail(r);
	default:
		if (c >= 0x80)
			return refuse(r, "characters beyond ASCII in a pattern are not built here");
		return one_character(r, c);
	}
}

static bool read_count(struct reader *r, size_t *at, int *ret)
{
	size_t first = *at;

	for (*ret = 0; *at < r->size && r->text[*at] >= '0' && r->text[*at] <= '9'; (*at)++)
		if (*ret <= REPEAT_MAX)
			*ret = *ret * 10 + (r->text[*at] - '0');
	return *at > first && !(r->text[first] == '0' && *at - first > 1);
}

/* {2}, {2,} or {2,5}; anything else that begins with { is that character. */
static bool read_counts(struct reader *r, int *low, int *high)
{
	size_t at = r->at + 1;

	if (!read_count(r, &at, low))
		return false;
	*high = *low;
	if (at < r->size && r->text[at] == ',') {
		at++;
		*high = NO_END;
		if (at < r->size && r->text[at] != '}' && !read_count(r, &at, high))
			return false;
	}
	if (at >= r->size || r->text[at] != '}')
		return false;
	r->at = at + 1;
	if (*low > REPEAT_MAX || *high > REPEAT_MAX || (*high != NO_END && *high < *low))
		fail(r);
	return true;
}

static bool read_times(struct reader *r, int *low, int *high)
{
	int c = peek(r, 0);

	*low = c == '+';
	*high = c == '?' ? 1 : NO_END;
	if (c == '{')
		return read_counts(r, low, high);
	if (c != '*' && c != '+' && c != '?')
		return false;
	r->at++;
	return true;
}

static struct piece *read_repeated(struct reader *r)
{
	struct piece *piece = read_one(r), *repeat;
	int low, high;

	if (r->bad.kind != VALUE_BOOL || !read_times(r, &low, &high))
		return piece;
	if (peek(r, 0) == '?') /* as few as possible: where it matches is not asked */
		r->at++;
	repeat = piece_make(r, PIECE_REPEAT, piece, NULL);
	repeat->low = low;
	repeat->high = high;
	if (r->bad.kind == VALUE_BOOL && read_times(r, &low, &high))
		return fail(r);
	return repeat;
}

static struct piece *read_row(struct reader *r)
{
	struct piece *row = NULL;

	while (r->bad.kind == VALUE_BOOL && peek(r, 0) >= 0 && peek(r, 0) != '|' &&
	       peek(r, 0) != ')') {
		struct piece *piece = read_repeated(r);

		row = row && piece ? piece_make(r, PIECE_BOTH, row, piece) : piece;
	}
	return row ? row : piece_make(r, PIECE_NOTHING, NULL, NULL);
}

static struct piece *read_either(struct reader *r)
{
	struct piece *piece = read_row(r);

	while (r->bad.kind == VALUE_BOOL && peek(r, 0) == '|') {
		r->at++;
		piece = piece_make(r, PIECE_EITHER, piece, read_row(r));
	}
	return piece;
}

/* -- the machine -- */

enum step_kind { STEP_TAKE, STEP_FORK, STEP_JUMP, STEP_BEGIN, STEP_END, STEP_DONE };

struct step {
	enum step_kind kind;
	struct set set;
	uint32_t to, or_to; /* of forks and jumps */
};

struct machine {
	struct step *steps;
	uint32_t count;
	bool full;
};

static uint32_t step_add(struct machine *m, enum step_kind kind)
{
	if (m->count == PATTERN_STEPS_MAX) {
		m->full = true;
		return m->count - 1;
	}
	m->steps[m->count] = (struct step){ .kind = kind };
	return m->count++;
}

static void write_piece(struct machine *m, const struct piece *piece);

static void write_either(struct machine *m, const struct piece *piece)
{
	uint32_t fork = step_add(m, STEP_FORK), jump;

	m->steps[fork].to = m->count;
	write_piece(m, piece->a);
	jump = step_add(m, STEP_JUMP);
	m->steps[fork].or_to = m->count;
	write_piece(m, piece->b);
	m->steps[jump].to = m->count;
}

/* a*: a fork round it. */
static void write_any_number(struct machine *m, const struct piece *piece)
{
	uint32_t fork = step_add(m, STEP_FORK), jump;

	m->steps[fork].to = m->count;
	write_piece(m, piece);
	jump = step_add(m, STEP_JUMP);
	m->steps[jump].to = fork;
	m->steps[fork].or_to = m->count;
}

static void write_repeat(struct machine *m, const struct piece *piece)
{
	for (int i = 0; i < piece->low && !m->full; i++)
		write_piece(m, piece->a);
	if (piece->high == NO_END)
		write_any_number(m, piece->a);
	for (int i = piece->low; i < piece->high && !m->full; i++) {
		uint32_t fork = step_add(m, STEP_FORK);

		m->steps[fork].to = m->count;
		write_piece(m, piece->a);
		m->steps[fork].or_to = m->count;
	}
}

static void write_piece(struct machine *m, const struct piece *piece)
{
	if (m->full)
		return;
	switch (piece->kind) {
	case PIECE_NOTHING: break;
	case PIECE_SET: m->steps[step_add(m, STEP_TAKE)].set = piece->set; break;
	case PIECE_BEGIN: step_add(m, STEP_BEGIN); break;
	case PIECE_END: step_add(m, STEP_END); break;
	case PIECE_BOTH:
		write_piece(m, piece->a);
		write_piece(m, piece->b);
		break;
	case PIECE_EITHER: write_either(m, piece); break;
	case PIECE_REPEAT: write_repeat(m, piece); break;
	}
}

/* Where the machine could be before a character; `seen` has 1 + the number of that character. */
struct places {
	uint32_t *at;
	uint32_t count;
	uint32_t *seen, *waiting;
	uint32_t turn;
	bool done;
};

static void places_add(struct places *p, const struct machine *m, uint32_t first, bool begin,
		       bool end)
{
	uint32_t waiting = 0;

	p->waiting[waiting++] = first;
	while (waiting) {
		uint32_t at = p->waiting[--waiting];
		const struct step *step = &m->steps[at];

		if (p->seen[at] == p->turn)
			continue;
		p->seen[at] = p->turn;
		switch (step->kind) {
		case STEP_TAKE: p->at[p->count++] = at; break;
		case STEP_DONE: p->done = true; break;
		case STEP_FORK:
			p->waiting[waiting++] = step->or_to;
			p->waiting[waiting++] = step->to;
			break;
		case STEP_JUMP: p->waiting[waiting++] = step->to; break;
		case STEP_BEGIN:
			if (begin)
				p->waiting[waiting++] = at + 1;
			break;
		case STEP_END:
			if (end)
				p->waiting[waiting++] = at + 1;
			break;
		}
	}
}

static void places_make(struct places *p, const struct machine *m, struct arena *arena)
{
	*p = (struct places){ .turn = 0 };
	p->at = arena_new_array(arena, uint32_t, m->count);
	p->seen = arena_new_array(arena, uint32_t, m->count);
	p->waiting = arena_new_array(arena, uint32_t, 2 * m->count + 2);
}

static bool machine_run(const struct machine *m, const struct string *text, struct arena *arena)
{
	struct places places[2];
	size_t at = 0;

	places_make(&places[0], m, arena);
	places_make(&places[1], m, arena);
	places[0].turn = 1;
	for (uint32_t turn = 1;; turn++) {
		struct places *now = &places[(turn - 1) % 2], *next = &places[turn % 2];
		size_t size = at < text->size ? utf8_size(text->data + at, text->size - at) : 0;
		uint32_t code = size ? utf8_code(text->data + at, size) : 0;

		places_add(now, m, 0, at == 0, at == text->size);
		if (now->done || at == text->size)
			return now->done;
		at += size;
		next->count = 0;
		next->turn = turn + 1;
		for (uint32_t i = 0; i < now->count; i++)
			if (set_has(&m->steps[now->at[i]].set, code))
				places_add(next, m, now->at[i] + 1, false, at == text->size);
	}
}

struct value pattern_ask(struct arena *arena, const struct string *pattern,
			 const struct string *text)
{
	struct reader r = { .arena = arena,
			    .text = pattern->data,
			    .size = pattern->size,
			    .bad = { .kind = VALUE_BOOL } };
	struct machine m = { .count = 0 };
	struct piece *piece;

	if (pattern->size > PATTERN_BYTES_MAX)
		return value_refused("a pattern of more than 1,024 bytes");
	piece = read_either(&r);
	if (r.bad.kind == VALUE_BOOL && r.at < r.size)
		fail(&r);
	if (r.bad.kind != VALUE_BOOL)
		return r.bad;
	m.steps = arena_new_array(arena, struct step, PATTERN_STEPS_MAX + 1);
	write_piece(&m, piece);
	if (m.full)
		return value_refused("a pattern with too many repeats");
	m.steps[m.count++] = (struct step){ .kind = STEP_DONE };
	return value_bool(machine_run(&m, text, arena));
}
