/* SPDX-License-Identifier: Apache-2.0 */
#include "core/model/records.h"

#include <string.h>

#include "base/buf.h"
#include "base/check.h"
#include "core/model/edit.h"

#define ONE(type, member) { #member, FIELD_##type, offsetof(struct SELF, member), 1 }
#define SOME(type, member, count) { #member, FIELD_##type, offsetof(struct SELF, member), count }
#define LAST { NULL, 0, 0, 0 }

/* The tables. A field is only added at the end: its number is part of the hash. */

#define SELF facts
static const struct field head_fields[] = { ONE(I64, seq),
					    ONE(I64, now_ms),
					    ONE(I64, identity_version),
					    ONE(U32, level_count),
					    SOME(NAME, level, LEVELS_MAX),
					    ONE(U32, job_ids),
					    ONE(U32, attempt_ids),
					    ONE(U32, body_ids),
					    ONE(I64, lost),
					    ONE(I64, lost_jobs),
					    ONE(I64, lost_attempts),
					    SOME(I64, lost_first, LOST_RANGES),
					    SOME(I64, lost_last, LOST_RANGES),
					    ONE(I64, forecast.count),
					    ONE(I64, forecast.under_likely),
					    ONE(I64, forecast.under_safe),
					    ONE(I64, forecast.likely_loss_ms),
					    ONE(I64, forecast.safe_loss_ms),
					    ONE(I64, reviewed_ms),
					    ONE(I64, reviewed_seq),
					    ONE(U32, searched),
					    ONE(BOOL, search_stale),
					    ONE(I64, sought_ms),
					    ONE(I64, sought_seq),
					    ONE(I64, moves.looked_ms),
					    ONE(I64, moves.again_ms),
					    ONE(BOOL, moves.stale),
					    ONE(BOOL, moves.asked),
					    ONE(I64, moves.hour_ms),
					    ONE(U32, moves.in_hour),
					    ONE(I64, moves.jobs),
					    ONE(I64, moves.lost_gpu_ms),
					    SOME(TEXT, site.engine, SITE_ENGINE_MAX),
					    SOME(TEXT, site.cluster, SITE_TEXT_MAX),
					    SOME(TEXT, site.namespace, SITE_TEXT_MAX),
					    SOME(TEXT, site.instance, SITE_INSTANCE_MAX),
					    LAST };
#undef SELF

#define SELF policy
static const struct field policy_fields[] = { ONE(I64, min_runtime_ms),
					      ONE(I64, grace_ms),
					      ONE(I64, rejoin_ms),
					      ONE(I64, default_limit_ms),
					      ONE(I64, blackhole_window_ms),
					      ONE(I64, collect_after_ms),
					      ONE(I64, half_life_ms),
					      ONE(I64, packing),
					      ONE(I64, blackhole_failures),
					      ONE(I64, allow_critical_burst),
					      ONE(I64, backfill_depth),
					      ONE(I64, defragment),
					      ONE(I64, keep_ended_ms),
					      ONE(I64, order_deadline),
					      ONE(I64, order_efficiency),
					      ONE(I64, order_age),
					      ONE(I64, order_user),
					      ONE(I64, order_budget),
					      ONE(I64, budget_warns),
					      ONE(I64, share_gpus),
					      ONE(I64, defragment_moves),
					      ONE(I64, defragment_work_ms),
					      ONE(I64, patience),
					      ONE(I64, take_turns),
					      ONE(I64, reserve_unsure_ms),
					      ONE(I64, spot_notice_ms),
					      ONE(I64, max_slowdown),
					      LAST };
#undef SELF

#define SELF name
static const struct field name_fields[] = { SOME(TEXT, text, NAME_MAX_BYTES + 1), LAST };
#undef SELF

