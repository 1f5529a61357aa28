/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kubernetes/predicates/block.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "engine/kubernetes/quantity.h"
#include "engine/kubernetes/reading.h"

enum { AMOUNT_MAX = 64, ROOM_LEAST = 4096, ROOM_TIMES = 16, LABEL_VALUE_MAX = 63 };

void *block_init(struct block *block, size_t json_size, size_t struct_size)
{
	*block = (struct block){ 0 };
	block->room = json_size < PLACED_MAX / ROOM_TIMES ? json_size * ROOM_TIMES : PLACED_MAX;
	block->room = block->room < ROOM_LEAST ? ROOM_LEAST : block->room;
	block->data = malloc(block->room);
	CHECK(block->data && struct_size <= block->room);
	memset(block->data, 0, struct_size);
	block->size = struct_size;
	return block->data;
}

void block_deinit(struct block *block)
{
	free(block->data);
	*block = (struct block){ 0 };
}

int block_take(struct block *block, struct json_reader *r, void **ret, struct err *err)
{
	if (pull_finish(r, err) < 0)
		return err ? -(int)err->code : -(int)ERR_INVALID;
	if (block->full)
		return err_set(err, ERR_INVALID, "it says more than Fairlead keeps, %d KiB",
			       PLACED_MAX / 1024);
	*ret = realloc(block->data, block->size);
	CHECK(*ret);
	block->data = NULL;
	return 0;
}

static void *block_add(struct block *block, size_t size, size_t align)
{
	size_t at = (block->size + align - 1) / align * align;

	if (block->full || size > block->room || at > block->room - size) {
		block->full = true;
		return NULL;
	}
	memset(block->data + block->size, 0, at - block->size); /* equal objects are equal blocks */
	block->size = at + size;
	return block->data + at;
}

at_t block_text(struct block *block, const char *text, size_t size)
{
	char *copy = size ? block_add(block, size + 1, 1) : NULL;

	if (!copy)
		return 0;
	memcpy(copy, text, size);
	copy[size] = '\0';
	return (at_t)(copy - block->data);
}

void *chain_add(struct block *block, struct chain *chain, size_t size)
{
	char *link = block_add(block, size, sizeof(int64_t));
	at_t at;

	CHECK(size <= LINK_MAX);
	if (!link) {
		memset(block->spill, 0, sizeof(block->spill));
		return block->spill;
	}
	memset(link, 0, size);
	at = (at_t)(link - block->data);
	if (chain->last)
		memcpy(block->data + chain->last, &at, sizeof(at));
	else
		chain->first = at;
	chain->last = at;
	return link;
}

at_t read_text(struct json_reader *r, struct block *block)
{
	struct json_slice slice = { 0 };
	char *copy;

	if (pull_peek(r) != PULL_STRING) {
		pull_skip(r);
		return 0;
	}
	pull_string(r, &slice);
	if (r->problem)
		return 0;
	if (!slice.escaped)
		return block_text(block, slice.data, slice.size);
	copy = block_add(block, slice.size + 1, 1);
	if (!copy)
		return 0;
	pull_copy(r, &slice, copy, slice.size + 1);
	return (at_t)(copy - block->data);
}

bool read_flag(struct json_reader *r)
{
	bool flag = false;

	if (pull_peek(r) == PULL_BOOL)
		pull_bool(r, &flag);
	else
		pull_skip(r);
	return flag;
}

int64_t read_int64(struct json_reader *r, int64_t otherwise)
{
	int64_t number = otherwise;

	if (pull_peek(r) == PULL_NUMBER)
		pull_int(r, &number);
	else
		pull_skip(r);
	return number;
}

int32_t read_int32(struct json_reader *r, int32_t otherwise)
{
	int64_t number = read_int64(r, otherwise);

	return number > INT32_MAX || number < INT32_MIN ? otherwise : (int32_t)number;
}

at_t read_words(struct json_reader *r, struct block *block)
{
	struct chain chain = { 0 };

	if (!enter_array(r))
		return 0;
	while (pull_element(r)) {
		at_t text = read_text(r, block);
		struct placed_word *word = chain_add(block, &chain, sizeof(*word));

		word->text = text;
	}
	return chain.first;
}

static at_t read_key(struct json_reader *r, struct block *block, const struct json_slice *key)
{
	char *copy;

	if (!key->escaped)
		return block_text(block, key->data, key->size);
	copy = block_add(block, key->size + 1, 1);
	if (!copy)
		return 0;
	pull_copy(r, key, copy, key->size + 1);
	return (at_t)(copy - block->data);
}

at_t read_labels_of(struct json_reader *r, struct block *block)
{
	struct chain chain = { 0 };
	struct json_slice key;

	if (!enter_object(r))
		return 0;
	while (pull_member(r, &key)) {
		at_t name = read_key(r, block, &key), value = read_text(r, block);
		struct placed_label *label = chain_add(block, &chain, sizeof(*label));

		label->key = name;
		label->value = value;
	}
	return chain.first;
}

bool text_is(const struct block *block, at_t text, const char *other)
{
	return strcmp(placed_text(block->data, text), other) == 0;
}

