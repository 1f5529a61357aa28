/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From words to a tree: one function for each level of operators, the loosest first.
 *
 *	a ? b : c      ||      &&      == != < <= > >= in      + -      * / %      ! -      . [] ()
 *
 * Macros (has, exists, cel.bind and the like) name variables. Each gets a slot of its own: what cel.bind names is looked at later, among
 * variables that did not yet exist where it stands.
 */
#include <string.h>

#include "base/arena.h"
#include "base/check.h"
#include "engine/kubernetes/cel/lex.h"

enum {
	ITEMS_MAX = 256, /* of a list, arguments of a call */
	HEIGHT_MAX = 250, /* of the tree */
};

struct parser {
	struct source *source;
	struct word word; /* that comes next */
	uint32_t at; /* behind it */
	uint32_t depth, slots; /* slots: given out */
	uint32_t open; /* variables that can be named here */
	struct {
		struct string name;
		uint32_t slot;
	} variables[SLOTS_MAX];
};

static struct node *parse_any(struct parser *p);

static bool string_is(const struct string *s, const char *text)
{
	return s->size == strlen(text) && memcmp(s->data, text, s->size) == 0;
}

static bool string_is_one_of(const struct string *s, const char *const *texts)
{
	for (; *texts; texts++)
		if (string_is(s, *texts))
			return true;
	return false;
}

static void advance(struct parser *p)
{
	p->word = word_next(p->source, &p->at);
}

static bool is_sign(const struct parser *p, uint16_t sign)
{
	return p->word.kind == WORD_SIGN && p->word.sign == sign;
}

static bool take(struct parser *p, uint16_t sign)
{
	if (!is_sign(p, sign))
		return false;
	advance(p);
	return true;
}

static void expect(struct parser *p, char sign)
{
	if (!take(p, (uint16_t)sign))
		source_fail(p->source, ERR_INVALID, p->word.at, "\"%c\" is missing here", sign);
}

/* NULL when one of `on` is: then the error is known. */
static struct node *node_make(struct parser *p, enum node_kind kind, uint32_t at,
			      struct node *const *on, uint32_t count)
{
	struct node *node = arena_new(p->source->arena, struct node);

	*node = (struct node){ .kind = kind, .at = at, .count = count, .height = 1 };
	for (uint32_t i = 0; i < count; i++) {
		if (!on[i])
			return NULL;
		if (node->height <= on[i]->height)
			node->height = on[i]->height + 1;
	}
	if (node->height > HEIGHT_MAX)
		return source_fail(p->source, ERR_UNSUPPORTED, at,
				   "more than %d operators on each other are not read", HEIGHT_MAX);
	node->on = arena_new_array(p->source->arena, struct node *, count ? count : 1);
	if (count)
		memcpy(node->on, on, count * sizeof(struct node *));
	return node;
}

static struct node *node_two(struct parser *p, enum node_kind kind, uint32_t at, struct node *a,
			     struct node *b)
{
	return node_make(p, kind, at, (struct node *[]){ a, b }, 2);
}

static struct node *call_make(struct parser *p, uint32_t at, const char *name,
			      struct node *const *on, uint32_t count)
{
	struct node *node = node_make(p, NODE_CALL, at, on, count);

	if (node)
		node->name = (struct string){ name, strlen(name) };
	return node;
}

static struct node *literal_make(struct parser *p, uint32_t at, struct value value)
{
	struct node *node = node_make(p, NODE_LITERAL, at, NULL, 0);

	node->literal = value;
	return node;
}

/* Items up to the closing sign, which is taken; their number, or 0 after an error. */
static uint32_t parse_items(struct parser *p, char close, bool trailing_comma,
			    struct node *items[ITEMS_MAX])
{
	uint32_t count = 0;