#define SELF node
static const struct field node_fields[] = { ONE(NAME, name),
					    ONE(NAME, model),
					    SOME(NAME, domain, LEVELS_MAX),
					    ONE(NAME, driver),
					    ONE(REASON, reason),
					    ONE(U32, gpu_count),
					    ONE(U32, gpu_memory_mib),
					    ONE(U32, cpu_milli),
					    ONE(U32, ram_mib),
					    ONE(U32, set_aside_mask),
					    SOME(U32, island_mask, ISLANDS_MAX),
					    SOME(U32, failed_job, FAILED_JOBS_KEPT),
					    SOME(I64, failed_ms, FAILED_JOBS_KEPT),
					    ONE(U8, state),
					    ONE(BOOL, simulated),
					    ONE(NAME, cuda),
					    SOME(NAME, label, LABELS_MAX),
					    SOME(NAME, taint, TAINTS_MAX),
					    ONE(U32, capability),
					    ONE(U8, class),
					    ONE(I64, drain_ms),
					    SOME(NAME, data, NODE_DATA_MAX),
					    ONE(I64, window_from_ms),
					    ONE(I64, window_to_ms),
					    ONE(REASON, window_reason),
					    ONE(U32, make),
					    SOME(U32, numa_gpus, NUMA_MAX),
					    SOME(U32, numa_cpu_milli, NUMA_MAX),
					    SOME(U32, numa_nics, NUMA_MAX),
					    ONE(REASON, numa_cpus),
					    SOME(U32, layout, NODE_GPUS_MAX),
					    ONE(U8, partitioning),
					    ONE(BOOL, slices_only),
					    ONE(U32, found.given),
					    SOME(U32, found.island, ISLANDS_MAX),
					    SOME(U32, found.pcie_switch, ISLANDS_MAX),
					    ONE(U32, found.nics),
					    ONE(U32, found.nic_mbps),
					    ONE(U32, found.nvlink_mbps),
					    ONE(U32, found.pcie_mbps),
					    ONE(BOOL, found.reduces),
					    ONE(U8, found.source),
					    ONE(U32, said),
					    SOME(U32, mask_bits, MASK_WORDS),
					    ONE(U8, capacity),
					    ONE(I64, turned_ms),
					    LAST };
#undef SELF

#define SELF gpu_record
static const struct field gpu_fields[] = { SOME(U32, failed_job, FAILED_JOBS_KEPT),
					   SOME(I64, failed_ms, FAILED_JOBS_KEPT),
					   ONE(REASON, reason), LAST };
#undef SELF

#define SELF queue
static const struct field queue_fields[] = { ONE(NAME, name),
					     ONE(U32, parent),
					     ONE(NAME, team),
					     ONE(I64, guarantee_share),
					     ONE(I64, limit_share),
					     ONE(I64, weight),
					     ONE(I64, default_limit_ms),
					     ONE(I64, used_gpu_ms),
					     ONE(BOOL, reserved),
					     ONE(BOOL, removed),
					     ONE(I64, past_gpu_ms),
					     ONE(I64, past_at_ms),
					     ONE(I64, past_rate_share),
					     ONE(REASON, calendar),
					     SOME(NAME, limit_model, QUEUE_MODELS_MAX),
					     SOME(I64, limit_model_share, QUEUE_MODELS_MAX),
					     ONE(I64, limit_cpu_milli),
					     ONE(I64, limit_ram_mib),
					     SOME(NAME, guarantee_model, QUEUE_MODELS_MAX),
					     SOME(I64, guarantee_model_share, QUEUE_MODELS_MAX),
					     ONE(I64, budget_micro),
					     ONE(I64, budget_ms),
					     ONE(NAME, currency),
					     ONE(I64, spent_micro),
					     ONE(U8, tiers),
					     ONE(I32, max_priority),
					     ONE(I64, user_limit_share),
					     ONE(U8, user_part),
					     ONE(U32, user_waiting),
					     LAST };
#undef SELF

#define SELF price
static const struct field price_fields[] = { ONE(NAME, model), ONE(I64, micro_per_hour), LAST };
#undef SELF

#define SELF past
static const struct field past_fields[] = { ONE(U32, queue),           ONE(NAME, user),
					    ONE(I64, past_gpu_ms),     ONE(I64, past_at_ms),
					    ONE(I64, past_rate_share), LAST };
#undef SELF

#define SELF data_set
static const struct field data_fields[] = { ONE(NAME, name), ONE(U32, size_mib),
					    SOME(NAME, place, DATA_PLACES_MAX), LAST };
#undef SELF

