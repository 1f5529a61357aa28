/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/local/fact_file.h"

#include <string.h>

#include "base/json.h"

static const char *const kind_names[] = {
	[ENGINE_READY] = "ready",   [ENGINE_STARTED] = "started", [ENGINE_EXITED] = "exited",
	[ENGINE_REPORT] = "report", [ENGINE_GONE] = "gone",
};

static const char *const cause_names[] = {
	[ENGINE_CAUSE_EXIT] = "exit",           [ENGINE_CAUSE_SIGNAL] = "signal",
	[ENGINE_CAUSE_STOPPED] = "stopped",     [ENGINE_CAUSE_MEMORY] = "memory",
	[ENGINE_CAUSE_START] = "start",         [ENGINE_CAUSE_LOST] = "lost",
	[ENGINE_CAUSE_LOG_LIMIT] = "log_limit", [ENGINE_CAUSE_NO_SPACE] = "no_space",
	[ENGINE_CAUSE_MACHINE] = "machine",
};

enum {
	KIND_COUNT = sizeof(kind_names) / sizeof(kind_names[0]),
	CAUSE_COUNT = sizeof(cause_names) / sizeof(cause_names[0])
};

static void add_text(struct buf *out, const char *key, const char *text)
{
	buf_addf(out, ",\"%s\":", key);
	buf_add_json(out, text, strlen(text));
}

static void add_exit(struct buf *out, const struct engine_fact *fact)
{
	buf_addf(
		out,
		",\"cause\":\"%s\",\"code\":%d,\"signal\":%d,\"never_ran\":%s,\"memory_enforced\":%s,\"peak_memory_mib\":%lld",
		cause_names[fact->cause], fact->code, fact->signal,
		fact->never_ran ? "true" : "false", fact->memory_enforced ? "true" : "false",
		(long long)fact->peak_memory_mib);
	if (fact->fault)
		add_text(out, "fault", fault_word(fact->fault));
	add_text(out, "text", fact->text);
}

static void add_report(struct buf *out, const struct engine_fact *fact)
{
	buf_addf(out, ",\"number\":%llu,\"step\":%lld,\"checkpoint\":%s",
		 (unsigned long long)fact->number, (long long)fact->step,
		 fact->checkpoint ? "true" : "false");
	if (fact->checkpoint) {
		buf_addf(out, ",\"bytes\":%lld", (long long)fact->bytes);
		add_text(out, "path", fact->path);
	}
}

void fact_format(struct buf *out, const struct engine_fact *fact)
{
	buf_addf(out, "{\"kind\":\"%s\",\"attempt\":%llu,\"rank\":%u,\"time_ms\":%lld",
		 kind_names[fact->kind], (unsigned long long)fact->attempt, fact->rank,
		 (long long)fact->time_ms);
	if (fact->pid)
		buf_addf(out, ",\"pid\":%lld", (long long)fact->pid);
	if (fact->kind == ENGINE_EXITED)
		add_exit(out, fact);
	else if (fact->kind == ENGINE_REPORT)
		add_report(out, fact);
	else if (fact->text[0])
		add_text(out, "text", fact->text);
	buf_adds(out, "}\n");
}

static int find_name(struct json_reader *r, const char *const *names, int count)
{
	struct json_slice text;

	pull_string(r, &text);
	for (int i = 0; i < count && !r->problem; i++)
		if (names[i] &&
		    pull_key_is(&text, names[i])) /* what no shepherd says has no word */
			return i;
	pull_fail(r, "a word that this version does not know");
	return 0;
}

/* One of a later version counts as none: it only says on whom else nothing is started. */
static enum engine_fault find_fault(struct json_reader *r)
{
	struct json_slice text;

	pull_string(r, &text);
	for (int i = 0; i < ENGINE_FAULTS && !r->problem; i++)
		if (pull_key_is(&text, fault_word((enum engine_fault)i)))
			return (enum engine_fault)i;
	return ENGINE_FAULT_NONE;
}

static void copy_text(struct json_reader *r, char *out, size_t room)
{
	struct json_slice text;

	pull_string(r, &text);
	pull_copy(r, &text, out, room);
}

static int small_int(struct json_reader *r)
{
	int64_t number = 0;

	pull_int(r, &number);
	if (number < INT32_MIN || number > INT32_MAX)
		pull_fail(r, "a number out of range");
	return (int)number;
}

static void member_read(struct json_reader *r, const struct json_slice *key,
			struct engine_fact *fact)
{
	if (pull_key_is(key, "kind"))
		fact->kind = (enum engine_fact_kind)find_name(r, kind_names, KIND_COUNT);
	else if (pull_key_is(key, "attempt"))
		pull_uint(r, &fact->attempt);
	else if (pull_key_is(key, "rank"))
		fact->rank = (uint32_t)small_int(r);
	else if (pull_key_is(key, "time_ms"))
		pull_int(r, &fact->time_ms);
	else if (pull_key_is(key, "pid"))
		pull_int(r, &fact->pid);
	else if (pull_key_is(key, "cause"))
		fact->cause = (enum engine_cause)find_name(r, cause_names, CAUSE_COUNT);
	else if (pull_key_is(key, "code"))
		fact->code = small_int(r);
	else if (pull_key_is(key, "signal"))
		fact->signal = small_int(r);
	else if (pull_key_is(key, "never_ran"))
		pull_bool(r, &fact->never_ran);
	else if (pull_key_is(key, "memory_enforced"))
		pull_bool(r, &fact->memory_enforced);
	else if (pull_key_is(key, "peak_memory_mib"))
		pull_int(r, &fact->peak_memory_mib);
	else if (pull_key_is(key, "fault"))
		fact->fault = find_fault(r);
	else if (pull_key_is(key, "text"))
		copy_text(r, fact->text, sizeof(fact->text));
	else if (pull_key_is(key, "number"))
		pull_uint(r, &fact->number);
	else if (pull_key_is(key, "step"))
		pull_int(r, &fact->step);
	else if (pull_key_is(key, "checkpoint"))
		pull_bool(r, &fact->checkpoint);
	else if (pull_key_is(key, "bytes"))
		pull_int(r, &fact->bytes);
	else if (pull_key_is(key, "path"))
		copy_text(r, fact->path, sizeof(fact->path));
	else
		pull_skip(r);
}

int fact_parse(const char *text, size_t size, struct engine_fact *ret, struct err *err)
{
	struct engine_fact fact = { .step = -1 };
	struct json_reader r;
	struct json_slice key;

	pull_init(&r, text, size);
	pull_object(&r);
	while (pull_member(&r, &key))
		member_read(&r, &key, &fact);
	if (pull_finish(&r, err) < 0)
		return -1;
	*ret = fact;
	return 0;
}