	while (!p->source->failed && !is_sign(p, (uint16_t)close)) {
		if (count == ITEMS_MAX)
			source_fail(p->source, ERR_UNSUPPORTED, p->word.at,
				    "more than %d items are not read", ITEMS_MAX);
		else if (is_sign(p, '?'))
			source_fail(p->source, ERR_UNSUPPORTED, p->word.at,
				    "optional items of lists are not read");
		else
			items[count++] = parse_any(p);
		if (!take(p, ','))
			break;
		if (!trailing_comma && is_sign(p, (uint16_t)close))
			source_fail(p->source, ERR_INVALID, p->word.at,
				    "an expression is missing here");
	}
	expect(p, close);
	return p->source->failed ? 0 : count;
}

/* -- macros -- */

static int find_slot(const struct parser *p, const struct string *name)
{
	for (uint32_t i = p->open; i-- > 0;)
		if (p->variables[i].name.size == name->size &&
		    memcmp(p->variables[i].name.data, name->data, name->size) == 0)
			return (int)p->variables[i].slot;
	return -1;
}

/* The name of a macro's variable and the comma behind it. */
static bool parse_variable(struct parser *p, struct string *ret)
{
	struct word word = p->word;

	if (word.kind != WORD_NAME) {
		source_fail(p->source, ERR_INVALID, word.at,
			    "the name of a variable is missing here");
		return false;
	}
	advance(p);
	*ret = word.text;
	expect(p, ',');
	return !p->source->failed;
}

static bool push(struct parser *p, const struct string *name, uint32_t at, uint32_t *ret_slot)
{
	if (p->slots == SLOTS_MAX) {
		source_fail(p->source, ERR_UNSUPPORTED, at, "more than %d variables are not read",
			    SLOTS_MAX);
		return false;
	}
	*ret_slot = p->slots;
	p->variables[p->open].name = *name;
	p->variables[p->open++].slot = p->slots++;
	return true;
}

/* Behind "(": list.exists(x, ...) and its kin. */
static struct node *parse_each(struct parser *p, uint32_t at, enum each each, struct node *range)
{
	struct node *on[3] = { range }, *node;
	struct string name;
	uint32_t count = 2, slot;

	if (!parse_variable(p, &name) || !push(p, &name, at, &slot))
		return NULL;
	on[1] = parse_any(p);
	if (each == EACH_MAP && take(p, ',')) {
		on[2] = parse_any(p);
		count = 3;
	}
	p->open--;
	if (is_sign(p, ','))
		return source_fail(p->source, ERR_UNSUPPORTED, p->word.at,
				   "a macro with two variables is not read");
	expect(p, ')');
	node = node_make(p, NODE_EACH, at, on, count);
	if (node) {
		node->each = each;
		node->slot = slot;
	}
	return node;
}

static struct node *parse_bind(struct parser *p, uint32_t at)
{
	struct node *on[2], *node;
	struct string name;
	uint32_t slot;

	if (!parse_variable(p, &name))
		return NULL;
	on[0] = parse_any(p);
	expect(p, ',');
	if (p->source->failed || !push(p, &name, at, &slot))
		return NULL;
	on[1] = parse_any(p);
	p->open--;
	expect(p, ')');
	node = node_make(p, NODE_BIND, at, on, 2);
	if (node)
		node->slot = slot;
	return node;
}

static struct node *parse_has(struct parser *p, uint32_t at)
{
	struct node *node = parse_any(p);

	expect(p, ')');
	if (!node)
		return NULL;
	if (node->kind != NODE_SELECT || node->maybe)
		return source_fail(p->source, ERR_INVALID, at,
				   "has() asks for a field: has(device.attributes[\"d\"].name)");
	node->kind = NODE_HAS;
	return node;
}

static int each_find(const struct string *name)
{
	static const struct {
		const char *name;
		enum each each;
	} macros[] = {
		{ "exists", EACH_EXISTS },         { "all", EACH_ALL },
		{ "exists_one", EACH_EXISTS_ONE }, { "existsOne", EACH_EXISTS_ONE },
		{ "filter", EACH_FILTER },         { "map", EACH_MAP },
	};

	for (size_t i = 0; i < ARRAY_SIZE(macros); i++)
		if (string_is(name, macros[i].name))
			return (int)macros[i].each;
	return -1;
}

/* -- what stands alone -- */

