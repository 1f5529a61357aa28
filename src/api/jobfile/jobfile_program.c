/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a job runs, as far as its run time may depend on it: programs by name, flags by name, and no values.
 *
 *	python3 /home/vera/train.py --lr 0.1 --out=/data/7	python# train.py --lr _ --out
 *	python3 -c 'print(1)'					python# -c print(#)
 *	torchrun --nproc_per_node 8 train.py big		torchrun --nproc_per_node _ train.py _
 *
 * The first word is the program. The first word behind it that is neither a flag nor a number is its script or its code; so is each word
 * that ends as a script does. A run of digits in them counts as one sign, and a run of values as one value. The text of a job file's
 * script is taken as it is, but for its digits.
 */
#include <string.h>

#include "api/jobfile/jobfile.h"
#include "base/buf.h"
#include "core/model/edit.h"

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* The text with each run of digits as one '#'. */
static void add_folded(struct buf *out, const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (!is_digit(text[i]))
			buf_addc(out, text[i]);
		else if (!i || !is_digit(text[i - 1]))
			buf_addc(out, '#');
}

/* Without the folders before it. */
static void add_name(struct buf *out, const char *word)
{
	const char *slash = strrchr(word, '/'), *name = slash ? slash + 1 : word;

	add_folded(out, name, strlen(name));
}

static bool is_number(const char *word)
{
	return word[strspn(word, "0123456789.,:e+-")] == '\0';
}

static bool is_script(const char *word)
{
	static const char *const ends[] = {
		".py", ".sh", ".jl", ".R", ".pl", ".lua", ".rb", ".js"
	};
	const char *end = strrchr(word, '.');

	for (size_t i = 0; end && i < sizeof(ends) / sizeof(ends[0]); i++)
		if (strcmp(end, ends[i]) == 0)
			return true;
	return false;
}

enum word { WORD_FLAG, WORD_PROGRAM, WORD_CODE, WORD_VALUE };

/* script: an earlier one was a program behind the first word. */
static enum word word_kind(const char *const *argv, size_t at, bool script)
{
	const char *word = argv[at];

	if (at == 0)
		return WORD_PROGRAM;
	if (strcmp(argv[at - 1], "-c") == 0)
		return WORD_CODE;
	if (word[0] == '-' && !is_number(word))
		return WORD_FLAG;
	return is_script(word) || (!script && !is_number(word)) ? WORD_PROGRAM : WORD_VALUE;
}

static void add_words(struct buf *out, const char *const *argv)
{
	enum word kind, before = WORD_PROGRAM;
	bool script = false;

	for (size_t i = 0; argv[i]; i++, before = kind) {
		kind = word_kind(argv, i, script);
		script = script || (i && (kind == WORD_PROGRAM || kind == WORD_CODE));
		if (kind == WORD_VALUE && before == WORD_VALUE)
			continue;
		if (i)
			buf_addc(out, ' ');
		switch (kind) {
		case WORD_FLAG: add_folded(out, argv[i], strcspn(argv[i], "=")); break;
		case WORD_PROGRAM: add_name(out, argv[i]); break;
		case WORD_CODE: add_folded(out, argv[i], strlen(argv[i])); break;
		case WORD_VALUE: buf_addc(out, '_'); break;
		}
	}
}

static void add_program(struct buf *out, const char *const *argv, const char *script)
{
	if (argv)
		add_words(out, argv);
	else if (script)
		add_folded(out, script, strlen(script));
	buf_addc(out, '\n');
}

void job_body_program_say(const struct job_body *body, struct buf *out)
{
	add_program(out, body->argv, body->script);
	for (uint32_t i = 0; i < body->role_count; i++)
		add_program(out, body->roles[i].argv, body->roles[i].script);
}

int64_t job_body_program(const struct job_body *body)
{
	AUTO_BUF text = BUF_INIT;
	int64_t hash;

	if (body->pod_count)
		return 0;
	job_body_program_say(body, &text);
	hash = (int64_t)(bytes_hash(buf_text(&text), text.size) >> 1);
	return hash ? hash : 1;
}