#define SELF transfer
static const struct field transfer_fields[] = { ONE(NAME, from), ONE(NAME, to),
						ONE(I64, micro_per_gb), ONE(U32, mbps), LAST };
#undef SELF

#define SELF pool
static const struct field pool_fields[] = {
	ONE(NAME, model),      ONE(NAME, place),    ONE(I64, there_ms),
	ONE(I64, away_ms),     ONE(U32, there),     ONE(U32, away),
	ONE(U32, nodes_there), ONE(I64, turned_ms), LAST
};
#undef SELF

#define SELF zone
static const struct field zone_fields[] = { ONE(NAME, name),
					    ONE(U32, count),
					    ONE(I32, before_ms),
					    SOME(I32, then_ms, ZONE_CHANGES_MAX),
					    SOME(I64, at_ms, ZONE_CHANGES_MAX),
					    LAST };
#undef SELF

#define SELF make
static const struct field make_fields[] = { ONE(NAME, model),
					    ONE(U32, gpus),
					    ONE(U32, nics),
					    ONE(U32, nic_mbps),
					    ONE(U32, memory_mbps),
					    ONE(U32, nvlink_mbps),
					    ONE(U32, reduce_mbps),
					    ONE(U32, tree_mbps),
					    ONE(U32, pcie_mbps),
					    ONE(U32, numa_mbps),
					    ONE(U32, socket_mbps),
					    SOME(U32, pcie_switch, ISLANDS_MAX),
					    SOME(U32, numa, ISLANDS_MAX),
					    LAST };
#undef SELF

#define SELF level_speed
static const struct field level_fields[] = { ONE(U32, flags), ONE(U32, over_milli),
					     ONE(U32, latency_ns), ONE(U32, host_mbps), LAST };
#undef SELF

#define SELF team
static const struct field team_fields[] = { ONE(NAME, name), ONE(NAME, title), ONE(BOOL, removed),
					    ONE(U32, first_job), LAST };
#undef SELF

#define SELF user
static const struct field user_fields[] = {
	ONE(NAME, name),    ONE(NAME, team),     ONE(I32, uid),    ONE(I32, gid), ONE(U8, role),
	ONE(BOOL, removed), ONE(U32, first_job), ONE(NAME, queue), LAST
};
#undef SELF

#define SELF token
static const struct field token_fields[] = { ONE(NAME, id),        ONE(NAME, user),
					     ONE(NAME, note),      SOME(BYTES, hash, 32),
					     ONE(I64, expires_ms), ONE(BOOL, revoked),
					     ONE(U32, owner),      LAST };
#undef SELF

#define SELF shape
static const struct field shape_fields[] = { ONE(U32, tasks_min),
					     ONE(U32, tasks_max),
					     ONE(U32, gpus),
					     ONE(U32, gpu_memory_mib),
					     ONE(U32, cpu_milli),
					     ONE(U32, memory_mib),
					     SOME(NAME, models, SHAPE_MODELS_MAX),
					     ONE(U8, require),
					     ONE(U8, prefer),
					     ONE(U8, spread),
					     ONE(U8, fragments),
					     ONE(U32, min_driver),
					     ONE(U32, min_cuda),
					     ONE(U32, min_capability),
					     SOME(NAME, regions, SHAPE_REGIONS_MAX),
					     SOME(NAME, labels, SHAPE_LABELS_MAX),
					     SOME(NAME, tolerates, SHAPE_LABELS_MAX),
					     ONE(U32, serves),
					     ONE(U32, gpu_part),
					     ONE(U32, gpu_part_mib),
					     ONE(NAME, team),
					     ONE(NAME, user),
					     ONE(U32, apart),
					     ONE(U32, mixes),
					     ONE(U32, min_throughput),
					     SOME(U16, throughput, SHAPE_MODELS_MAX),
					     SOME(NAME, data, SHAPE_DATA_MAX),
					     ONE(U32, max_slowdown),
					     ONE(U32, talks),
					     ONE(U32, role_count),
					     ONE(U32, role_ends),
					     SOME(NAME, role, ROLES_MAX),
					     SOME(U32, role_min, ROLES_MAX),
					     SOME(U32, role_max, ROLES_MAX),
					     SOME(U32, role_gpus, ROLES_MAX),
					     SOME(U32, role_cpu_milli, ROLES_MAX),
					     SOME(U32, role_memory_mib, ROLES_MAX),
					     ONE(U32, align),
					     ONE(NAME, window),
					     ONE(U32, window_end),
					     ONE(U32, slice),
					     SOME(NAME, own_label, JOB_LABELS_MAX),
					     SOME(NAME, apart_from, JOB_LABELS_MAX),
					     ONE(U32, apart_level),
					     ONE(U32, apart_wish),
					     ONE(NAME, mask),
					     ONE(U32, capacity),
					     SOME(NAME, role_mask, ROLES_MAX),
					     ONE(NAME, together),
					     LAST };