static struct node *call_named(struct parser *p, const struct word *name, struct node *target)
{
	static const char *const optional[] = { "orValue", "or", "value", "hasValue", NULL };
	struct node *on[ITEMS_MAX + 1], *node;
	uint32_t count;

	on[0] = target;
	count = parse_items(p, ')', false, on + (target != NULL));
	if (p->source->failed)
		return NULL;
	node = node_make(p, NODE_CALL, name->at, on, count + (target != NULL));
	if (!node)
		return NULL;
	node->name = name->text;
	node->is_member = target != NULL;
	if (target && string_is_one_of(&name->text, optional))
		node->kind = NODE_OPTIONAL_CALL;
	return node;
}

/* optional.of(x) and cel.bind(...): names that begin with that of a library. Behind the first name; NULL without an error: it is none. */
static struct node *parse_qualified(struct parser *p, const struct word *library)
{
	static const char *const libraries[] = { "cel",     "optional", "sets",  "math",
						 "strings", "base64",   "ip",    "cidr",
						 "format",  "lists",    "regex", NULL };
	struct node *node;
	struct word name;

	if (find_slot(p, &library->text) >= 0 || !string_is_one_of(&library->text, libraries) ||
	    !take(p, '.'))
		return NULL;
	name = p->word;
	if (name.kind == WORD_NAME)
		advance(p);
	if (name.kind != WORD_NAME || !take(p, '('))
		return source_fail(p->source, ERR_INVALID, name.at, "a function is missing here");
	if (string_is(&library->text, "cel") && string_is(&name.text, "bind"))
		return parse_bind(p, library->at);
	if (!string_is(&library->text, "optional") ||
	    (!string_is(&name.text, "of") && !string_is(&name.text, "none")))
		return source_fail(p->source, ERR_UNSUPPORTED, library->at,
				   "the function %s.%s is not built here", library->text.data,
				   name.text.data);
	node = call_named(p, &name, NULL);
	if (node)
		node->kind = NODE_OPTIONAL_CALL;
	return node;
}

static struct node *name_make(struct parser *p, const struct word *word)
{
	static const char *const reserved[] = { "as",   "break",    "const",     "continue", "else",
						"for",  "function", "if",        "import",   "let",
						"loop", "package",  "namespace", "return",   "var",
						"void", "while",    "in",        NULL };
	static const char *const outside[] = { "null",   "bool",       "int",   "uint",
					       "double", "string",     "bytes", "list",
					       "map",    "type",       "dyn",   "null_type",
					       "google", "kubernetes", NULL };
	int slot = find_slot(p, &word->text);
	struct node *node;

	if (slot >= 0) {
		node = node_make(p, NODE_VARIABLE, word->at, NULL, 0);
		node->slot = (uint32_t)slot;
		return node;
	}
	if (string_is(&word->text, "device"))
		return node_make(p, NODE_DEVICE, word->at, NULL, 0);
	if (string_is_one_of(&word->text, outside))
		return source_fail(p->source, ERR_UNSUPPORTED, word->at, "\"%s\" is not read here",
				   word->text.data);
	return source_fail(p->source, ERR_INVALID, word->at,
			   string_is_one_of(&word->text, reserved)
				   ? "\"%s\" is a reserved word"
				   : "there is no \"%s\": an expression speaks of `device`",
			   word->text.data);
}

static struct node *parse_name(struct parser *p)
{
	struct word word = p->word;
	struct node *node;

	advance(p);
	if (string_is(&word.text, "true") || string_is(&word.text, "false"))
		return literal_make(p, word.at, value_bool(string_is(&word.text, "true")));
	if (is_sign(p, '{') || (is_sign(p, '.') && string_is(&word.text, "google")))
		return source_fail(p->source, ERR_UNSUPPORTED, word.at, "messages are not read");
	node = parse_qualified(p, &word);
	if (node || p->source->failed)
		return node;
	if (!take(p, '('))
		return name_make(p, &word);
	if (string_is(&word.text, "has"))
		return parse_has(p, word.at);
	return call_named(p, &word, NULL);
}

