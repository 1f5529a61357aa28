/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/table/args.h"

#include <ctype.h>
#include <string.h>

#include "base/check.h"
#include "base/parse.h"

static const struct flag *find_long(const struct flag *const *flags, size_t count, const char *name,
				    size_t length)
{
	for (size_t i = 0; i < count; i++)
		if (strncmp(flags[i]->name, name, length) == 0 && !flags[i]->name[length])
			return flags[i];
	return NULL;
}

static const struct flag *find_letter(const struct flag *const *flags, size_t count, char letter)
{
	for (size_t i = 0; i < count; i++)
		if (flags[i]->letter == letter)
			return flags[i];
	return NULL;
}

static int unknown(const struct invocation *in, const struct flag *const *flags, size_t count,
		   const char *word, size_t length, struct err *err)
{
	const char *names[FLAGS_MAX], *hint = NULL;
	char text[80] = "";

	if (length > 2 && word[1] == '-' && length < sizeof(text)) {
		for (size_t i = 0; i < count; i++)
			names[i] = flags[i]->name;
		memcpy(text, word + 2, length - 2);
		hint = spelling_hint(text, names, count);
	}
	if (hint)
		return err_set(err, ERR_INVALID, "%s has no flag %.*s; did you mean --%s?",
			       in->command->name, (int)length, word, hint);
	for (size_t i = 0; i < count && length == 2; i++)
		if (flags[i]->name[0] == word[1] && !flags[i]->letter)
			return err_set(err, ERR_INVALID, "%s has no flag %.2s; write --%s",
				       in->command->name, word, flags[i]->name);
	return err_set(err, ERR_INVALID, "%s has no flag %.*s; `fairlead help %s` lists them",
		       in->command->name, (int)(length > 80 ? 80 : length), word,
		       in->command->name);
}

/* "a|b|c" in a flag's value are all it takes; a word in capitals among them, as in "DURATION|auto", stands for any text. */
static int check_choice(const struct flag *flag, const char *text, struct err *err)
{
	const char *at = flag->value;
	size_t length;

	if (!strchr(at, '|'))
		return 0;
	for (; *at; at += length + (at[length] == '|')) {
		length = strcspn(at, "|");
		if (isupper((unsigned char)*at) ||
		    (strlen(text) == length && strncmp(at, text, length) == 0))
			return 0;
	}
	return err_set(err, ERR_INVALID, "--%s takes one of %s, not \"%.60s\"", flag->name,
		       flag->value, text);
}

static int add_value(struct invocation *in, const struct flag *flag, const char *text,
		     struct err *err)
{
	int rc = flag->value ? check_choice(flag, text, err) : 0;

	if (rc < 0)
		return rc;
	if (in->value_count == FLAG_VALUES_MAX)
		return err_set(err, ERR_TOO_LARGE, "more than %d flags are given", FLAG_VALUES_MAX);
	if (!flag->repeat && flag->value && arg_flag(in, flag->name))
		return err_set(err, ERR_INVALID, "--%s is given twice", flag->name);
	in->values[in->value_count++] = (struct flag_value){ flag, text };
	return 0;
}

/* Words[at] starts with a dash. Returns the number of words used up. */
static int parse_flag(struct invocation *in, const struct flag *const *flags, size_t flag_count,
		      const char *const *words, int left, struct err *err)
{
	const char *word = words[0], *text = NULL;
	bool is_long = word[1] == '-';
	size_t length = is_long ? strcspn(word, "=") : 2;
	const struct flag *flag = is_long ? find_long(flags, flag_count, word + 2, length - 2)
					  : find_letter(flags, flag_count, word[1]);
	int rc, used = 1;

	if (!flag)
		return unknown(in, flags, flag_count, word, length, err);
	if (word[length])
		text = word + length + is_long;
	if (!flag->value) {
		if (text)
			return err_set(err, ERR_INVALID,
				       "--%s takes no value, so \"%.60s\" can't stand there",
				       flag->name, word);
		text = "";
	} else if (!text) {
		if (left < 2)
			return err_set(err, ERR_INVALID, "--%s needs a value: %s", flag->name,
				       flag->value);
		if (strncmp(words[1], "--", 2) == 0) /* its value was forgotten */
			return err_set(
				err, ERR_INVALID,
				"--%s needs a value: %s (if it is to be \"%.60s\", write --%s=%.60s)",
				flag->name, flag->value, words[1], flag->name, words[1]);
		text = words[1];
		used = 2;
	}
	rc = add_value(in, flag, text, err);
	return rc < 0 ? rc : used;
}