#undef SELF

#define SELF body
static const struct field body_fields[] = {
	SOME(BYTES, blob, 32), SOME(BYTES, mac, 32),  SOME(BYTES, client_key, 32),
	ONE(U32, job),         ONE(BOOL, keyed),      ONE(U8, efficiency),
	ONE(I64, deadline_ms), ONE(U16, array_limit), ONE(U8, capacity),
	ONE(U32, bytes),       ONE(I64, program),     LAST
};
#undef SELF

#define SELF job
static const struct field job_fields[] = { ONE(NAME, name),
					   ONE(NAME, user),
					   ONE(NAME, team),
					   ONE(NAME, project),
					   ONE(U32, queue),
					   ONE(U32, shape),
					   ONE(U32, attempt),
					   ONE(U32, last_attempt),
					   ONE(U32, array_first),
					   ONE(U32, array_count),
					   ONE(U32, attempts),
					   ONE(U32, body),
					   ONE(REASON, reason),
					   ONE(I32, priority),
					   ONE(U32, restart_cost_ms),
					   ONE(U32, grace_ms),
					   ONE(I64, submitted_ms),
					   ONE(I64, state_ms),
					   ONE(I64, limit_ms),
					   ONE(I64, estimate_ms),
					   ONE(I64, checkpoint_every_ms),
					   ONE(I64, used_gpu_ms),
					   ONE(I64, lost_gpu_ms),
					   ONE(I64, run_ms),
					   ONE(U32, checkpoints_made),
					   ONE(I32, exit_code),
					   ONE(I32, failed_rank),
					   ONE(I32, uid),
					   ONE(I32, gid),
					   ONE(U16, retries_left),
					   ONE(U8, state),
					   ONE(U8, kind),
					   ONE(U8, tier),
					   ONE(U8, signal),
					   ONE(U8, cause),
					   ONE(U8, resize),
					   ONE(BOOL, cancel_asked),
					   ONE(BOOL, held),
					   ONE(BOOL, checkpoints),
					   ONE(BOOL, preempts),
					   ONE(BOOL, evicted),
					   ONE(U32, likely_s),
					   ONE(BOOL, rejoins),
					   ONE(BOOL, external),
					   LAST };
#undef SELF

#define SELF depend
static const struct field depend_fields[] = { ONE(U32, job), ONE(U32, whole), LAST };
#undef SELF

#define SELF checkpoint
static const struct field checkpoint_fields[] = {
	ONE(U32, attempt),  ONE(I64, step),
	ONE(I64, at_ms),    ONE(I64, bytes),
	ONE(BOOL, is_void), SOME(TEXT, path, PATH_MAX_BYTES + 1),
	ONE(REASON, why),   LAST
};
#undef SELF

#define SELF promise
static const struct field promise_fields[] = { ONE(U32, node),
					       ONE(U32, gpu_mask),
					       ONE(U32, victim),
					       ONE(U32, gpu_part),
					       ONE(U32, gpu_part_mib),
					       ONE(U32, slice),
					       LAST };
#undef SELF