static struct node *parse_alone(struct parser *p)
{
	struct node *items[ITEMS_MAX], *node;
	struct word word = p->word;
	uint32_t count;

	switch (word.kind) {
	case WORD_NAME: return parse_name(p);
	case WORD_INT:
		advance(p);
		if (word.too_large)
			return source_fail(p->source, ERR_INVALID, word.at,
					   "this is no number of 64 bits");
		return literal_make(p, word.at, value_int(word.number));
	case WORD_STRING:
		advance(p);
		return literal_make(p, word.at, value_string(word.text.data, word.text.size));
	case WORD_SIGN:
	case WORD_END: break;
	}
	if (take(p, '(')) {
		node = parse_any(p);
		expect(p, ')');
		return node;
	}
	if (take(p, '[')) {
		count = parse_items(p, ']', true, items);
		return p->source->failed ? NULL : node_make(p, NODE_LIST, word.at, items, count);
	}
	if (is_sign(p, '{') || is_sign(p, '.'))
		return source_fail(p->source, ERR_UNSUPPORTED, word.at,
				   "maps and names that begin with a point are not read");
	return source_fail(p->source, ERR_INVALID, word.at, "an expression is missing here");
}

/* -- what follows: fields, items, calls -- */

static struct node *parse_field(struct parser *p, struct node *on)
{
	bool maybe = take(p, '?');
	struct word name = p->word;
	struct node *node;
	int each;

	if (name.kind != WORD_NAME || string_is(&name.text, "in") ||
	    string_is(&name.text, "true") || string_is(&name.text, "false") ||
	    string_is(&name.text, "null"))
		return source_fail(p->source, ERR_INVALID, name.at, "a name is missing here");
	advance(p);
	if (!maybe && take(p, '(')) {
		each = each_find(&name.text);
		return each >= 0 ? parse_each(p, name.at, (enum each)each, on)
				 : call_named(p, &name, on);
	}
	node = node_make(p, NODE_SELECT, name.at, &on, 1);
	if (node) {
		node->maybe = maybe;
		node->name = name.text;
	}
	return node;
}

static struct node *parse_member(struct parser *p)
{
	struct node *node = parse_alone(p);

	while (!p->source->failed) {
		uint32_t at = p->word.at;

		if (take(p, '.')) {
			node = parse_field(p, node);
		} else if (take(p, '[')) {
			bool maybe = take(p, '?');

			node = node_two(p, NODE_INDEX, at, node, parse_any(p));
			if (node)
				node->maybe = maybe;
			expect(p, ']');
		} else if (is_sign(p, '{')) {
			return source_fail(p->source, ERR_UNSUPPORTED, at, "messages are not read");
		} else {
			break;
		}
	}
	return p->source->failed ? NULL : node;
}

/* The lowest of all numbers stands behind a minus only. */
static struct node *parse_minus(struct parser *p, uint32_t at)
{
	struct node *node;

	if (p->word.kind == WORD_INT) {
		p->word.number = (int64_t)-(uint64_t)p->word.number;
		p->word.too_large = false;
		return parse_member(p);
	}
	node = parse_member(p);
	return call_make(p, at, "-_", &node, 1);
}

static struct node *parse_unary(struct parser *p)
{
	uint32_t at = p->word.at, count = 0;
	uint16_t sign = is_sign(p, '!') ? '!' : '-';
	struct node *node;

	while (take(p, sign))
		count++;
	if (!count)
		return parse_member(p);
	if (sign == '-' && count == 1)
		return parse_minus(p, at);
	node = parse_member(p);
	if (sign == '-' && node && node->kind == NODE_LITERAL)
		return source_fail(p->source, ERR_UNSUPPORTED, at, "one minus is enough");
	if (count % 2)
		node = call_make(p, at, sign == '!' ? "!_" : "-_", &node, 1);
	return node;
}

static struct node *parse_product(struct parser *p)
{
	struct node *node = parse_unary(p);

