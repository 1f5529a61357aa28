/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/submission/foreign.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/parse.h"

enum value { SAME, COUNT, MINUTES, MEBIBYTES, SECONDS, ARRAY, NONE };
enum { PATH_MAX_BYTES = 512, DEPTH_MAX = 32, TEXT_SHOWN = 30 };

struct row {
	enum foreign_kind kind;
	const char *name;
	enum value value;
	const char *field, *remark;
};

static const struct row rows[] = {
#define FOREIGN(kind, name, value, field, remark) { FOREIGN_##kind, name, value, field, remark },
#include "cli/submission/foreign.def"
#undef FOREIGN
};

const char *foreign_name(enum foreign_kind kind)
{
	switch (kind) {
	case FOREIGN_NONE: return "nothing known";
	case FOREIGN_SBATCH: return "an sbatch script";
	case FOREIGN_SCRIPT: return "a script";
	case FOREIGN_SKYPILOT: return "a SkyPilot task";
	case FOREIGN_DSTACK: return "a dstack configuration";
	case FOREIGN_KUBERNETES: return "a Kubernetes object";
	}
	UNREACHABLE();
}

/* --- recognising -------------------------------------------------------------------------------------------------------- */

/* The value of a key at the beginning of a line, up to the line's end; NULL = there is none. */
static const char *top_value(const char *text, const char *key, size_t *ret_size)
{
	const size_t length = strlen(key);

	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		if (strncmp(line, key, length) != 0 || line[length] != ':')
			continue;
		line += length + 1;
		line += strspn(line, " \t\"'");
		*ret_size = strcspn(line, " \t\"'#\r\n");
		return line;
	}
	return NULL;
}

static bool has_key(const char *text, const char *key)
{
	size_t size;

	return top_value(text, key, &size) != NULL;
}

static bool is_dstack_type(const char *text)
{
	static const char *const types[] = { "task",  "dev-environment", "service",
					     "fleet", "volume",          "gateway" };
	size_t size;
	const char *type = top_value(text, "type", &size);

	for (size_t i = 0; type && i < ARRAY_SIZE(types); i++)
		if (strlen(types[i]) == size && strncmp(type, types[i], size) == 0)
			return true;
	return false;
}

enum foreign_kind foreign_recognise(const char *text)
{
	if (strncmp(text, "#SBATCH", 7) == 0 || strstr(text, "\n#SBATCH"))
		return FOREIGN_SBATCH;
	if (strncmp(text, "#!", 2) == 0)
		return FOREIGN_SCRIPT;
	if (has_key(text, "apiVersion") && has_key(text, "kind"))
		return FOREIGN_KUBERNETES;
	if (is_dstack_type(text))
		return FOREIGN_DSTACK;
	if (has_key(text, "run") || has_key(text, "num_nodes") || has_key(text, "file_mounts") ||
	    (has_key(text, "setup") && has_key(text, "resources")))
		return FOREIGN_SKYPILOT;
	return FOREIGN_NONE;
}

/* --- values ------------------------------------------------------------------------------------------------------------- */

/* sbatch's times: minutes, minutes:seconds, hours:minutes:seconds, days-hours and so on. */
static void add_minutes(const char *text, struct buf *out)
{
	unsigned int first = 0, second = 0, third = 0;
	const char *dash = strchr(text, '-');
	int64_t ms;

	const bool known = parse_duration(text, &ms, NULL) == 0;

	if (!known && dash && sscanf(text, "%u-%u:%u", &first, &second, &third) >= 2)
		buf_addf(out, "%u-%02u:%02u:00", first, second, third);
	else if (!known && !dash && sscanf(text, "%u:%u", &first, &second) == 2)
		buf_addf(out, "%um%us", first, second);
	else if (!known && !dash && text[strspn(text, "0123456789")] == '\0')
		buf_addf(out, "%sm", text);
	else
		buf_adds(out, text);
}

static bool is_number(const char *text)
{
	return *text && text[strspn(text, "0123456789")] == '\0';
}

/* "4", "gpu:4", "gpu:h100:4", "h100:4", "H100" */
static void add_count(const char *text, struct buf *out)
{
	const char *last = strrchr(text, ':'), *count = last ? last + 1 : text;
	char model[64];

	if (strncmp(text, "gpu:", 4) == 0)
		text += 4;
	snprintf(model, sizeof(model), "%.*s", (int)strcspn(text, ":{"), text);
	if (is_number(text))
		buf_adds(out, text);
	else if (!*model || *text == '{')
		buf_adds(out, "{model: NAME, count: N}");
	else
		buf_addf(out, "{model: %s, count: %s}", model,
			 last && is_number(count) ? count : "1");
}

