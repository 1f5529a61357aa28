/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Changing the facts: for apply and the snapshot's loader alone. Everybody else reads.
 *
 * Look-ups use linear hashing: a slot holds the first row of a chain, links hold the next one. Each row that
 * is added brings one slot and splits one chain, so the cost of growing is spread evenly: a table of a
 * million rows never stops the core to rehash. Chains keep their order, newest first. Links lie apart from
 * the rows and know the row's hash: a split changes a few of the small chunks, which may have to be copied for a
 * frozen reader, and none of the large ones.
 */
#include "core/model/facts.h"

/* A row's place in its look-up; of the same number as the row. */
struct link {
	uint32_t next, hash;
};

/* Every table of the facts with its row type: T(member, type). */
#define FACTS_TABLES(T)                                                                            \
	T(names, struct name)                                                                      \
	T(nodes, struct node)                                                                      \
	T(gpus, struct gpu_record)                                                                 \
	T(queues, struct queue)                                                                    \
	T(prices, struct price)                                                                    \
	T(zones, struct zone)                                                                      \
	T(pasts, struct past)                                                                      \
	T(waitings, struct waiting)                                                                \
	T(data_sets, struct data_set)                                                              \
	T(transfers, struct transfer)                                                              \
	T(pools, struct pool)                                                                      \
	T(bookings, struct booking)                                                                \
	T(masks, struct node_mask)                                                                 \
	T(teams, struct team)                                                                      \
	T(users, struct user)                                                                      \
	T(tokens, struct token)                                                                    \
	T(shapes, struct shape)                                                                    \
	T(jobs, struct job)                                                                        \
	T(bodies, struct body)                                                                     \
	T(depends, struct depend)                                                                  \
	T(checkpoints, struct checkpoint)                                                          \
	T(attempts, struct attempt)                                                                \
	T(tasks, struct task)                                                                      \
	T(promises, struct promise)                                                                \
	T(texts, struct text)                                                                      \
	T(name_slots, uint32_t)                                                                    \
	T(shape_slots, uint32_t)                                                                   \
	T(key_slots, uint32_t)                                                                     \
	T(name_links, struct link)                                                                 \
	T(shape_links, struct link)                                                                \
	T(key_links, struct link)                                                                  \
	T(likes, struct like)                                                                      \
	T(reservations, struct reservation_fact)

static inline struct job *job_edit(struct facts *f, struct job_id id)
{
	return table_edit(&f->jobs, id.v);
}
static inline struct attempt *attempt_edit(struct facts *f, struct attempt_id id)
{
	return table_edit(&f->attempts, id.v);
}
static inline struct node *node_edit(struct facts *f, struct node_id id)
{
	return table_edit(&f->nodes, id.v);
}
static inline struct queue *queue_edit(struct facts *f, struct queue_id id)
{
	return table_edit(&f->queues, id.v);
}
static inline struct name *name_edit(struct facts *f, struct name_id id)
{
	return table_edit(&f->names, id.v);
}
static inline bool id_exists(const struct table *table, int64_t id)
{
	return id >= 1 && id <= (int64_t)table->count;
}

/* Adds empty rows so that the table has `rows`; false (and nothing) when they are more than `lost` records, each of which may
 * have given `each` numbers, can have given. */
bool rows_reach(struct table *table, int64_t rows, uint64_t lost, uint64_t each);
bool nodes_reach(struct facts *f, int64_t rows);
/* How much of a text is kept in `most` bytes, a name: no character is cut through. */
size_t text_cut(const char *text, size_t size, size_t most);
size_t name_cut(const char *text, size_t size);
/* The owner's text from now on, in its old row or another one; 0 for "". The text may be one of the facts. */
struct text_id facts_put_text(struct facts *f, struct text_id old, const char *text);
/* The name's id, made when it is new. 0 for "". */
struct name_id facts_intern(struct facts *f, const char *text);
struct shape_id facts_shape_find(const struct facts *f,
				 const struct shape *shape); /* 0 when there is none */
struct shape_id facts_intern_shape(struct facts *f, const struct shape *shape);
/* Brings the queue's past use up to now; what counts from now on is `more` shares in use above what was. */
void queue_past_change(struct facts *f, struct queue_id id, int64_t more);
/* The same of the job's user in its queue. */
void user_past_change(struct facts *f, struct queue_id queue, struct name_id user, int64_t more);
void facts_link_past(struct facts *f, uint32_t row); /* into the list of its user */
/* Puts an added row into its look-up. */
void facts_link_name(struct facts *f, uint32_t id);
void facts_link_shape(struct facts *f, uint32_t id);
void facts_link_body(struct facts *f, uint32_t id);
void facts_unlink_body(struct facts *f, uint32_t id);
/* Puts a depend row before the others of its `job`. */
void facts_link_dependent(struct facts *f, uint32_t row);
uint32_t facts_take_depend(struct facts *f); /* a zeroed row */
void facts_give_depend(struct facts *f, uint32_t row); /* in nobody's list any more */
uint32_t facts_take_checkpoints(struct facts *f); /* the first of CHECKPOINTS_KEPT zeroed rows */
void facts_give_checkpoints(struct facts *f, uint32_t first);
/* A run of `count` zeroed task rows (room is rounded up to a power of two), and back. */
uint32_t facts_take_tasks(struct facts *f, uint32_t count);
void facts_give_tasks(struct facts *f, uint32_t first, uint32_t count);
uint32_t facts_take_promise(struct facts *f); /* a zeroed row */
void facts_give_promises(struct facts *f, uint32_t first); /* and all linked behind it */

/* Whether each row lies in the chain of its slot, once. */
bool facts_lookups_are_right(const struct facts *f);
/* Whether all ids stand for rows that exist: the part of facts_check that needs no look-up. */
int facts_check_references(const struct facts *f, struct err *err) MUST_CHECK;

/* XXH3 with a seed of 0: the same on every machine. */
uint64_t bytes_hash(const void *data, size_t size);