	while (!p->source->failed && (is_sign(p, '*') || is_sign(p, '/') || is_sign(p, '%'))) {
		uint16_t sign = p->word.sign;
		uint32_t at = p->word.at;

		advance(p);
		node = call_make(p, at,
				 sign == '*'   ? "_*_"
				 : sign == '/' ? "_/_"
					       : "_%_",
				 (struct node *[]){ node, parse_unary(p) }, 2);
	}
	return node;
}

static struct node *parse_sum(struct parser *p)
{
	struct node *node = parse_product(p);

	while (!p->source->failed && (is_sign(p, '+') || is_sign(p, '-'))) {
		uint16_t sign = p->word.sign;
		uint32_t at = p->word.at;

		advance(p);
		node = call_make(p, at, sign == '+' ? "_+_" : "_-_",
				 (struct node *[]){ node, parse_product(p) }, 2);
	}
	return node;
}

static struct node *relation_make(struct parser *p, uint16_t sign, uint32_t at, struct node *a,
				  struct node *b)
{
	switch (sign) {
	case SIGN2('=', '='): return node_two(p, NODE_EQUAL, at, a, b);
	case SIGN2('!', '='): return node_two(p, NODE_UNEQUAL, at, a, b);
	case '<': return call_make(p, at, "_<_", (struct node *[]){ a, b }, 2);
	case '>': return call_make(p, at, "_>_", (struct node *[]){ a, b }, 2);
	case SIGN2('<', '='): return call_make(p, at, "_<=_", (struct node *[]){ a, b }, 2);
	case SIGN2('>', '='): return call_make(p, at, "_>=_", (struct node *[]){ a, b }, 2);
	default: return node_two(p, NODE_IN, at, a, b);
	}
}

static bool is_relation(const struct parser *p)
{
	return is_sign(p, SIGN2('=', '=')) || is_sign(p, SIGN2('!', '=')) || is_sign(p, '<') ||
	       is_sign(p, '>') || is_sign(p, SIGN2('<', '=')) || is_sign(p, SIGN2('>', '=')) ||
	       (p->word.kind == WORD_NAME && string_is(&p->word.text, "in"));
}

static struct node *parse_relation(struct parser *p)
{
	struct node *node = parse_sum(p);

	while (!p->source->failed && is_relation(p)) {
		uint16_t sign = p->word.kind == WORD_SIGN ? p->word.sign : 0;
		uint32_t at = p->word.at;

		advance(p);
		node = relation_make(p, sign, at, node, parse_sum(p));
	}
	return node;
}

static struct node *parse_and(struct parser *p)
{
	struct node *node = parse_relation(p);
	uint32_t at = p->word.at;

	while (!p->source->failed && take(p, SIGN2('&', '&')))
		node = node_two(p, NODE_AND, at, node, parse_relation(p));
	return node;
}

static struct node *parse_or(struct parser *p)
{
	struct node *node = parse_and(p);
	uint32_t at = p->word.at;

	while (!p->source->failed && take(p, SIGN2('|', '|')))
		node = node_two(p, NODE_OR, at, node, parse_and(p));
	return node;
}

static struct node *parse_choice(struct parser *p)
{
	struct node *on[3];
	uint32_t at;

	on[0] = parse_or(p);
	at = p->word.at;
	if (!take(p, '?'))
		return on[0];
	on[1] = parse_or(p);
	expect(p, ':');
	on[2] = parse_any(p);
	return node_make(p, NODE_CHOICE, at, on, 3);
}

static struct node *parse_any(struct parser *p)
{
	struct node *node = NULL;

	if (p->depth == CEL_DEPTH_MAX)
		return source_fail(p->source, ERR_UNSUPPORTED, p->word.at,
				   "more than %d expressions within each other are not read",
				   CEL_DEPTH_MAX);
	p->depth++;
	if (!p->source->failed)
		node = parse_choice(p);
	p->depth--;
	return p->source->failed ? NULL : node;
}

struct node *parse(struct source *source)
{
	struct parser p = { .source = source };
	struct node *node;

	advance(&p);
	node = parse_any(&p);
	if (p.word.kind != WORD_END)
		source_fail(source, ERR_INVALID, p.word.at, "nothing more is expected here");
	return source->failed ? NULL : node;
}
