/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A search at work: what the files of the search share with one another and with nobody else.
 *
 *	find.c		the entrances: which level, which domain, which single node; has the idea
 *	capacity.c	how many tasks a node and a domain hold
 *	hosts.c		which hosts of a domain: the fewest, of these those with the least left over
 *	draw.c		drawing them; which GPUs of a node
 *	find_parts.c	the same for parts of GPUs
 *	find_slices.c	and for slices of them
 *	models.c	which model of GPU
 *	near.c		where data are
 *	gravity.c	what it takes to bring them elsewhere (moves.c), beside all else that a place costs
 *	spread.c	tasks that must lie apart
 *	speed.c, split.c	how fast a place is; which hosts, and how many of which domain, for that
 *	find_roles.c	the search for unlike tasks, role by role
 *	why.c		why there is no place
 */
#include "core/placement/find.h"
#include "core/placement/parts.h"

enum { CAPACITY_MAX = 32, GPU_BREAK = NODE_GPUS_MAX + 1 };

/* What an hour of the job's work costs on a model: price / speed. */
struct model_cost {
	int64_t price;
	uint32_t speed;
};

struct search {
	const struct space *space;
	const struct shape *shape;
	uint32_t tasks;
	uint64_t classes;
	bool exact; /* each node must be looked at */
	bool scatter;
	bool part; /* of a GPU */
	uint32_t slice; /* the part is an instance: number of the wish; 0 = none */
	struct part_wish wish; /* then */
	struct name_id
		model; /* only GPUs of this one, 0 = any; of nodes of unlike classes it is looked at */
	bool costs; /* and what they cost is from `least` to `most` */
	struct model_cost least, most;
	const uint64_t *only; /* no other ranks than these; NULL = any */
	const uint64_t *liked; /* of equal nodes these first */
	uint8_t gpu; /* the shared GPU that the one task takes, plus 1; GPU_BREAK = a free one; 0 = not chosen */
	const uint64_t *barred; /* ranks not to be used, as in the request */
	bool talks; /* the speed of the place matters, and is known */
	uint32_t
		slowdown; /* the least of the places that were too slow, 1000 = none; 0 = there was none */
	uint64_t *used; /* ranks drawn so far, one bit each; only while drawing */
};

/* Hosts of a domain by capacity; a capacity above CAPACITY_MAX counts as CAPACITY_MAX. */
struct histogram {
	uint32_t hosts[CAPACITY_MAX + 1];
};

struct fit {
	uint32_t hosts, top;
	int64_t left; /* GPUs over on these hosts, as hosts_pick has it; LEFT_UNKNOWN = nobody asked yet */
	int64_t free;
	uint32_t step, parts; /* of the rate between the parts of the domain; how many (speed.h) */
};

#define LEFT_UNKNOWN INT64_C(-1)

/* Hosts to be drawn, by capacity; the smallest one takes what the others leave. */
struct pick {
	uint32_t hosts[CAPACITY_MAX + 1];
	int64_t left; /* GPUs free on them that the gang does not take */
};

/* What was drawn: nodes and how many tasks each; `rest` tasks are still without a node. */
struct draw {
	uint32_t *ranks, *tasks;
	uint32_t count, rest;
	uint32_t more; /* hosts of the capacity at hand that may still be drawn */
};

/* find.c */
/* False: there is no node with such GPUs. */
bool search_begin(struct search *search, const struct space *space,
		  const struct place_request *request);
bool require_is_one_node(const struct shape *shape);
bool domain_allowed(const struct place_request *request, const struct space *space,
		    uint32_t domain);
/* All tasks on one node of [first, end): in one island if there is one, else on the tightest node. */
int32_t one_node_find(const struct search *search, uint32_t first, uint32_t end);

/* As place_find and place_width, once it is settled which models it is about; search_place knows what is near. */
int search_anywhere(const struct search *search, const struct place_request *request,
		    struct arena *arena, struct placement *ret, struct verdict *ret_why);
