/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Time slots: a reservation holds its place from its start until its job is expected to have ended. Several may hold the same GPUs, one
 * after the other.
 *
 *	16 GPUs, 8 of them in use until 1 h. A needs 10 for 1 h, B needs 16 for 1 h.
 *	A holds GPUs 0 to 9 from 1 h to 2 h, B holds all of them from 2 h to 3 h.
 *	A run from 0 h to 110 min on GPUs 10 to 15 is in nobody's way; one that ends at 3 h is in B's way.
 *
 * A reservation is in the way of a run when the run ends after the time until which the place is lent, and starts before the
 * reservation ends. The end is unknown (INT64_MAX)
 *
 *	of parts of GPUs, and of tasks with processors beside their GPUs	always: these are promised one by one
 *	when nobody declared it							for jobs that wait for declared ends alone
 *
 * What the reservations in the way hold of a node is promised in a space together: GPUs once, processors and memory as much as is
 * needed at one time. There are two such spaces: that of the pass, and that of the walk ahead.
 *
 * Costs: a reservation that comes or goes costs some 50 ns for each of its nodes, and for each further reservation of that node 5 ns.
 */
#include <stdbool.h>
#include <stdint.h>

#include "core/placement/space.h"

struct job;
struct kept;
struct pass;
struct reservation;
struct shape;

enum slot_space { SLOT_NOW, SLOT_AHEAD, SLOT_SPACES };

struct time_slot {
	int64_t lent_ms
		[2]; /* [1]: to work that declares a limit; a run that ends by then is not in its way. INT64_MIN = none is */
	int64_t start_ms, end_ms;
	bool unsure, late; /* of the reservation */
	bool on[SLOT_SPACES]; /* promised there */
};

/* What is reserved of a node. */
struct kept_node {
	struct kept *first;
	struct hold wanted[SLOT_SPACES], promised[SLOT_SPACES]; /* all that is not `alone` */
	bool unsettled; /* a reservation of it has turned since slots_settle */
	struct kept_node *next_unsettled; /* in pass->unsettled */
};

/* A job as reservations see it. */
struct slot_asker {
	int64_t length_ms; /* its expected run */
	bool declared; /* has a limit */
	bool guesses; /* counts on ends that nobody declared */
	bool before; /* may have its place before a reservation starts */
	bool endless; /* each reservation is in its way */
};

struct slot_asker slot_asker_make(struct pass *pass, const struct job *job);
/* Does a reservation of this wish have no known end? */
bool shape_holds_endlessly(const struct shape *shape);
bool slot_is_in_way(const struct slot_asker *asker, const struct time_slot *slot, int64_t start_ms);
/* Whether it is changes after start_ms at that time; INT64_MAX = never. */
int64_t slot_turns_ms(const struct slot_asker *asker, const struct time_slot *slot,
		      int64_t start_ms);

/* Sets the reservation's end. Its start and what it is lent to are known. */
void reservation_set_end(struct pass *pass, const struct job *job, struct reservation *r);
/* Does another reservation of the pass end on its GPUs before it starts? */
bool reservation_follows(const struct pass *pass, const struct reservation *r);
/* Into the list by node. Nothing is promised. */
void slots_add(struct pass *pass, struct reservation *r);
/* The reservation is in the way now, or no more. They may share nodes, so the space is changed when all have turned: slots_settle. */
void slot_turn(struct pass *pass, struct reservation *r, enum slot_space where, bool on);
void slots_settle(struct pass *pass, enum slot_space where);
/* The space ahead was made anew, and nothing is promised there. */
void slots_forget_ahead(struct pass *pass);
/* GPUs of a node that reservations have promised in the space of the pass. */
uint32_t slots_promised(const struct pass *pass, uint32_t rank);
/*
 * May the job have these GPUs of a node from start_ms on? *ret_late_ms rises to the end of a late reservation that is in the way: one
 * that is late makes those behind it late too.
 */
bool slots_allow(const struct pass *pass, const struct slot_asker *asker, uint32_t rank,
		 uint32_t mask, int64_t start_ms, int64_t *ret_late_ms);
/* What is free of processors and memory of a node then, as far as reservations are concerned: added to what is free in the space now. */
void slots_free(const struct pass *pass, const struct slot_asker *asker, uint32_t rank,
		int64_t start_ms, int64_t *cpu_milli, int64_t *ram_mib);