#define SELF attempt
static const struct field attempt_fields[] = { ONE(U32, job),
					       ONE(U32, tasks),
					       ONE(U32, ready),
					       ONE(U32, started),
					       ONE(U32, exited),
					       ONE(U32, for_job),
					       ONE(U32, resume_number),
					       ONE(I64, placed_ms),
					       ONE(I64, released_ms),
					       ONE(I64, ended_ms),
					       ONE(I64, warned_ms),
					       ONE(I64, deadline_ms),
					       ONE(I64, stopped_ms),
					       ONE(I64, checkpoint_ms),
					       ONE(I32, first_failed_rank),
					       ONE(REASON, reason),
					       ONE(U8, state),
					       ONE(U8, why),
					       ONE(U8, unreachable),
					       ONE(U32, previous),
					       ONE(I64, likely_ms),
					       ONE(I64, safe_ms),
					       ONE(U32, left),
					       ONE(U32, leaving),
					       ONE(U32, generation),
					       ONE(I64, resized_ms),
					       ONE(I64, lacks_ms),
					       ONE(I64, parts_share),
					       ONE(U32, near_data),
					       ONE(U32, near_home),
					       ONE(U32, bandwidth_mbps),
					       ONE(U32, slowdown_permille),
					       ONE(I64, transfer_ms),
					       ONE(I64, transfer_micro),
					       ONE(BOOL, shielded),
					       ONE(BOOL, deaf),
					       ONE(BOOL, forgiven),
					       ONE(U32, least),
					       LAST };
#undef SELF

#define SELF task
static const struct field task_fields[] = { ONE(U32, node),
					    ONE(U32, gpu_mask),
					    ONE(U32, reports),
					    ONE(I32, code),
					    ONE(I64, step),
					    ONE(U32, peak_memory_mib),
					    ONE(U8, state),
					    ONE(U8, signal),
					    ONE(U8, cause),
					    ONE(BOOL, never_ran),
					    ONE(BOOL, memory_enforced),
					    ONE(BOOL, leaving),
					    ONE(BOOL, was_ready),
					    ONE(BOOL, was_started),
					    ONE(U32, launch),
					    ONE(I64, from_ms),
					    ONE(U32, gpu_part),
					    ONE(U32, gpu_part_mib),
					    ONE(U32, slice),
					    ONE(BOOL, gpu_limited),
					    LAST };
#undef SELF

#define SELF like
static const struct field like_fields[] = { ONE(I64, key), ONE(I64, seq), ONE(U32, runs),
					    SOME(I64, run_ms, LIKE_RUNS), LAST };
#undef SELF

#define SELF booking
static const struct field booking_fields[] = { ONE(NAME, name),
					       ONE(U32, queue),
					       ONE(I64, from_ms),
					       ONE(I64, to_ms),
					       ONE(NAME, model),
					       ONE(U32, gpus),
					       ONE(BOOL, keep),
					       ONE(REASON, reason),
					       SOME(U32, node, BOOKING_NODES_MAX),
					       SOME(U32, mask, BOOKING_NODES_MAX),
					       ONE(NAME, user),
					       ONE(NAME, team),
					       LAST };
#undef SELF

#define SELF node_mask
static const struct field mask_fields[] = { ONE(NAME, name), ONE(REASON, why), LAST };
#undef SELF

#define SELF reservation_fact
static const struct field reservation_fields[] = { ONE(I64, start_ms), ONE(U32, waits_for), LAST };
#undef SELF