/* "0-99%4": a hundred, four at once. Another first number is the reader's to mend. */
static void add_array(const char *text, struct buf *out)
{
	const char *percent = strchr(text, '%');
	unsigned int first, last;

	if (sscanf(text, "%u-%u", &first, &last) == 2 && last >= first && !strchr(text, ','))
		buf_addf(out, "%u", last - first + 1);
	else
		buf_adds(out, "N");
	if (percent)
		buf_adds(out, percent);
}

static void add_value(const struct row *row, const char *text, struct buf *out)
{
	buf_adds(out, row->field);
	if (!*text || row->value == NONE)
		return;
	buf_adds(out, ": ");
	switch (row->value) {
	case SAME:
	case NONE: buf_adds(out, text); break;
	case COUNT: add_count(text, out); break;
	case MINUTES: add_minutes(text, out); break;
	case MEBIBYTES: buf_addf(out, is_number(text) ? "%sMiB" : "%s", text); break;
	case SECONDS: buf_addf(out, "%ss", text); break;
	case ARRAY: add_array(text, out); break;
	}
}

/* --- rows --------------------------------------------------------------------------------------------------------------- */

/* "  12  --time=1:00:00                 limit: 1:00:00" */
static void add_line(struct buf *out, unsigned int number, const char *theirs, size_t size,
		     const struct row *row, const char *value)
{
	const size_t from = out->size + 6;

	buf_addf(out, "%4u  ", number);
	text_for_terminal(out, theirs, size > TEXT_SHOWN ? TEXT_SHOWN : size);
	if (size > TEXT_SHOWN)
		buf_adds(out, "..");
	while (out->size - from < TEXT_SHOWN + 4)
		buf_addc(out, ' ');
	if (!row) {
		buf_adds(out, "- (no field is the same; `fairlead help job-file` lists all)\n");
		return;
	}
	if (*row->field)
		add_value(row, value, out);
	else
		buf_addc(out, '-');
	if (*row->remark)
		buf_addf(out, " (%s)", row->remark);
	buf_addc(out, '\n');
}

/* --- sbatch ------------------------------------------------------------------------------------------------------------- */

/* "job-name|J" is --job-name and -J. */
static bool option_is(const char *name, const char *option, size_t size)
{
	const size_t length = strcspn(name, "|");

	if (option[1] == '-')
		return size - 2 == length && strncmp(option + 2, name, length) == 0;
	return name[length] && option[1] == name[length + 1];
}

static const struct row *option_find(const char *option, size_t size)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].kind == FOREIGN_SBATCH && option_is(rows[i].name, option, size))
			return &rows[i];
	return NULL;
}

/* One option at `at`: "--time=1:00:00", "--time 1:00:00", "-t 1:00:00", "-t1:00:00". Returns its size with the value. */
static size_t option_read(const char *at, const struct row **ret, char value[256])
{
	const bool is_long = at[1] == '-';
	const size_t name = is_long                  ? strcspn(at, "= \t\r\n")
			    : at[1] && at[1] != '\n' ? 2
						     : 1; /* a lone dash */
	size_t gap = at[name] == '=' ? 1 : strspn(at + name, " \t"), size = 0;

	*ret = option_find(at, name);
	value[0] = '\0';
	if (at[name + gap] != '-' && at[name + gap] != '#')
		size = strcspn(at + name + gap, " \t\r\n");
	snprintf(value, 256, "%.*s", (int)size, at + name + gap);
	return size ? name + gap + size : name;
}

static void explain_options(const char *line, size_t size, unsigned int number, struct buf *out)
{
	const char *at = line + 7, *end = line + size;

	while (at < end) {
		const struct row *row;
		char value[256];
		size_t used;

		at += strspn(at, " \t\r");
		if (at >= end || *at == '#')
			return;
		if (*at != '-') {
			at += strcspn(at, " \t\r\n");
			continue;
		}
		used = option_read(at, &row, value);
		add_line(out, number, at, used, row, value);
		at += used;
	}
}

static const struct {
	const char *theirs, *ours;
} variables[] = {
	{ "SLURM_ARRAY_TASK_ID", "FAIRLEAD_ARRAY_INDEX" },
	{ "SLURM_ARRAY_TASK_COUNT", "FAIRLEAD_ARRAY_SIZE" },
	{ "SLURM_PROCID", "RANK" },
	{ "SLURM_NTASKS", "WORLD_SIZE" },
	{ "SLURM_LOCALID", "LOCAL_RANK" },
	{ "SLURM_NODEID", "NODE_RANK" },
	{ "SLURM_JOB_ID", "FAIRLEAD_JOB_ID" },
	{ "SLURM_JOB_NAME", "FAIRLEAD_JOB_NAME" },
	{ "SLURM_JOB_NODELIST", "FAIRLEAD_HOSTS" },
	{ "SLURM_NODELIST", "FAIRLEAD_HOSTS" },
	{ "SLURM_GPUS_ON_NODE", "FAIRLEAD_GPUS" },
	{ "SLURM_CPUS_PER_TASK", "OMP_NUM_THREADS" },
	{ "SLURM_SUBMIT_DIR", "PWD" },
};

