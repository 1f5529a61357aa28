/* SPDX-License-Identifier: Apache-2.0 */
/* A reader for each field of jobfile.def: its type, its range, and what it becomes in the event. */
#include <stdio.h>
#include <string.h>

#include "api/jobfile/jobfile_reading.h"
#include "base/arena.h"
#include "base/check.h"
#include "base/moment.h"
#include "base/parse.h"
#include "core/fabric/describe.h"
#include "core/model/facts.h"
#include "core/model/gpu_wish.h"
#include "core/scheduling/life/interval.h"

static const int64_t day_ms = 86400000;

/* Texts that go into records are looked at here: a name, or "" where none is allowed. */
int jobfile_name(struct reading *r, const struct conf *c, const char *what, const char **ret)
{
	struct err why;
	int rc = conf_text(r->err, r->file, c, what, ERR_TEXT_MAX, ret);

	if (rc < 0)
		return rc;
	if (parse_name(*ret, what, &why) < 0)
		return conf_error(r->err, r->file, c, "%s", why.text);
	return 0;
}

int jobfile_path(struct reading *r, const struct conf *c, const char *what, size_t max,
		 const char **ret)
{
	int rc = conf_text(r->err, r->file, c, what, max, ret);

	if (rc < 0)
		return rc;
	if ((*ret)[0] != '/')
		return conf_error(
			r->err, r->file, c,
			"%s must be an absolute path, one that starts with /; it is \"%.100s\"",
			what, *ret);
	for (const char *p = *ret; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			return conf_error(r->err, r->file, c, "%s has a control character in it",
					  what);
	return 0;
}

/* One word of a list of words; the message names them all. */
static int read_word(struct reading *r, const struct conf *c, const char *what,
		     const char *const *words, size_t count, size_t *ret)
{
	char list[200];
	size_t at = 0;
	const char *text, *hint;
	int rc = conf_text(r->err, r->file, c, what, ERR_TEXT_MAX, &text);

	if (rc < 0)
		return rc;
	for (size_t i = 0; i < count; i++)
		if (strcmp(text, words[i]) == 0) {
			*ret = i;
			return 0;
		}
	list[0] = '\0';
	for (size_t i = 0; i < count && at < sizeof(list); i++)
		at += (size_t)snprintf(list + at, sizeof(list) - at, "%s%s",
				       i ? (i + 1 == count ? " or " : ", ") : "", words[i]);
	hint = spelling_hint(text, words, count);
	if (hint)
		return conf_error(r->err, r->file, c,
				  "%s must be %s, not \"%.60s\"; did you mean \"%s\"?", what, list,
				  text, hint);
	return conf_error(r->err, r->file, c, "%s must be %s, not \"%.60s\"", what, list, text);
}

/* whose it is, and its order */

static int read_name(struct reading *r, const struct conf *c, const char *what)
{
	return jobfile_name(r, c, what, &r->job->name);
}

static int read_queue(struct reading *r, const struct conf *c, const char *what)
{
	return jobfile_name(r, c, what, &r->job->queue);
}

static int read_team(struct reading *r, const struct conf *c, const char *what)
{
	return jobfile_name(r, c, what, &r->job->team);
}

static int read_project(struct reading *r, const struct conf *c, const char *what)
{
	return jobfile_name(r, c, what, &r->job->project);
}

static int read_kind(struct reading *r, const struct conf *c, const char *what)
{
	static const char *const words[] = { "training", "batch" };
	size_t which = 0;
	const char *text;
	int rc = conf_text(r->err, r->file, c, what, ERR_TEXT_MAX, &text);

	if (rc < 0)
		return rc;
	if (strcmp(text, "inference") == 0 || strcmp(text, "interactive") == 0)
		return conf_error(
			r->err, r->file, c,
			"kind \"%s\" needs a later release; this one runs training and batch",
			text);
	rc = read_word(r, c, what, words, ARRAY_SIZE(words), &which);
	r->job->kind = which ? KIND_BATCH : KIND_TRAINING;
	return rc;
}

static int read_tier(struct reading *r, const struct conf *c, const char *what)
{
	static const char *const words[] = { "best-effort", "standard", "critical" };
	size_t which = TIER_STANDARD;
	int rc;

	_Static_assert(TIER_BEST_EFFORT == 0 && TIER_STANDARD == 1 && TIER_CRITICAL == 2,
		       "words are in the order of the tiers");
	rc = read_word(r, c, what, words, ARRAY_SIZE(words), &which);
	r->job->tier = (int64_t)which;
	return rc;
}

static int read_priority(struct reading *r, const struct conf *c, const char *what)
{
	return conf_int(r->err, r->file, c, what, -JOBFILE_PRIORITY_MAX, JOBFILE_PRIORITY_MAX,
			&r->job->priority);
}

/* what it needs */

static int check_range(struct reading *r, const struct conf *c, int64_t min, int64_t max)
{
	if (min > max)
		return conf_error(r->err, r->file, c,
				  "tasks: the smaller number comes first; %lld is more than %lld",
				  (long long)min, (long long)max);
	r->job->tasks_min = min;
	r->job->tasks_max = max;
	return 0;
}

/* "2..4" */
static int read_range_text(struct reading *r, const struct conf *c)
{
	const char *dots = strstr(c->text, "..");
	int64_t min, max;
	struct err why;

	if (parse_int(arena_strndup(r->arena, c->text, (size_t)(dots - c->text)), 1, TASKS_MAX,
		      &min, &why) < 0 ||
	    parse_int(dots + 2, 1, TASKS_MAX, &max, &why) < 0)
		return conf_error(r->err, r->file, c, "tasks: %s; a range is written 2..4",
				  why.text);
	return check_range(r, c, min, max);
}

static int read_range_map(struct reading *r, const struct conf *c)
{
	static const char *const known[] = { "min", "max" };
	const struct conf *min = conf_find(c, "min"), *max = conf_find(c, "max");
	int64_t from, to;
	int rc = conf_only(r->err, r->file, c, "tasks", known, ARRAY_SIZE(known));

	if (rc < 0)
		return rc;
	if (!min || !max)
		return conf_error(r->err, r->file, c,
				  "tasks: %s is missing; write {min: 2, max: 4}",
				  min ? "max" : "min");
	rc = conf_int(r->err, r->file, min, "tasks.min", 1, TASKS_MAX, &from);
	if (rc >= 0)
		rc = conf_int(r->err, r->file, max, "tasks.max", 1, TASKS_MAX, &to);
	return rc < 0 ? rc : check_range(r, c, from, to);
}

int read_tasks(struct reading *r, const struct conf *c, const char *what)
{
	int64_t count;
	int rc;

	r->tasks = c;
	if (c->type == CONF_MAP)
		return read_range_map(r, c);
	if (c->type == CONF_SCALAR && strstr(c->text, ".."))
		return read_range_text(r, c);
	rc = conf_int(r->err, r->file, c, what, 1, TASKS_MAX, &count);
	return rc < 0 ? rc : check_range(r, c, count, count);
}

/* A size where a number stands, for people who know them from elsewhere. */
static int gpus_misread(struct reading *r, const struct conf *c, const char *what)
{
	size_t digits = strspn(c->text, "0123456789");
	const char *unit = c->text + digits;

	if (digits && unit[0] && strchr("KMGTkmgt", unit[0]))
		return conf_error(
			r->err, r->file, c,
			"%s is a number of GPUs; for a part of one by its memory write: gpus: {memory: %.20s}",
			what, c->text);
	return 0;
}

/* 2, 0.5 or 1/7, by its digits. In JSON 1/7 is a text. */
int read_gpus_count(struct reading *r, const struct conf *c, const char *what)
{
	struct gpu_wish wish;
	struct err why;
	uint32_t slice;
	int rc;

	if (c->type == CONF_SCALAR && slice_wish_parse(c->text, &slice)) {
		r->job->slice = arena_strdup(r->arena, c->text);
		return 0;
	}
	if (c->type != CONF_SCALAR || !c->text[strspn(c->text, "-0123456789")])
		return conf_int(r->err, r->file, c, what, 0, NODE_GPUS_MAX, &r->job->gpus);
	rc = gpus_misread(r, c, what);
	if (rc < 0)
		return rc;
	if (gpu_wish_parse(c->text, &wish, &why) < 0)
		return conf_error(r->err, r->file, c, "%s", why.text);
	r->job->gpus = wish.gpus;
	r->job->gpu_part = wish.part;
	return 0;
}

/* An amount of memory alone is a part of one GPU; beside a count it says what the GPUs must have. */
int read_gpus(struct reading *r, const struct conf *c, const char *what)
{
	const struct conf *memory;
	int rc;

	if (c->type != CONF_MAP)
		return read_gpus_count(r, c, what);
	rc = jobfile_read_fields(r, c, "gpus.");
	memory = conf_find(c, "memory");
	if (rc < 0 || !memory || conf_find(c, "count") || *r->job->slice)
		return rc;
	if (!r->job->gpu_memory_mib)
		return conf_error(r->err, r->file, memory,
				  "gpus.memory: a part of a GPU has 1MiB or more");
	r->job->gpu_part_mib = r->job->gpu_memory_mib;
	r->job->gpu_memory_mib = 0;
	return rc;
}

static int read_gpus_model(struct reading *r, const struct conf *c, const char *what)
{
	char list[SHAPE_MODELS_MAX * (NAME_MAX_BYTES + 1) + 1];
	const char *names[SHAPE_MODELS_MAX];
	size_t at = 0, count = c->type == CONF_LIST ? c->count : 1;
	int rc;

	if (!count || count > SHAPE_MODELS_MAX)
		return conf_error(r->err, r->file, c, "%s takes 1 to %d models, not %zu", what,
				  SHAPE_MODELS_MAX, count);
	for (size_t i = 0; i < count; i++) {
		const struct conf *item = c->type == CONF_LIST ? c->items[i] : c;

		rc = jobfile_name(r, item, what, &names[i]);
		if (rc < 0)
			return rc;
		for (size_t k = 0; k < i; k++)
			if (strcmp(names[k], names[i]) == 0)
				return conf_error(r->err, r->file, item, "%s names \"%s\" twice",
						  what, names[i]);
		at += (size_t)snprintf(list + at, sizeof(list) - at, "%s%s", i ? "," : "",
				       names[i]);
	}
	r->job->models = arena_strdup(r->arena, list);
	return 0;
}

/* By name, or "fit": the smallest with `memory` and the part `count` of a GPU's compute. */
static int read_gpus_slice(struct reading *r, const struct conf *c, const char *what)
{
	uint32_t slice;

	if (c->type != CONF_SCALAR ||
	    (strcmp(c->text, "fit") != 0 && !slice_wish_parse(c->text, &slice)))
		return conf_error(
			r->err, r->file, c,
			"%s is the name of a slice such as 1g.10gb, or fit for the smallest that is enough",
			what);
	r->job->slice = arena_strdup(r->arena, c->text);
	return 0;
}

static int read_gpus_memory(struct reading *r, const struct conf *c, const char *what)
{
	int rc = conf_size_mib(r->err, r->file, c, what, &r->job->gpu_memory_mib);

	if (rc >= 0 && r->job->gpu_memory_mib > INT32_MAX)
		return conf_error(r->err, r->file, c, "%s: no GPU has that much memory", what);
	return rc;
}

/* "8", "0.5", "1.125": thousandths, exactly. */
int read_cpus(struct reading *r, const struct conf *c, const char *what)
{
	int64_t milli = 0, part = 100;
	const char *p;

	if (c->type != CONF_SCALAR || c->quoted)
		return conf_error(r->err, r->file, c, "%s must be a number such as 8 or 0.5", what);
	for (p = c->text; *p >= '0' && *p <= '9' && milli <= JOBFILE_CPUS_MAX * 10; p++)
		milli = milli * 10 + (*p - '0');
	milli *= 1000;
	if (p > c->text && *p == '.' && p[1])
		for (p++; *p >= '0' && *p <= '9' && part; p++, part /= 10)
			milli += (*p - '0') * part;
	if (p == c->text || (*p && milli <= JOBFILE_CPUS_MAX * 1000))
		return conf_error(
			r->err, r->file, c,
			"%s must be a number such as 8 or 0.5, with at most three digits behind the point, not \"%.40s\"",
			what, c->text);
	if (!milli || milli > JOBFILE_CPUS_MAX * 1000)
		return conf_error(r->err, r->file, c,
				  "%s must be more than 0 and at most %d, not \"%.40s\"", what,
				  JOBFILE_CPUS_MAX, c->text);
	r->job->cpu_milli = milli;
	return 0;
}

int read_memory(struct reading *r, const struct conf *c, const char *what)
{
	int rc = conf_size_mib(r->err, r->file, c, what, &r->job->memory_mib);

	if (rc >= 0 && (!r->job->memory_mib || r->job->memory_mib > INT32_MAX))
		return conf_error(r->err, r->file, c, "%s must be from 1MiB to 2047TiB", what);
	return rc;
}

static int read_topology(struct reading *r, const struct conf *c, const char *what)
{
	if (c->type != CONF_MAP)
		return conf_error(r->err, r->file, c, "%s must be a map such as {require: node}",
				  what);
	return jobfile_read_fields(r, c, "topology.");
}

static int read_topology_require(struct reading *r, const struct conf *c, const char *what)
{
	return jobfile_name(r, c, what, &r->job->require);
}

static int read_topology_prefer(struct reading *r, const struct conf *c, const char *what)
{
	return jobfile_name(r, c, what, &r->job->prefer);
}

static int read_topology_max_slowdown(struct reading *r, const struct conf *c, const char *what)
{
	const char *text = "";
	struct err why;
	int rc = conf_text(r->err, r->file, c, what, ERR_TEXT_MAX, &text);

	if (rc < 0)
		return rc;
	if (slowdown_parse(text, &r->job->max_slowdown, &why) < 0)
		return conf_error(r->err, r->file, c, "%s", why.text);
	return 0;
}

/* A version in digits and dots. An unquoted one reads the same: 12.10 keeps its nought. */
static int read_version(struct reading *r, const struct conf *c, const char *what,
			const char *sample, const char **ret)
{
	int rc = conf_text(r->err, r->file, c, what, ERR_TEXT_MAX, ret);

	if (rc < 0)
		return rc;
	if (version_parse(*ret) && (*ret)[strspn(*ret, "0123456789.")] == '\0')
		return 0;
	return conf_error(r->err, r->file, c, "%s must be a version such as \"%s\", not \"%.40s\"",
			  what, sample, *ret);
}

static int read_min_driver(struct reading *r, const struct conf *c, const char *what)
{
	return read_version(r, c, what, "550.54", &r->job->min_driver);
}

static int read_min_cuda(struct reading *r, const struct conf *c, const char *what)
{
	return read_version(r, c, what, "12.4", &r->job->min_cuda);
}

static int read_min_capability(struct reading *r, const struct conf *c, const char *what)
{
	const char *text, *dot;
	uint32_t version;
	int rc = read_version(r, c, what, "9.0", &text);

	if (rc < 0)
		return rc;
	dot = strchr(text, '.');
	version = version_parse(text);
	if ((dot && strlen(dot) != 2) || version >> 20 > 99)
		return conf_error(r->err, r->file, c,
				  "%s must be a compute capability such as \"9.0\", not \"%.40s\"",
				  what, text);
	r->job->min_capability = (int64_t)(version >> 20) * 10 + (version >> 10 & 1023);
	return 0;
}

/* A text, or a list of them, as "a,b". Each is a name; as a label it may have = and / in it too. */
static int read_texts(struct reading *r, const struct conf *c, const char *what, size_t most,
		      bool label, const char **ret)
{
	size_t count = c->type == CONF_LIST ? c->count : 1;

	if (!count || count > most)
		return conf_error(r->err, r->file, c, "%s takes 1 to %zu names, not %zu", what,
				  most, count);
	*ret = "";
	for (size_t i = 0; i < count; i++) {
		const struct conf *item = c->type == CONF_LIST ? c->items[i] : c;
		const char *text;
		int rc = label ? conf_text(r->err, r->file, item, what, NAME_MAX_BYTES, &text)
			       : jobfile_name(r, item, what, &text);

		if (rc < 0)
			return rc;
		if (!*text || strchr(text, ','))
			return conf_error(r->err, r->file, item, "%s: \"%.63s\" is not a name",
					  what, text);
		*ret = arena_printf(r->arena, "%s%s%s", *ret, i ? "," : "", text);
	}
	if (strlen(*ret) > EVENT_TEXT_MAX)
		return conf_error(r->err, r->file, c,
				  "%s: the names have more than %d bytes in all", what,
				  EVENT_TEXT_MAX);
	return 0;
}

static int read_region(struct reading *r, const struct conf *c, const char *what)
{
	return read_texts(r, c, what, SHAPE_REGIONS_MAX, false, &r->job->regions);
}

static int read_tolerates(struct reading *r, const struct conf *c, const char *what)
{
	return read_texts(r, c, what, SHAPE_LABELS_MAX, true, &r->job->tolerates);
}

static int read_selector(struct reading *r, const struct conf *c, const char *what)
{
	return read_label_table(r, c, what, SHAPE_LABELS_MAX, &r->job->labels);
}

static int read_resize(struct reading *r, const struct conf *c, const char *what)
{
	static const char *const words[] = { [RESIZE_FREE] = "free", [RESIZE_RESTART] = "restart" };
	size_t which;
	int rc = read_word(r, c, what, words, ARRAY_SIZE(words), &which);

	r->job->resize = rc == 0 ? (int64_t)which : 0;
	r->resize = c;
	return rc;
}

static int read_rejoin(struct reading *r, const struct conf *c, const char *what)
{
	bool yes = true;
	int rc = conf_bool(r->err, r->file, c, what, &yes);

	r->job->rejoins = yes;
	r->rejoin = c;
	return rc;
}

static int read_preempts(struct reading *r, const struct conf *c, const char *what)
{
	bool yes = true;
	int rc = conf_bool(r->err, r->file, c, what, &yes);

	r->job->preempts = yes;
	return rc;
}

/* checkpoints */

static int read_checkpoint_how(struct reading *r, const struct conf *c, const char *what)
{
	static const char *const words[] = { "none", "report", "signal" };
	size_t which = 0;
	int rc = read_word(r, c, what, words, ARRAY_SIZE(words), &which);

	r->has_how = true;
	r->job->checkpoint = which > 0;
	if (which == 2 && !r->body.checkpoint_signal)
		r->body.checkpoint_signal = "USR1";
	if (which != 2 && r->body.checkpoint_signal && rc >= 0)
		return conf_error(
			r->err, r->file, c,
			"%s is \"%s\", so nothing acts on checkpoint.signal; leave one of them out",
			what, words[which]);
	return rc;
}

static int read_checkpoint(struct reading *r, const struct conf *c, const char *what)
{
	const struct conf *how = conf_find(c, "how");
	int rc;

	if (c->type == CONF_SCALAR)
		return read_checkpoint_how(r, c, what);
	if (c->type != CONF_MAP)
		return conf_error(
			r->err, r->file, c,
			"%s must be signal, report, none, or a map such as {how: signal, every: 10m}",
			what);
	rc = jobfile_read_fields(r, c, "checkpoint.");
	if (rc < 0)
		return rc;
	if (!how) { /* the default of a map */
		r->job->checkpoint = 1;
		if (!r->body.checkpoint_signal)
			r->body.checkpoint_signal = "USR1";
	}
	if (!r->job->checkpoint && c->count > 1)
		return conf_error(
			r->err, r->file, how,
			"checkpoint.how is \"none\", so nothing acts on the other fields of checkpoint; leave them out");
	return 0;
}

static int read_checkpoint_signal(struct reading *r, const struct conf *c, const char *what)
{
	static const char *const words[] = { "USR1", "USR2", "HUP", "INT", "QUIT", "TERM", "ALRM" };
	size_t which = 0;
	int rc;

	if (c->type == CONF_SCALAR && strncmp(c->text, "SIG", 3) == 0 && strlen(c->text) < 12)
		return conf_error(r->err, r->file, c, "%s is written without SIG: %s", what,
				  c->text + 3);
	rc = read_word(r, c, what, words, ARRAY_SIZE(words), &which);
	if (rc >= 0 && r->has_how && !r->body.checkpoint_signal)
		return conf_error(
			r->err, r->file, c,
			"nothing acts on %s unless checkpoint.how is \"signal\"; leave one of them out",
			what);
	r->body.checkpoint_signal = words[which];
	return rc;
}

static int read_short_duration(struct reading *r, const struct conf *c, const char *what,
			       int64_t *ret)
{
	int rc = conf_duration(r->err, r->file, c, what, ret);

	if (rc >= 0 && *ret > day_ms)
		return conf_error(r->err, r->file, c, "%s is at most 24h, not \"%.40s\"", what,
				  c->text);
	return rc;
}

static int read_checkpoint_every(struct reading *r, const struct conf *c, const char *what)
{
	int rc;

	if (c->type == CONF_SCALAR && strcmp(c->text, "auto") == 0) {
		r->job->checkpoint_every_ms = CHECKPOINT_AUTO;
		return 0;
	}
	rc = conf_duration(r->err, r->file, c, what, &r->job->checkpoint_every_ms);
	if (rc >= 0 && r->job->checkpoint_every_ms < 1000)
		return conf_error(r->err, r->file, c, "%s must be at least 1s", what);
	return rc;
}

static int read_checkpoint_cost(struct reading *r, const struct conf *c, const char *what)
{
	int rc = read_short_duration(r, c, what, &r->job->checkpoint_cost_ms);

	r->cost = c;
	if (rc >= 0 && r->job->checkpoint_cost_ms < 1000)
		return conf_error(r->err, r->file, c, "%s must be at least 1s", what);
	return rc;
}

static int read_checkpoint_grace(struct reading *r, const struct conf *c, const char *what)
{
	return read_short_duration(r, c, what, &r->job->grace_ms);
}

static int read_checkpoint_path(struct reading *r, const struct conf *c, const char *what)
{
	return jobfile_path(r, c, what, JOBFILE_CHECKPOINT_PATH_MAX, &r->body.checkpoint_path);
}

static int read_checkpoint_restart_cost(struct reading *r, const struct conf *c, const char *what)
{
	return read_short_duration(r, c, what, &r->job->restart_cost_ms);
}

/* time, failure, others */

static int read_limit(struct reading *r, const struct conf *c, const char *what)
{
	int rc = conf_duration(r->err, r->file, c, what, &r->job->limit_ms);

	if (rc >= 0 && r->job->limit_ms < 1000)
		return conf_error(r->err, r->file, c, "%s must be at least 1s", what);
	return rc;
}

static int read_estimate(struct reading *r, const struct conf *c, const char *what)
{
	int rc = conf_duration(r->err, r->file, c, what, &r->job->estimate_ms);

	r->estimate = c;
	if (rc >= 0 && r->job->estimate_ms < 1000)
		return conf_error(r->err, r->file, c, "%s must be at least 1s", what);
	return rc;
}

/* A time from the submission stays a small number: the core adds the time at which it comes. */
static int read_deadline(struct reading *r, const struct conf *c, const char *what)
{
	struct err why;
	int rc = 0;

	if (c->type == CONF_SCALAR && moment_parse(c->text, &r->job->deadline_ms) == 0)
		return 0;
	if (c->type == CONF_SCALAR)
		rc = conf_duration(&why, r->file, c, what, &r->job->deadline_ms);
	if (c->type != CONF_SCALAR || rc < 0 || r->job->deadline_ms < 60000)
		return conf_error(
			r->err, r->file, c,
			"%s must be a duration of at least 1m, such as 36h, or a time in UTC, such as 2030-01-31T08:00Z",
			what);
	return 0;
}

static int read_efficiency(struct reading *r, const struct conf *c, const char *what)
{
	return conf_int(r->err, r->file, c, what, 1, 100, &r->job->efficiency);
}

static int read_retries(struct reading *r, const struct conf *c, const char *what)
{
	return conf_int(r->err, r->file, c, what, 0, JOBFILE_RETRIES_MAX, &r->job->retries);
}

static int read_hold(struct reading *r, const struct conf *c, const char *what)
{
	bool yes = false;
	int rc = conf_bool(r->err, r->file, c, what, &yes);

	r->job->held = yes;
	return rc;
}

/* Fields of a role that are read as those of the job. */
#define read_roles_tasks read_tasks
#define read_roles_gpus read_gpus_count
#define read_roles_cpus read_cpus
#define read_roles_memory read_memory
#define read_roles_command read_command
#define read_roles_script read_script
#define read_roles_env read_env

jobfile_reader *const jobfile_readers[] = {
#define FIELD(name, id, type, range, schema, standard, doc, example) read_##id,
#include "api/jobfile/jobfile.def"
};