static const struct {
	const char *name;
	const struct field *fields;
} record_kinds[RECORD_END - RECORD_HEAD] = {
	[RECORD_HEAD - RECORD_HEAD] = { "head", head_fields },
	[RECORD_POLICY - RECORD_HEAD] = { "policy", policy_fields },
	[RECORD_NAME - RECORD_HEAD] = { "name", name_fields },
	[RECORD_NODE - RECORD_HEAD] = { "node", node_fields },
	[RECORD_GPU - RECORD_HEAD] = { "gpu", gpu_fields },
	[RECORD_QUEUE - RECORD_HEAD] = { "queue", queue_fields },
	[RECORD_TEAM - RECORD_HEAD] = { "team", team_fields },
	[RECORD_USER - RECORD_HEAD] = { "user", user_fields },
	[RECORD_TOKEN - RECORD_HEAD] = { "token", token_fields },
	[RECORD_SHAPE - RECORD_HEAD] = { "shape", shape_fields },
	[RECORD_BODY - RECORD_HEAD] = { "body", body_fields },
	[RECORD_JOB - RECORD_HEAD] = { "job", job_fields },
	[RECORD_DEPEND - RECORD_HEAD] = { "depend", depend_fields },
	[RECORD_CHECKPOINT - RECORD_HEAD] = { "checkpoint", checkpoint_fields },
	[RECORD_PROMISE - RECORD_HEAD] = { "promise", promise_fields },
	[RECORD_ATTEMPT - RECORD_HEAD] = { "attempt", attempt_fields },
	[RECORD_TASK - RECORD_HEAD] = { "task", task_fields },
	[RECORD_LIKE - RECORD_HEAD] = { "like", like_fields },
	[RECORD_PRICE - RECORD_HEAD] = { "price", price_fields },
	[RECORD_BOOKING - RECORD_HEAD] = { "booking", booking_fields },
	[RECORD_ZONE - RECORD_HEAD] = { "zone", zone_fields },
	[RECORD_PAST - RECORD_HEAD] = { "past", past_fields },
	[RECORD_DATA - RECORD_HEAD] = { "data", data_fields },
	[RECORD_TRANSFER - RECORD_HEAD] = { "transfer", transfer_fields },
	[RECORD_MASK - RECORD_HEAD] = { "mask", mask_fields },
	[RECORD_POOL - RECORD_HEAD] = { "pool", pool_fields },
	[RECORD_RESERVATION - RECORD_HEAD] = { "reservation", reservation_fields },
	[RECORD_RESERVED - RECORD_HEAD] = { "reserved", promise_fields },
	[RECORD_LEVEL - RECORD_HEAD] = { "level", level_fields },
	[RECORD_MAKE - RECORD_HEAD] = { "make", make_fields },
};

#define T(member, type) _Static_assert(sizeof(type) <= RECORD_ROW_MAX, "fits a record's buffer");
FACTS_TABLES(T)
#undef T
_Static_assert(sizeof(struct policy) <= RECORD_ROW_MAX, "fits a record's buffer");

const struct field *record_fields(uint32_t kind)
{
	return kind >= RECORD_HEAD && kind < RECORD_END ? record_kinds[kind - RECORD_HEAD].fields
							: NULL;
}

const char *record_name(uint32_t kind)
{
	return record_fields(kind) ? record_kinds[kind - RECORD_HEAD].name : "unknown";
}

/* --- fields ------------------------------------------------------------------------------------------ */

size_t field_bytes(const struct field *field)
{
	switch ((enum field_type)field->type) {
	case FIELD_U8:
	case FIELD_BOOL:
	case FIELD_BYTES:
	case FIELD_TEXT: return 1;
	case FIELD_U16: return 2;
	case FIELD_U32:
	case FIELD_I32:
	case FIELD_REASON:
	case FIELD_NAME: return 4;
	case FIELD_I64: return 8;
	}
	UNREACHABLE();
}

bool field_is_list(const struct field *field)
{
	return field->count > 1 && field->type != FIELD_BYTES && field->type != FIELD_TEXT;
}

bool field_is_empty(const struct field *field, const void *row)
{
	static const unsigned char zeroes[RECORD_ROW_MAX]; /* no field is larger than its row */
	const unsigned char *at = (const unsigned char *)row + field->offset;

	if (field->type == FIELD_TEXT)
		return !*at;
	return memcmp(at, zeroes, field_bytes(field) * field->count) == 0;
}

int64_t field_int(const struct field *field, const void *row, uint32_t at)
{
	const unsigned char *from =
		(const unsigned char *)row + field->offset + at * field_bytes(field);
	uint16_t u16;
	uint32_t u32;
	int32_t i32;
	int64_t i64;

	switch ((enum field_type)field->type) {
	case FIELD_U8:
	case FIELD_BOOL: return *from;
	case FIELD_U16: memcpy(&u16, from, sizeof(u16)); return u16;
	case FIELD_U32:
	case FIELD_REASON:
	case FIELD_NAME: memcpy(&u32, from, sizeof(u32)); return u32;
	case FIELD_I32: memcpy(&i32, from, sizeof(i32)); return i32;
	case FIELD_I64: memcpy(&i64, from, sizeof(i64)); return i64;
	case FIELD_BYTES:
	case FIELD_TEXT: break;
	}
	UNREACHABLE();
}

