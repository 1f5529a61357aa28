/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kubernetes/cel/cel.h"

#include "base/arena.h"
#include "engine/kubernetes/cel/tree.h"

int cel_compile(struct arena *arena, const char *text, size_t size, const struct cel_program **ret,
		struct err *err)
{
	struct err own = { 0 };
	struct source source = { .size = size, .arena = arena, .err = err ? err : &own };
	struct cel_program *program;
	struct node *root;

	if (size > CEL_TEXT_MAX)
		return err_set(err, ERR_INVALID, "an expression has at most %d bytes",
			       CEL_TEXT_MAX);
	source.text = arena_strndup(arena, text, size);
	root = parse(&source);
	if (root)
		check(&source, root);
	if (source.failed)
		return -(int)source.err->code;
	program = arena_new(arena, struct cel_program);
	program->root = root;
	*ret = program;
	return 0;
}

enum cel_answer cel_ask(const struct cel_program *program, const struct cel_device *device,
			struct arena *scratch, const char **ret_why)
{
	struct value value;

	if (device->attribute_count > CEL_DEVICE_FIELDS_MAX ||
	    device->capacity_count > CEL_DEVICE_FIELDS_MAX)
		value = value_refused("the device has too many attributes");
	else
		value = evaluate(program->root, device, scratch);
	if (value.kind != VALUE_BOOL && !value_is_bad(&value))
		value = value_failed("the expression does not come to a yes or no");
	if (ret_why && value_is_bad(&value))
		*ret_why = value.why;
	if (value.kind == VALUE_REFUSED)
		return CEL_REFUSED;
	if (value.kind == VALUE_FAILED)
		return CEL_FAILED;
	return value.truth ? CEL_YES : CEL_NO;
}
