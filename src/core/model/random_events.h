/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A source of random events for tests, benches and the comparison of compilers: the same seed gives the same
 * events everywhere. Most fit the facts they are made for, some are about what does not exist or is over, and
 * some carry numbers from the edge of the world. apply must take them all.
 */
#include "core/model/facts.h"

struct arena;

struct random {
	uint64_t state;
};

uint64_t random_next(struct random *r);
int64_t random_wild(struct random *r); /* a number from the edge of the world */
/* 0 .. below - 1 */
uint32_t random_below(struct random *r, uint32_t below);
int64_t random_mostly(struct random *r, int64_t value); /* now and then a wild one instead */
int64_t random_upto(struct random *r, uint32_t most); /* mostly 0 .. most */
/* Something of 1 .. count, more often of late; sometimes the one behind the last. */
int64_t random_recent(struct random *r, uint32_t count);

/* random_cluster.c: a description, now and then one that does not hold together; a price or a budget. */
void random_fabric(struct random *r, const struct facts *f, struct arena *arena,
		   struct event_fabric_set *e);
void random_node_numa(struct random *r, const struct facts *f, struct arena *arena,
		      struct event_node_numa *e);
void random_node_found(struct random *r, const struct facts *f, struct arena *arena,
		       struct event_node_found *e);
void random_node_marked(struct random *r, const struct facts *f, struct arena *arena,
			struct event_node_marked *e);
void random_layouts(struct random *r, const struct facts *f, struct arena *arena,
		    struct event_layout_set *e);
const char *random_labels(struct random *r, struct arena *arena, uint32_t most);
const char *random_slice(struct random *r); /* name of a profile, "" or no name */
const int64_t *random_slices(struct random *r, struct arena *arena, uint32_t count,
			     uint32_t *ret_count); /* as a placing has them */
void random_node_mask(struct random *r, const struct facts *f, struct arena *arena,
		      struct event_node_mask *e);
void random_booking(struct random *r, const struct facts *f, struct arena *arena,
		    struct event_booking_set *e);
void random_zone(struct random *r, int64_t now_ms, struct arena *arena, struct event_zone_set *e);
void random_data(struct random *r, struct arena *arena, struct event *e);
void random_money(struct random *r, struct arena *arena, struct event *e);
void random_moves(struct random *r, const struct facts *f, struct arena *arena,
		  struct event_moves_planned *e);

/* The next event, with seq and time. Texts and lists live in the arena. */
struct event random_event(struct random *r, const struct facts *f, struct arena *arena);
/* random_fields.c: an event of that kind with every field filled at random, fitting or not: for the codec. */
struct event random_fields(struct random *r, enum event_kind kind, struct arena *arena);