static bool in_range(const struct field *field, int64_t value)
{
	switch ((enum field_type)field->type) {
	case FIELD_U8: return value >= 0 && value <= UINT8_MAX;
	case FIELD_BOOL: return value == 0 || value == 1;
	case FIELD_U16: return value >= 0 && value <= UINT16_MAX;
	case FIELD_U32:
	case FIELD_REASON:
	case FIELD_NAME: return value >= 0 && value <= UINT32_MAX;
	case FIELD_I32: return value >= INT32_MIN && value <= INT32_MAX;
	case FIELD_I64: return true;
	case FIELD_BYTES:
	case FIELD_TEXT: break;
	}
	UNREACHABLE();
}

bool field_set_int(const struct field *field, void *row, uint32_t at, int64_t value)
{
	size_t bytes = field_bytes(field);
	unsigned char *to = (unsigned char *)row + field->offset + at * bytes;
	uint16_t u16 = (uint16_t)value;
	uint32_t u32 = (uint32_t)value;

	if (at >= field->count || !in_range(field, value))
		return false;
	if (bytes == 1)
		*to = (unsigned char)value;
	else if (bytes == 2)
		memcpy(to, &u16, bytes);
	else if (bytes == 4)
		memcpy(to, &u32, bytes);
	else
		memcpy(to, &value, bytes);
	return true;
}

/* --- the walk ------------------------------------------------------------------------------------------ */

struct walk {
	const struct facts *f;
	void *context;
	int (*take)(void *context, const struct record_row *row);
};

static int walk_take(const struct walk *w, uint32_t kind, uint32_t id, uint32_t sub,
		     const void *row)
{
	const struct record_row record = { kind, id, sub, record_fields(kind), row };

	return w->take(w->context, &record);
}

static int walk_table(const struct walk *w, uint32_t kind, const struct table *table)
{
	int result = 0;

	for (uint32_t id = 1; !result && id <= table->count; id++)
		result = walk_take(w, kind, id, 0, table_get(table, id));
	return result;
}

static int walk_bodies(const struct walk *w)
{
	int result = 0;

	for (uint32_t id = 1; !result && id <= w->f->bodies.count; id++) {
		const struct body *body = table_get(&w->f->bodies, id);

		if (body->job)
			result = walk_take(w, RECORD_BODY, id, 0, body);
	}
	return result;
}

static int walk_gpus(const struct walk *w)
{
	static const struct gpu_record clean;
	int result = 0;

	for (uint32_t row = 1; !result && row <= w->f->gpus.count; row++) {
		const struct gpu_record *gpu = table_get(&w->f->gpus, row);

		if (memcmp(gpu, &clean, sizeof(clean)) != 0)
			result = walk_take(w, RECORD_GPU, (row - 1) / NODE_GPUS_MAX + 1,
					   (row - 1) % NODE_GPUS_MAX, gpu);
	}
	return result;
}

static int walk_checkpoints(const struct walk *w, uint32_t id, const struct job *job)
{
	uint32_t number = job->checkpoints_made < CHECKPOINTS_KEPT
				  ? 1
				  : job->checkpoints_made - CHECKPOINTS_KEPT + 1;
	int result = 0;

	for (; !result && job->checkpoint && number <= job->checkpoints_made; number++) {
		const struct checkpoint *checkpoint = table_get(
			&w->f->checkpoints, job->checkpoint + (number - 1) % CHECKPOINTS_KEPT);

		if (checkpoint->number == number) /* else its record was lost */
			result = walk_take(w, RECORD_CHECKPOINT, id, number, checkpoint);
	}
	return result;
}

static int walk_job(const struct walk *w, uint32_t id)
{
	const struct job *job = job_get(w->f, (struct job_id){ id });
	int result = job->state == JOB_NONE ? 0 : walk_take(w, RECORD_JOB, id, 0, job);
	uint32_t sub = 0;

	for (uint32_t row = job->depends; !result && row;) {
		const struct depend *depend = table_get(&w->f->depends, row);

		result = walk_take(w, RECORD_DEPEND, id, sub++, depend);
		row = depend->next;
	}
	if (!result)
		result = walk_checkpoints(w, id, job);
	sub = 0;
	for (uint32_t row = job->promise; !result && row;) {
		const struct promise *promise = table_get(&w->f->promises, row);

		result = walk_take(w, RECORD_PROMISE, id, sub++, promise);
		row = promise->next;
	}
	return result;
}