/* The script's own lines are one field; in them a few words have other names. */
static void explain_body(const char *line, size_t size, unsigned int number, bool *first,
			 struct buf *out)
{
	static const struct row body = { FOREIGN_SBATCH, "", NONE, "script",
					 "this line and those below it: `script: |`" },
				srun = { FOREIGN_SBATCH, "", NONE, "",
					 "leave srun out: each task runs the script" };

	if (*first && size)
		add_line(out, number, line, size, &body, "");
	*first = *first && !size;
	if (strncmp(line + strspn(line, " \t"), "srun ", 5) == 0)
		add_line(out, number, "srun", 4, &srun, "");
	for (size_t i = 0; i < ARRAY_SIZE(variables); i++) {
		const char *at =
			memmem(line, size, variables[i].theirs, strlen(variables[i].theirs));
		const size_t length = strlen(variables[i].theirs);

		if (!at || isalnum((unsigned char)at[length]) || at[length] == '_')
			continue;
		struct row row = { FOREIGN_SBATCH, "", NONE, variables[i].ours, "" };
		add_line(out, number, at, length, &row, "");
	}
}

static void explain_sbatch(const char *text, struct buf *out)
{
	unsigned int number = 0;
	bool first = true;
	size_t size;

	for (const char *line = text; *line; line += size + (line[size] == '\n')) {
		number++;
		size = strcspn(line, "\n");
		if (strncmp(line, "#SBATCH", 7) == 0)
			explain_options(line, size, number, out);
		else if (*line != '#')
			explain_body(line, size, number, &first, out);
	}
}

/* --- YAML --------------------------------------------------------------------------------------------------------------- */

/*
 * Read by its indentation alone, line by line: such files have anchors, several documents or templates, which a strict reader
 * refuses, and only the keys matter here.
 */
struct place {
	size_t indents[DEPTH_MAX];
	size_t ends[DEPTH_MAX]; /* of each key in path */
	size_t depth;
	char path[PATH_MAX_BYTES];
	size_t below; /* lines with a greater indentation belong to one that was explained; SIZE_MAX = none */
};

/* The key at `at`, without quotes; 0 = there is none. ret_value: behind the colon. */
static size_t key_read(const char *at, const char **ret_key, const char **ret_value)
{
	const char quote = *at == '"' || *at == '\'' ? *at : '\0';
	size_t size = 0;

	at += quote != '\0';
	*ret_key = at;
	while (at[size] && at[size] != '\n' &&
	       !(quote ? at[size] == quote
		       : at[size] == ':' && (!at[size + 1] || strchr(" \r\n", at[size + 1]))))
		size++;
	if (!at[size] || at[size] == '\n' || (quote && at[size + 1] != ':'))
		return 0;
	*ret_value = at + size + 1 + (quote != '\0');
	*ret_value += strspn(*ret_value, " \t");
	return size;
}

static bool place_enter(struct place *place, size_t indent, const char *key, size_t size)
{
	size_t from;

	while (place->depth && place->indents[place->depth - 1] >= indent)
		place->depth--;
	from = place->depth ? place->ends[place->depth - 1] : 0;
	if (place->depth == DEPTH_MAX || from + size + 2 > sizeof(place->path))
		return false;
	if (from)
		place->path[from++] = '.';
	memcpy(place->path + from, key, size);
	place->path[from + size] = '\0';
	place->indents[place->depth] = indent;
	place->ends[place->depth++] = from + size;
	return true;
}

/* The row whose name is the path or its end. SkyPilot's and dstack's names are whole paths. */
static const struct row *path_find(enum foreign_kind kind, const char *path)
{
	const size_t size = strlen(path);

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const size_t length = strlen(rows[i].name);

		if (rows[i].kind != kind || length > size ||
		    strcmp(path + size - length, rows[i].name) != 0)
			continue;
		if (length == size ||
		    (kind == FOREIGN_KUBERNETES && path[size - length - 1] == '.'))
			return &rows[i];
	}
	return NULL;
}

/* Whether rows stand for keys below the path. */
static bool has_rows_below(enum foreign_kind kind, const char *path)
{
	const size_t size = strlen(path);

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].kind == kind && strncmp(rows[i].name, path, size) == 0 &&
		    rows[i].name[size] == '.')
			return true;
	return false;
}

