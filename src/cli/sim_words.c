/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sim_words.h"

char **sim_words(struct invocation *in, const char *name, int *ret_count)
{
	char **words =
		arena_new_array(in->arena, char *, in->value_count * 2 + (size_t)in->arg_count + 3);
	int count = 0;

	words[count++] = arena_strdup(in->arena, name);
	for (size_t i = 0; i < in->value_count; i++) {
		words[count++] = arena_printf(in->arena, "--%s", in->values[i].flag->name);
		if (in->values[i].flag->value)
			words[count++] = arena_strdup(in->arena, in->values[i].text);
	}
	words[count++] = arena_strdup(in->arena, "--");
	for (int i = 0; i < in->arg_count; i++)
		words[count++] = arena_strdup(in->arena, in->args[i]);
	*ret_count = count;
	return words;
}