int search_place(const struct search *search, const struct place_request *request,
		 struct arena *arena, struct placement *ret, struct verdict *ret_why);
uint32_t search_width(const struct search *search, const struct place_request *request);

/* The lowest rank in [first, end) of the class with exactly `free` GPUs free that holds all tasks; `end` = none. `among`: of these alone,
 * NULL = of all. */
uint32_t one_node_next(const struct search *search, uint32_t class, uint32_t first, uint32_t end,
		       uint32_t free, const uint64_t *among);

/* As place_find, with no thought of what it takes to bring data there. */
int place_anywhere(struct space *space, const struct place_request *request, struct arena *arena,
		   struct placement *ret, struct verdict *ret_why);
/* gravity.c: of *ret and the places nearer to the data the one where the job costs least. */
void gravity_find(struct space *space, const struct place_request *request, struct arena *arena,
		  struct placement *ret);

/* fragment.c: for one task that has a choice */
bool fragment_counts(const struct search *search);
/* Its node, RANK_NONE = none has room; and search->gpu. */
int32_t fragment_find(struct search *search, uint32_t first, uint32_t end);
/* scarce.c: those of the search's classes that tasks with narrower wishes are expected to need. */
uint64_t scarce_classes(const struct search *search);

/* models.c */
/* Is there a choice: several models that are not all one to the job? */
bool models_matter(const struct search *search);
/* All its tasks get one model. */
bool models_are_one(const struct search *search);
int models_find(const struct search *search, const struct place_request *request,
		struct arena *arena, struct placement *ret, struct verdict *ret_why);
uint32_t models_width(const struct search *search, const struct place_request *request);
/* The models one after the other: the cheapest first, of equal cost in the order of the space. */
struct model_turn {
	bool begun, dearer; /* dearer than the one before */
	struct model_cost cost;
	uint32_t at;
	struct name_id model;
};
bool model_turn_next(const struct search *search, struct model_turn *turn);
struct search search_of_model(const struct search *search, struct name_id model);
/* Of a node of unlike classes: is its model one that this search is about? */
bool model_is_open(const struct search *search, uint32_t rank);
/* Two places for one wish: the narrower level, then fewer hosts, then fewer GPUs left free on them. */
bool place_is_better(const struct space *space, const struct placement *a,
		     const struct placement *b);

/* spread.c: for a gang whose shape says `apart` */
/* *most, *most_at: the most units with room in one domain of the widest level allowed, and which; with ret NULL only the answer. */
bool spread_find(const struct search *search, const struct place_request *request,
		 struct arena *arena, struct placement *ret, uint64_t *most, uint32_t *most_at);
/* So many tasks find a place, at most search->tasks. */
uint32_t spread_most(const struct search *search, const struct place_request *request);
/* Are there too few units with room, wherever they lie? */
bool spread_verdict(const struct search *search, const struct place_request *request,
		    struct verdict *ret);

/* capacity.c */
/* Nodes of the domain that have GPUs enough for one task, by class, free GPUs, rank; for wishes of whole GPUs. */
struct hosts_walk {
	uint32_t domain;
	uint64_t classes; /* still to come, the first of them at work */
	uint32_t free, next, end;
	uint32_t rank; /* found; so many are `free` on it */
};
void hosts_walk_begin(const struct search *search, uint32_t domain, struct hosts_walk *ret);
bool hosts_walk_next(const struct search *search, struct hosts_walk *walk);
uint32_t node_capacity(const struct search *search, uint32_t rank); /* tasks */
bool node_holds(const struct search *search, uint32_t rank); /* all tasks; mostly a shorter look */
void histogram_make(const struct search *search, uint32_t domain, struct histogram *ret);
uint64_t histogram_tasks(const struct histogram *histogram);
/* False: they do not hold all. ret->free is left alone. */
bool histogram_fit(const struct histogram *histogram, uint32_t tasks, struct fit *ret);