static int walk_attempt(const struct walk *w, uint32_t id)
{
	const struct attempt *attempt = attempt_get(w->f, (struct attempt_id){ id });
	int result =
		attempt->state == ATTEMPT_FREE ? 0 : walk_take(w, RECORD_ATTEMPT, id, 0, attempt);

	for (uint32_t rank = 0; !result && attempt->first_task && rank < attempt->tasks; rank++)
		result = walk_take(w, RECORD_TASK, id, rank, task_get(w->f, attempt, rank));
	return result;
}

static int walk_reservation(const struct walk *w, const struct reservation_fact *r)
{
	int result = walk_take(w, RECORD_RESERVATION, r->job, 0, r);
	uint32_t sub = 0;

	for (uint32_t row = r->first; !result && row;) {
		const struct promise *promise = table_get(&w->f->promises, row);

		result = walk_take(w, RECORD_RESERVED, r->job, sub++, promise);
		row = promise->next;
	}
	return result;
}

/* Levels about which nothing is said are left out. */
static int walk_fabric(const struct walk *w)
{
	static const struct level_speed nothing;
	const struct fabric_facts *fabric = &w->f->fabric;
	int result = 0;

	for (uint32_t l = 0; !result && l <= LEVELS_MAX; l++)
		if (memcmp(&fabric->level[l], &nothing, sizeof(nothing)) != 0)
			result = walk_take(w, RECORD_LEVEL, l, 0, &fabric->level[l]);
	for (uint32_t i = 0; !result && i < fabric->make_count; i++)
		result = walk_take(w, RECORD_MAKE, i + 1, 0, &fabric->make[i]);
	return result;
}

int facts_walk(const struct facts *f, void *context,
	       int (*take)(void *context, const struct record_row *row))
{
	const struct walk w = { f, context, take };
	const struct {
		uint32_t kind;
		const struct table *table;
	} plain[] = {
		{ RECORD_NODE, &f->nodes },     { RECORD_QUEUE, &f->queues },
		{ RECORD_TEAM, &f->teams },     { RECORD_USER, &f->users },
		{ RECORD_TOKEN, &f->tokens },   { RECORD_SHAPE, &f->shapes },
		{ RECORD_PRICE, &f->prices },   { RECORD_BOOKING, &f->bookings },
		{ RECORD_ZONE, &f->zones },     { RECORD_PAST, &f->pasts },
		{ RECORD_DATA, &f->data_sets }, { RECORD_TRANSFER, &f->transfers },
		{ RECORD_MASK, &f->masks },     { RECORD_POOL, &f->pools },
	};
	int result = walk_table(&w, RECORD_NAME, &f->names);

	if (!result)
		result = walk_take(&w, RECORD_HEAD, 0, 0, f);
	if (!result)
		result = walk_take(&w, RECORD_POLICY, 0, 0, &f->policy);
	if (!result)
		result = walk_fabric(&w);
	for (size_t i = 0; !result && i < ARRAY_SIZE(plain); i++)
		result = walk_table(&w, plain[i].kind, plain[i].table);
	if (!result)
		result = walk_bodies(&w);
	if (!result)
		result = walk_gpus(&w);
	for (uint32_t id = 1; !result && id <= f->jobs.count; id++)
		result = walk_job(&w, id);
	for (uint32_t id = 1; !result && id <= f->attempts.count; id++)
		result = walk_attempt(&w, id);
	for (uint32_t row = 1; !result && row <= f->likes.count; row++)
		if (((const struct like *)table_get(&f->likes, row))->key)
			result = walk_take(&w, RECORD_LIKE, row, 0, table_get(&f->likes, row));
	for (uint32_t row = 1; !result && row <= f->reservation_count; row++)
		result = walk_reservation(&w, reservation_get(f, row));
	return result;
}