static void value_read(const char *value, char ret[256])
{
	size_t size = strcspn(value, "\r\n");
	const char *comment = memmem(value, size, " #", 2);

	if (*value == '#')
		size = 0;
	else if (comment)
		size = (size_t)(comment - value);
	while (size && strchr(" \t\"'", value[size - 1]))
		size--;
	while (size && strchr("\"'", *value)) {
		value++;
		size--;
	}
	snprintf(ret, 256, "%.*s", (int)size, value);
}

/* Length of the entry of a flow map (`{a: 1, b: {c: 2}}`) that begins here: up to its comma, or to the end of the map or line. */
static size_t flow_entry_size(const char *at)
{
	size_t size = 0;
	int depth = 0;
	char quote = '\0';

	for (; at[size] && at[size] != '\n'; size++) {
		if (quote) {
			quote = at[size] == quote ? '\0' : quote;
		} else if (at[size] == '"' || at[size] == '\'') {
			quote = at[size];
		} else if (at[size] == '{' || at[size] == '[') {
			depth++;
		} else if (at[size] == '}' || at[size] == ']') {
			if (depth-- == 0)
				break;
		} else if (at[size] == ',' && depth == 0) {
			break;
		}
	}
	return size;
}

static void explain_key(struct place *place, enum foreign_kind kind, const char *line,
			size_t indent, unsigned int number, struct buf *out);

/* The entries of a flow map, each as if it stood on a line of its own below the map's key. */
static void explain_map(struct place *place, enum foreign_kind kind, const char *map, size_t indent,
			unsigned int number, struct buf *out)
{
	size_t size;

	for (const char *at = map + 1;; at += size + 1) {
		char *entry;

		at += strspn(at, " \t");
		size = flow_entry_size(at);
		entry = strndup(at, size);
		CHECK(entry);
		explain_key(place, kind, entry, indent + 1, number, out);
		free(entry);
		if (at[size] != ',')
			return;
	}
}

/* A flow map, or the maps of a flow list. Keys bound the depth: place_enter. */
static void explain_flow(struct place *place, enum foreign_kind kind, const char *value,
			 size_t indent, unsigned int number, struct buf *out)
{
	size_t size;

	if (*value == '{') {
		explain_map(place, kind, value, indent, number, out);
		return;
	}
	for (const char *at = value + 1;; at += size + 1) {
		at += strspn(at, " \t");
		size = flow_entry_size(at);
		if (*at == '{')
			explain_map(place, kind, at, indent, number, out);
		if (at[size] != ',')
			return;
	}
}

/* Does a flow map or list of this key stand for keys that have rows of their own? */
static bool is_flow(enum foreign_kind kind, const struct row *row, const char *path,
		    const char *value)
{
	return (*value == '{' || (*value == '[' && strchr(value, '{'))) &&
	       ((kind == FOREIGN_KUBERNETES && !row) || has_rows_below(kind, path));
}

static void explain_key(struct place *place, enum foreign_kind kind, const char *line,
			size_t indent, unsigned int number, struct buf *out)
{
	const char *key, *value;
	const struct row *row;
	char text[256];
	size_t size = key_read(line, &key, &value);

	if (!size || !place_enter(place, indent, key, size))
		return;
	value_read(value, text);
	row = path_find(kind, place->path);
	if (!*text && (!row || has_rows_below(kind, place->path)))
		return; /* its lines are explained one by one */
	if (is_flow(kind, row, place->path, text)) {
		explain_flow(place, kind, value, indent, number, out);
		return;
	}
	add_line(out, number, line, strcspn(line, "\r\n"), row,
		 text[0] == '|' || text[0] == '>' ? "" : text);
	place->below = indent;
}

static void explain_yaml(enum foreign_kind kind, const char *text, struct buf *out)
{
	struct place place = { .below = SIZE_MAX };
	unsigned int number = 0;
	size_t size;

	for (const char *line = text; *line; line += size + (line[size] == '\n')) {
		size_t indent = strspn(line, " ");

		number++;
		size = strcspn(line, "\n");
		if (!line[indent] || strchr("#\r\n", line[indent]))
			continue;
		if (strncmp(line, "---", 3) == 0) {
			place.depth = 0;
			place.below = SIZE_MAX;
			continue;
		}
		/* A list may stand as far left as its key. */
		if (place.below != SIZE_MAX &&
		    (indent > place.below || (indent == place.below && line[indent] == '-')))
			continue;
		place.below = SIZE_MAX;
		while (line[indent] == '-' && line[indent + 1] == ' ')
			indent += 2;
		explain_key(&place, kind, line + indent, indent, number, out);
	}
}

void foreign_explain(enum foreign_kind kind, const char *text, struct buf *out)
{
	if (kind == FOREIGN_SBATCH || kind == FOREIGN_SCRIPT)
		explain_sbatch(text, out);
	else if (kind != FOREIGN_NONE)
		explain_yaml(kind, text, out);
}