static uint32_t op_of(const struct block *block, at_t text)
{
	static const struct {
		const char *name;
		uint32_t op;
	} ops[] = { { "In", OP_IN },
		    { "NotIn", OP_NOT_IN },
		    { "Exists", OP_EXISTS },
		    { "Gt", OP_GT },
		    { "DoesNotExist", OP_NOT_EXISTS },
		    { "Lt", OP_LT } };

	for (size_t i = 0; i < ARRAY_SIZE(ops); i++)
		if (text_is(block, text, ops[i].name))
			return ops[i].op;
	return OP_NONE;
}

static bool is_letter_or_digit(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* No label can have another value. "" can. */
static bool is_label_value(const char *text)
{
	size_t size = strlen(text);

	if (!size)
		return true;
	if (size > LABEL_VALUE_MAX || !is_letter_or_digit(text[0]) ||
	    !is_letter_or_digit(text[size - 1]))
		return false;
	for (; *text; text++)
		if (!is_letter_or_digit(*text) && !strchr("-_.", *text))
			return false;
	return true;
}

static bool are_label_values(const struct block *block, at_t values)
{
	PLACED_EACH(block->data, placed_word, word, values)
	{
		if (!is_label_value(placed_text(block->data, word->text)))
			return false;
	}
	return true;
}

/* fields: of a node, not labels. A value that no label can have makes a wish for labels one that nothing meets, whatever it says. */
static void read_requirement(struct json_reader *r, struct block *block, struct chain *chain,
			     bool fields)
{
	struct placed_requirement *link, found = { 0 };
	struct json_slice key;

	if (!enter_object(r))
		return;
	while (pull_member(r, &key)) {
		if (pull_key_is(&key, "key"))
			found.key = read_text(r, block);
		else if (pull_key_is(&key, "operator"))
			found.op = op_of(block, read_text(r, block));
		else if (pull_key_is(&key, "values"))
			found.values = read_words(r, block);
		else
			pull_skip(r);
	}
	if (!fields && !are_label_values(block, found.values))
		found.op = OP_NONE;
	link = chain_add(block, chain, sizeof(*link));
	*link = found;
}

static void read_requirements(struct json_reader *r, struct block *block, struct chain *chain,
			      bool fields)
{
	if (!enter_array(r))
		return;
	while (pull_element(r))
		read_requirement(r, block, chain, fields);
}

/* matchLabels: {a: b} is the same as a In [b]. */
static void read_match_labels(struct json_reader *r, struct block *block, struct chain *chain)
{
	at_t labels = read_labels_of(r, block);

	PLACED_EACH(block->data, placed_label, label, labels)
	{
		struct chain words = { 0 };
		struct placed_word *word = chain_add(block, &words, sizeof(*word));
		struct placed_requirement *link;

		word->text = label->value;
		link = chain_add(block, chain, sizeof(*link));
		link->key = label->key;
		link->op = OP_IN;
		link->values = words.first;
	}
}

void read_selector(struct json_reader *r, struct block *block, struct placed_selector *ret)
{
	struct chain chain = { 0 };
	struct json_slice key;

	*ret = (struct placed_selector){ 0 };
	if (!enter_object(r))
		return;
	while (pull_member(r, &key)) {
		if (pull_key_is(&key, "matchLabels"))
			read_match_labels(r, block, &chain);
		else if (pull_key_is(&key, "matchExpressions"))
			read_requirements(r, block, &chain, false);
		else
			pull_skip(r);
	}
	ret->given = 1;
	ret->requirements = chain.first;
}

static void read_node_term(struct json_reader *r, struct block *block, struct chain *terms)
{
	struct chain labels = { 0 }, fields = { 0 };
	struct placed_node_term *term;
	struct json_slice key;

	if (!enter_object(r))
		return;
	while (pull_member(r, &key)) {
		if (pull_key_is(&key, "matchExpressions"))
			read_requirements(r, block, &labels, false);
		else if (pull_key_is(&key, "matchFields"))
			read_requirements(r, block, &fields, true);
		else
			pull_skip(r);
	}
	term = chain_add(block, terms, sizeof(*term));
	term->labels = labels.first;
	term->fields = fields.first;
}

bool read_node_selector(struct json_reader *r, struct block *block, at_t *ret_terms)
{
	struct chain terms = { 0 };
	struct json_slice key;

	if (!enter_object(r))
		return false;
	while (pull_member(r, &key)) {
		if (!pull_key_is(&key, "nodeSelectorTerms")) {
			pull_skip(r);
			continue;
		}
		if (enter_array(r))
			while (pull_element(r))
				read_node_term(r, block, &terms);
	}
	*ret_terms = terms.first;
	return true;
}

static bool read_quantity(struct json_reader *r, int64_t *ret)
{
	char text[AMOUNT_MAX] = "";
	const char *from;

	if (pull_peek(r) == PULL_STRING) {
		read_cut(r, text, sizeof(text));
	} else {
		from = r->at;
		pull_skip(r);
		if (!r->problem && (size_t)(r->at - from) < sizeof(text))
			memcpy(text, from, (size_t)(r->at - from));
	}
	return !r->problem && quantity_parse(text, ret) == 0;
}

at_t read_amounts(struct json_reader *r, struct block *block)
{
	struct chain chain = { 0 };
	struct json_slice key;

	if (!enter_object(r))
		return 0;
	while (pull_member(r, &key)) {
		at_t name = read_key(r, block, &key);
		struct placed_amount *amount;
		int64_t milli = 0;

		if (!read_quantity(r, &milli))
			continue;
		amount = chain_add(block, &chain, sizeof(*amount));
		amount->name = name;
		amount->milli = milli;
	}
	return chain.first;
}