/* hosts.c: for wishes of whole GPUs that are not spread */
bool hosts_matter(const struct search *search);
/* `hosts` is as few as hold the gang in the domain. */
void hosts_pick(const struct search *search, uint32_t domain, uint32_t hosts, struct pick *ret);

/* draw.c */
void placement_begin(const struct search *search, struct arena *arena, struct placement *ret);
/* `count` GPUs out of `from`: the tightest island that holds them, else the fullest islands first. */
uint32_t gpus_pick(const struct place_node *node, uint32_t from, uint32_t count);
/* Adds `tasks` tasks on the node to the placement. */
void node_fill(const struct search *search, uint32_t rank, uint32_t tasks, struct placement *ret);
/* Its parts: room for what is drawn in the domain; hosts of a domain for draw->rest tasks; the placement. */
void draw_begin(struct search *search, uint32_t domain, struct arena *arena, struct draw *ret);
void draw_domain(const struct search *search, struct draw *draw, const struct domain *d,
		 uint32_t top);
void draw_place(struct search *search, uint32_t domain, struct draw *draw, struct arena *arena,
		struct placement *ret);
/* Places all tasks in the domain. */
void domain_fill(struct search *search, uint32_t domain, const struct fit *fit, struct arena *arena,
		 struct placement *ret);

/* find_parts.c: for a wish for parts of GPUs */
/* Tasks for which the node has room on these GPUs, at most CAPACITY_MAX; processors and memory do not count. Where it is `most` or more
 * GPUs may be left out. */
uint32_t part_tasks(const struct search *search, uint32_t rank, uint32_t gpus, uint32_t most);
/* The node for one task whose place is on a GPU that is shared already, RANK_NONE = there is none: it takes a free GPU. */
int32_t part_node_find(const struct search *search, uint32_t first, uint32_t end);
/* The node for several tasks that lie on one node. */
int32_t part_nodes_find(const struct search *search, uint32_t first, uint32_t end);
/* The lowest rank in [first, end) of the class with room for all tasks and a shared GPU of this step that has room for one. */
uint32_t part_step_next(const struct search *search, uint32_t class, uint32_t step, uint32_t first,
			uint32_t end);
/* Has the GPU room for a task, beside those whose parts lie there? */
bool part_is_open(const struct search *search, uint32_t rank, uint32_t gpu);
void part_node_fill(const struct search *search, uint32_t rank, uint32_t tasks,
		    struct placement *ret);
/* At least so many tasks fit on the GPUs of the domain when all are lucky: a bound. */
uint64_t part_bound(const struct search *search, uint32_t domain);
/* Why there is no room even without processors, memory and levels; false = there is. */
bool part_verdict(const struct search *search, const struct place_request *request,
		  struct verdict *ret);

/* find_slices.c: the same for slices, which find_parts.c hands on */
uint32_t slice_tasks(const struct search *search, uint32_t rank, uint32_t gpus);
int32_t slice_node_find(const struct search *search, uint32_t first, uint32_t end);
void slice_node_fill(const struct search *search, uint32_t rank, uint32_t tasks,
		     struct placement *ret);
uint64_t slice_bound(const struct search *search, uint32_t domain);

/* find_roles.c: for unlike tasks */
int roles_find(struct space *space, const struct place_request *request, struct arena *arena,
	       struct placement *ret, struct verdict *ret_why);
uint32_t roles_width(struct space *space, const struct place_request *request);

/* why.c: both return PLACE_NO; ret may be NULL */
void verdict_set(struct verdict *ret, enum reason code, uint8_t level, uint32_t at, int64_t have,
		 int64_t need);
int class_verdict(const struct space *space, const struct shape *shape, struct verdict *ret);
/* Most tasks in the request's domain with this shape instead, on any number of nodes. */
uint64_t tasks_anywhere(const struct search *search, const struct shape *shape,
			const struct place_request *request);
int place_verdict(const struct search *search, const struct place_request *request, uint64_t most,
		  uint32_t most_at, uint8_t level, struct verdict *ret);
