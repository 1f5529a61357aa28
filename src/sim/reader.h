/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the parts of the scenario reader share: where it reads, and how one key of a map is taken.
 * Internal to the reader (scenario*.c).
 *
 * The reader_ functions leave *ret as it was when the key is missing, so that a default is simply
 * what stood there.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/arena.h"
#include "base/conf.h"
#include "base/err.h"
#include "sim/scenario.h"

struct reader {
	const char *file;
	struct arena *arena;
	struct scenario *s;
	struct err *err;
};

struct names {
	const char **at;
	size_t count;
};

/* Checks that c is a map, has no key that must wait (`kind` names it in later.c's table) and none
 * that is unknown. */
int reader_map(struct reader *r, const struct conf *c, const char *kind, const char *const *known,
	       size_t count) MUST_CHECK;
int reader_list(struct reader *r, const struct conf *c, const char *what, size_t limit)
	MUST_CHECK; /* checks that it is one */
int reader_int(struct reader *r, const struct conf *map, const char *key, int64_t min, int64_t max,
	       int64_t *ret) MUST_CHECK;
int reader_u32(struct reader *r, const struct conf *map, const char *key, uint32_t min,
	       uint32_t max, uint32_t *ret) MUST_CHECK;
int reader_bool(struct reader *r, const struct conf *map, const char *key, bool *ret) MUST_CHECK;
int reader_text(struct reader *r, const struct conf *map, const char *key, const char **ret)
	MUST_CHECK;
int reader_size(struct reader *r, const struct conf *map, const char *key, int64_t *ret_mib)
	MUST_CHECK;
/* A duration, or `word` for `value`; word may be NULL. */
int reader_duration(struct reader *r, const struct conf *map, const char *key, const char *word,
		    int64_t value, int64_t *ret) MUST_CHECK;
/* The names that the text of c (a scalar) expands to. */
int reader_range(struct reader *r, const struct conf *c, const char *what, struct names *ret)
	MUST_CHECK;
/* The names of a list of such texts, one after the other; a lone text is a list of one. */
int reader_ranges(struct reader *r, const struct conf *c, const char *what, struct names *ret)
	MUST_CHECK;
/* How many names the entries of a list have together, at most limit; entries without a name count
 * as one. */
int reader_count(struct reader *r, const struct conf *list, const char *what, size_t limit,
		 size_t *ret) MUST_CHECK;
/* A share of GPUs: "4", "0.3"; in 1/63000, exactly. */
int reader_share(struct reader *r, const struct conf *c, const char *what, int64_t *ret) MUST_CHECK;
/* The place of `c` and: `what` "name" does not exist; with a hint among the candidates. */
int reader_unknown(struct reader *r, const struct conf *c, const char *what, const char *name,
		   const char *const *candidates, size_t count);

/* A name that stands twice among them, NULL if none. */
const char *reader_twice(struct reader *r, const char *const *names, size_t count);

/* The parts; each fills its fields of r->s. */
int scenario_read_cluster(struct reader *r, const struct conf *cluster) MUST_CHECK;
int scenario_read_nodes(struct reader *r, const struct conf *item, struct scenario_node **ret,
			uint32_t *ret_count) MUST_CHECK;
/* Labels, taints, versions, class. */
int scenario_read_node_names(struct reader *r, const struct conf *item, struct scenario_node *node)
	MUST_CHECK;
/* scenario_slices.c: `mig`, `slices_only`. */
int scenario_read_slices(struct reader *r, const struct conf *item, struct scenario_node *node)
	MUST_CHECK;
int scenario_read_job_names(struct reader *r, const struct conf *item, struct scenario_job *job)
	MUST_CHECK;
/* `roles`, once what is said of the job is read. */
int scenario_read_roles(struct reader *r, const struct conf *item, struct scenario_job *job)
	MUST_CHECK;
/* The job, which exists, has a role of that name. */
int scenario_check_role(struct reader *r, const struct conf *c, const char *name, const char *role)
	MUST_CHECK;
int scenario_read_queue(struct reader *r, const struct conf *item, struct scenario_queue *queue)
	MUST_CHECK;
int scenario_read_jobs(struct reader *r, const struct conf *jobs) MUST_CHECK;
int scenario_read_events(struct reader *r, const struct conf *events) MUST_CHECK;
int scenario_read_expects(struct reader *r, const struct conf *expects) MUST_CHECK;
int scenario_check_job(struct reader *r, const struct conf *c, const char *name)
	MUST_CHECK; /* a job of that name exists */
int scenario_check_node(struct reader *r, const struct conf *c, const char *name)
	MUST_CHECK; /* now or by an add_node event */