static int check_count(const struct invocation *in, struct err *err)
{
	const struct command *command = in->command;

	if (in->arg_count < command->least)
		return err_set(err, ERR_INVALID, "%s needs %s; see `fairlead help %s`",
			       command->name, command->arguments, command->name);
	if (command->most >= 0 && in->arg_count > command->most &&
	    strcmp(command->name, "jobs") == 0)
		return err_set(
			err, ERR_INVALID,
			"jobs lists jobs and does not take \"%.60s\"; `fairlead job ID` shows one, `fairlead jobs --name NAME` "
			"those of one name",
			in->args[0]);
	if (command->most >= 0 && in->arg_count > command->most)
		return err_set(err, ERR_INVALID,
			       "%s does not take \"%.60s\"; see `fairlead help %s`", command->name,
			       in->args[command->most], command->name);
	return 0;
}

int args_parse(struct invocation *in, const char *const *words, int count, struct err *err)
{
	const struct flag *flags[FLAGS_MAX];
	size_t flag_count = command_flags(in->command, flags);
	const char **args = arena_new_array(in->arena, const char *, (size_t)count + 1);
	int rc, i = 0;

	in->values = arena_new_array(in->arena, struct flag_value, FLAG_VALUES_MAX);
	while (i < count) {
		if (strcmp(words[i], "--") == 0) {
			for (i++; i < count; i++)
				args[in->arg_count++] = words[i];
			break;
		}
		if (words[i][0] == '-' && words[i][1]) {
			rc = parse_flag(in, flags, flag_count, words + i, count - i, err);
			if (rc < 0)
				return rc;
			i += rc;
			continue;
		}
		if (in->command->rest) {
			for (; i < count; i++)
				args[in->arg_count++] = words[i];
			break;
		}
		args[in->arg_count++] = words[i++];
	}
	in->args = args;
	if (arg_has(in, "help"))
		return INVOCATION_HELP;
	return check_count(in, err);
}

const char *arg_flag_at(const struct invocation *in, const char *name, size_t index)
{
	for (size_t i = 0; i < in->value_count; i++)
		if (strcmp(in->values[i].flag->name, name) == 0 && index-- == 0)
			return in->values[i].text;
	return NULL;
}

const char *arg_flag(const struct invocation *in, const char *name)
{
	return arg_flag_at(in, name, 0);
}

bool arg_has(const struct invocation *in, const char *name)
{
	return arg_flag(in, name) != NULL;
}

int arg_job(const char *text, uint32_t *ret, struct err *err)
{
	int64_t number;
	struct err why;

	if (parse_int(text, 1, UINT32_MAX, &number, &why) < 0)
		return err_set(err, ERR_INVALID,
			       "\"%.60s\" is not the number of a job; `fairlead jobs` shows them",
			       text);
	*ret = (uint32_t)number;
	return 0;
}

int arg_number(const struct invocation *in, const char *name, int64_t min, int64_t max,
	       int64_t standard, int64_t *ret, struct err *err)
{
	const char *text = arg_flag(in, name);
	struct err why;

	*ret = standard;
	if (text && parse_int(text, min, max, ret, &why) < 0)
		return err_set(err, ERR_INVALID, "--%s: %s", name, why.text);
	return 0;
}
