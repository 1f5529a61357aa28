/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kubernetes/predicates/match.h"

#include <string.h>

const char *placed_label_find(const void *block, at_t labels, const char *key)
{
	PLACED_EACH(block, placed_label, label, labels)
	{
		if (strcmp(placed_text(block, label->key), key) == 0)
			return placed_text(block, label->value);
	}
	return NULL;
}

static bool words_have(const void *block, at_t words, const char *text)
{
	PLACED_EACH(block, placed_word, word, words)
	{
		if (strcmp(placed_text(block, word->text), text) == 0)
			return true;
	}
	return false;
}

/* A decimal number that 64 bits hold. Canonical: no plus, no leading zeros, no minus zero. */
static bool number_read(const char *text, bool canonical, int64_t *ret)
{
	bool minus = *text == '-';
	uint64_t number = 0, most = (uint64_t)INT64_MAX + minus;

	if (minus || (*text == '+' && !canonical))
		text++;
	if (!*text || (canonical && *text == '0' && (text[1] || minus)))
		return false;
	for (; *text; text++) {
		uint64_t digit = (uint64_t)(*text - '0');

		if (*text < '0' || *text > '9' || number > (most - digit) / 10)
			return false;
		number = number * 10 + digit;
	}
	*ret = minus ? (int64_t)-number : (int64_t)number;
	return true;
}

/* Of the object: value, NULL where it has no such label. */
static bool requirement_meets(const void *block, const struct placed_requirement *wish,
			      const char *value)
{
	const struct placed_word *first = PLACED(block, placed_word, wish->values);
	int64_t limit, number;

	switch ((enum placed_op)wish->op) {
	case OP_IN: return value && words_have(block, wish->values, value);
	case OP_NOT_IN: return wish->values && !(value && words_have(block, wish->values, value));
	case OP_EXISTS: return value != NULL;
	case OP_NOT_EXISTS: return value == NULL;
	case OP_GT:
	case OP_LT:
		if (!value || !first || first->next ||
		    !number_read(placed_text(block, first->text), false, &limit) ||
		    !number_read(value, false, &number))
			return false;
		return wish->op == OP_GT ? number > limit : number < limit;
	case OP_EQUAL:
	case OP_NONE: break;
	}
	return false; /* not known: it fits nothing */
}

static bool requirements_meet(const void *block, at_t list, const void *other, at_t labels)
{
	PLACED_EACH(block, placed_requirement, wish, list)
	{
		const char *key = placed_text(block, wish->key);

		if (!requirement_meets(block, wish, placed_label_find(other, labels, key)))
			return false;
	}
	return true;
}

bool selector_matches(const void *block, const struct placed_selector *selector, const void *other,
		      at_t labels)
{
	return selector->given && requirements_meet(block, selector->requirements, other, labels);
}

/* The one field that a node has; only In and NotIn with one value can be asked of it. */
static bool fields_meet(const void *block, at_t list, const struct placed_node *node)
{
	PLACED_EACH(block, placed_requirement, wish, list)
	{
		const struct placed_word *first = PLACED(block, placed_word, wish->values);
		bool is_name = strcmp(placed_text(block, wish->key), "metadata.name") == 0;

		if ((wish->op != OP_IN && wish->op != OP_NOT_IN) || !first || first->next)
			return false;
		if (!requirement_meets(block, wish, is_name ? placed_text(node, node->name) : ""))
			return false;
	}
	return true;
}

bool node_terms_match(const void *block, at_t terms, const struct placed_node *node, bool fields)
{
	PLACED_EACH(block, placed_node_term, term, terms)
	{
		if ((term->labels || term->fields) &&
		    requirements_meet(block, term->labels, node, node->labels) &&
		    (!fields || fields_meet(block, term->fields, node)))
			return true;
	}
	return false;
}

bool pod_wants_node(const struct placed_pod *pod, const struct placed_node *node)
{
	PLACED_EACH(pod, placed_label, label, pod->node_selector)
	{
		const char *value =
			placed_label_find(node, node->labels, placed_text(pod, label->key));

		if (!value || strcmp(value, placed_text(pod, label->value)) != 0)
			return false;
	}
	return !pod->has_node_terms || node_terms_match(pod, pod->node_terms, node, true);
}

/* --- taints -------------------------------------------------------------------------------------------------- */

static bool numbers_meet(uint32_t op, const char *limit, const char *value)
{
	int64_t a, b;

	if (!number_read(limit, true, &a) || !number_read(value, true, &b))
		return false;
	return op == OP_GT ? b > a : b < a;
}

static bool toleration_meets(const struct placed_pod *pod,
			     const struct placed_toleration *toleration, const char *key,
			     const char *value, const char *effect)
{
	if (toleration->effect && strcmp(placed_text(pod, toleration->effect), effect) != 0)
		return false;
	if (toleration->key && strcmp(placed_text(pod, toleration->key), key) != 0)
		return false;
	if (toleration->op == OP_EQUAL)
		return strcmp(placed_text(pod, toleration->value), value) == 0;
	if (toleration->op == OP_GT || toleration->op == OP_LT)
		return numbers_meet(toleration->op, placed_text(pod, toleration->value), value);
	return toleration->op == OP_EXISTS;
}

bool tolerates(const struct placed_pod *pod, const char *key, const char *value, const char *effect)
{
	PLACED_EACH(pod, placed_toleration, toleration, pod->tolerations)
	{
		if (toleration_meets(pod, toleration, key, value, effect))
			return true;
	}
	return false;
}

/* The node is ready again, and the taint that said otherwise is taken away a moment later. */
static bool is_of_the_past(const struct placed_node *node, const char *key)
{
	return node->ready && (strcmp(key, "node.kubernetes.io/not-ready") == 0 ||
			       strcmp(key, "node.kubernetes.io/unreachable") == 0);
}

const struct placed_taint *untolerated(const struct placed_pod *pod, const struct placed_node *node)
{
	PLACED_EACH(node, placed_taint, taint, node->taints)
	{
		const char *effect = placed_text(node, taint->effect);

		if ((strcmp(effect, "NoSchedule") != 0 && strcmp(effect, "NoExecute") != 0) ||
		    is_of_the_past(node, placed_text(node, taint->key)))
			continue;
		if (!tolerates(pod, placed_text(node, taint->key), placed_text(node, taint->value),
			       effect))
			return taint;
	}
	return NULL;
}
