/* SPDX-License-Identifier: Apache-2.0 */
/* What the daemon says of itself. */
#include <string.h>
#include "api/call.h"
#include "api/forecast.h"
#include "api/hub.h"
#include "api/schema.h"
#include "api/slices.h"
#include "api/tally.h"
#include "core/model/taken.h"
#include "core/placement/demand.h"

enum { OUT_OF_SERVICE_SHOWN = 20 };

static struct api_status status_get(const struct call *call)
{
	struct api_status status = { 0 };

	call->api->backend->status(call->api->backend->context, &status);
	return status;
}

/* Open to everybody: a monitor needs no token to see that the daemon is in trouble, and why. */
void handle_healthz(struct call *call)
{
	const struct api_status status = status_get(call);
	const bool bad = status.degraded || *status.loop || *status.starts_problem ||
			 *status.history_problem;
	struct buf out = BUF_INIT;

	out_object(&out, NULL);
	out_text(&out, "status",
		 status.stands_by    ? "standing-by"
		 : !status.accepting ? "failing"
		 : bad               ? "degraded"
				     : "ok");
	if ((!status.accepting && !status.stands_by) || bad)
		out_text(&out, "problem",
			 !status.accepting        ? status.problem
			 : *status.loop           ? status.loop
			 : status.degraded        ? status.damage
			 : *status.starts_problem ? status.starts_problem
						  : status.history_problem);
	if (status.elected)
		out_text(&out, "leader", status.leader);
	out_end(&out, '}');
	call_reply(call, status.accepting || status.stands_by ? 200 : 503, &out);
}

void handle_version(struct call *call)
{
	struct buf out = BUF_INIT;

	out_object(&out, NULL);
	out_text(&out, "version", FAIRLEAD_VERSION);
	out_text(&out, "api", "v1");
	out_text(&out, "policy", core_policy_name);
	out_end(&out, '}');
	call_reply(call, 200, &out);
}

void handle_whoami(struct call *call)
{
	const struct caller *caller = &call->caller;
	struct buf out = BUF_INIT;

	out_object(&out, NULL);
	out_text(&out, "user", caller->user);
	out_text(&out, "team", caller->team);
	out_text(&out, "role", role_name(caller->role));
	out_int(&out, "uid", caller->uid);
	out_text(&out, "by", *caller->token ? "token" : "socket");
	if (*caller->token)
		out_text(&out, "token", caller->token);
	out_end(&out, '}');
	call_reply(call, 200, &out);
}

static int64_t users_count(const struct facts *f)
{
	int64_t count = 0;

	for (uint32_t id = 1; id <= f->users.count; id++) {
		const struct user *user = table_get(&f->users, id);

		count += user->name.v && !user->removed;
	}
	return count;
}

static int64_t nodes_count(const struct facts *f)
{
	int64_t count = 0;

	for (uint32_t id = 1; id <= f->nodes.count; id++)
		count += node_get(f, (struct node_id){ id })->state != NODE_GONE;
	return count;
}

static void status_counts_add(struct buf *out, const struct facts *f)
{
	struct tally tally;
	struct gpu_count gpus;

	tally_init(&tally, f);
	gpus = tally_all(&tally, f);
	out_object(out, "jobs");
	for (uint8_t i = JOB_QUEUED; i < JOB_STATES; i++)
		out_int(out, job_state_name(i), (int64_t)tally.jobs[i]);
	out_end(out, '}');
	out_object(out, "gpus");
	out_int(out, "total", gpus.total);
	out_int(out, "allocated", gpus.allocated);
	out_int(out, "free", gpus.free);
	out_int(out, "unusable", gpus.unusable);
	out_int(out, "shared", gpus.shared);
	out_share(out, "open", gpus.open_share);
	out_int(out, "cut", gpus.cut);
	out_end(out, '}');
	out_int(out, "nodes", nodes_count(f));
	out_int(out, "users", users_count(f));
	tally_deinit(&tally);
}

/* "GPU 1 of n0: 3 different jobs failed early on it" */
static void out_of_service_add(struct buf *out, const struct facts *f)
{
	char text[2 * EVENT_TEXT_MAX];
	int left = OUT_OF_SERVICE_SHOWN;

	out_list(out, "out_of_service");
	for (uint32_t id = 1; id <= f->nodes.count && left > 0; id++) {
		const struct node *node = node_get(f, (struct node_id){ id });
		const char *name = facts_name(f, node->name);

		if (node->state == NODE_QUARANTINED && left-- > 0) {
			snprintf(text, sizeof(text), "%s: %s", name, facts_text(f, node->reason));
			out_text(out, NULL, text);
		}
		for (uint32_t gpu = 0; gpu < node->gpu_count && left > 0; gpu++) {
			const struct gpu_record *record =
				table_get(&f->gpus, (id - 1) * NODE_GPUS_MAX + gpu + 1);

			if (!(node->set_aside_mask >> gpu & 1) || node->state == NODE_GONE)
				continue;
			left--;
			snprintf(text, sizeof(text), "GPU %u of %s: %s", gpu, name,
				 facts_text(f, record->reason));
			out_text(out, NULL, text);
		}
	}
	out_end(out, ']');
}

static int64_t mean(int64_t sum, int64_t count)
{
	return count ? sum / count : 0;
}

static void forecasts_add(struct call *call, struct buf *out)
{
	struct forecast_errors e;

	forecast_errors(call->api->forecasts, call->facts, &e);
	out_object(out, "forecasts");
	out_int(out, "waiting", e.waiting);
	out_int(out, "scored", e.scored);
	out_int(out, "safe_known", e.safe_known);
	out_int(out, "in_time", e.in_time);
	out_int(out, "loss_likely_ms", mean(e.loss_likely_ms, e.scored));
	out_int(out, "loss_safe_ms", mean(e.loss_safe_ms, e.safe_known));
	out_end(out, '}');
}

static void election_add(struct buf *out, const struct api_status *status)
{
	out_object(out, "election");
	out_bool(out, "leads", status->leads);
	out_bool(out, "stands_by", status->stands_by);
	out_text(out, "leader", status->leader);
	out_text(out, "leader_address", status->leader_address);
	out_int(out, "epoch", status->epoch);
	out_int(out, "behind_ms", status->behind_ms);
	out_end(out, '}');
}

static void cluster_add(struct buf *out, const struct api_status *status)
{
	out_object(out, "cluster");
	out_bool(out, "seen", status->cluster_seen);
	out_text(out, "problem", status->cluster_problem);
	out_int(out, "pods_refused", status->pods_refused);
	out_int(out, "conflicts", status->conflicts);
	out_text(out, "conflict", status->conflict);
	out_end(out, '}');
}

void handle_status(struct call *call)
{
	const struct api_status status = status_get(call);
	struct buf out = BUF_INIT;
	char lost[LOST_TEXT_MAX];

	facts_lost_text(call->facts, lost);
	out_object(&out, NULL);
	out_text(&out, "version", FAIRLEAD_VERSION);
	out_text(&out, "policy", core_policy_name);
	out_bool(&out, "accepting", status.accepting);
	out_text(&out, "problem", status.problem);
	out_text(&out, "loop", status.loop);
	out_text(&out, "history_problem", status.history_problem);
	out_text(&out, "starts_problem", status.starts_problem);
	out_of_service_add(&out, call->facts);
	out_int(&out, "started_ms", status.started_ms);
	out_time(&out, "started", status.started_ms);
	out_int(&out, "now_ms", status.now_ms);
	out_int(&out, "last_seq", (int64_t)status.last_seq);
	out_int(&out, "history_seq", (int64_t)status.history_seq);
	out_int(&out, "records_lost", (int64_t)call->facts->lost);
	out_text(&out, "damage", lost);
	out_text(&out, "damaged", status.damage);
	out_int(&out, "verified_seq", (int64_t)status.verified_seq);
	out_int(&out, "verified_ms", status.verified_ms);
	if (status.elected)
		election_add(&out, &status);
	if (status.on_cluster)
		cluster_add(&out, &status);
	out_bool(&out, "simulated", status.simulated_nodes);
	out_bool(&out, "runs_as_root", status.runs_as_root);
	if (call->caller.role == ROLE_ADMIN) {
		out_text(&out, "data_folder", status.data_folder);
		out_text(&out, "boot_id", status.boot_id);
	}
	out_int(&out, "turns", (int64_t)status.turns);
	out_int(&out, "decisions", (int64_t)status.decisions);
	out_int(&out, "commits", (int64_t)status.commits);
	out_int(&out, "longest_turn_us", status.longest_turn_us);
	out_int(&out, "longest_commit_us", status.longest_commit_us);
	out_int(&out, "stream_clients", event_hub_clients(call->api->hub));
	out_int(&out, "resident_bytes", status.resident_bytes);
	status_counts_add(&out, call->facts);
	forecasts_add(call, &out);
	out_end(&out, '}');
	call_reply(call, 200, &out);
}

void handle_openapi(struct call *call)
{
	struct buf out = BUF_INIT;

	openapi_document(&out);
	call_reply(call, 200, &out);
}

/* --- metrics ------------------------------------------------------------------------------------------------------------------ */

static void metric_head(struct buf *out, const char *name, const char *type, const char *help)
{
	buf_addf(out, "# HELP fairlead_%s %s\n# TYPE fairlead_%s %s\n", name, help, name, type);
}

static void metric(struct buf *out, const char *name, const char *type, const char *help,
		   int64_t value)
{
	metric_head(out, name, type, help);
	buf_addf(out, "fairlead_%s %lld\n", name, (long long)value);
}

/* Microseconds as seconds, in digits. */
static void metric_us(struct buf *out, const char *name, const char *help, int64_t us)
{
	metric_head(out, name, "gauge", help);
	buf_addf(out, "fairlead_%s %lld.%06d\n", name, (long long)(us / 1000000),
		 (int)(us % 1000000));
}

/* GPU shares as a number of GPUs, to six decimals. */
static void share_add(struct buf *out, int64_t share)
{
	const int64_t rest = share % GPU_SHARE * 1000000 / GPU_SHARE;

	buf_addi(out, share / GPU_SHARE);
	if (rest)
		buf_addf(out, ".%06lld", (long long)rest);
}

/* Names of queues hold letters, digits, dots, hyphens and underscores only: nothing to escape in a label. */
static void queue_metrics(struct buf *out, const struct facts *f, const struct tally *tally)
{
	static const struct {
		const char *name, *help;
	} kinds[] = {
		{ "queue_waiting_jobs", "Jobs of the queue that could start if there were room." },
		{ "queue_running_jobs", "Jobs of the queue that hold a place." },
		{ "queue_gpus", "GPUs held by jobs of the queue." },
	};

	for (size_t kind = 0; kind < 3; kind++) {
		metric_head(out, kinds[kind].name, "gauge", kinds[kind].help);
		for (uint32_t id = 1; id <= f->queues.count; id++) {
			const struct queue *q = queue_get(f, (struct queue_id){ id });
			const struct tally_queue *t = &tally->queues[id - 1];
			if (!q->name.v || q->removed)
				continue;
			buf_addf(out, "fairlead_%s{queue=\"%s\"} ", kinds[kind].name,
				 facts_name(f, q->name));
			share_add(out, kind == 0   ? (int64_t)t->waiting * GPU_SHARE
				       : kind == 1 ? (int64_t)t->running * GPU_SHARE
						   : t->share);
			buf_addc(out, '\n');
		}
	}
}

/* A GPU that is cut counts once among the GPUs; here what it was cut into. */
static void slice_metrics(struct buf *out, const struct facts *f, const struct tally *tally)
{
	struct slice_count rows[SLICE_COUNTS_MAX];
	uint32_t count = slices_count(f, tally, rows);

	metric_head(out, "slices", "gauge", "Slices of GPUs by what becomes of them.");
	for (uint32_t i = 0; i < count; i++) {
		const struct {
			const char *state;
			uint32_t value;
		} states[] = { { "free", rows[i].free },
			       { "held", rows[i].held },
			       { "unusable", rows[i].unusable } };

		for (uint32_t k = 0; k < ARRAY_SIZE(states); k++)
			buf_addf(out,
				 "fairlead_slices{model=\"%s\",slice=\"%s\",state=\"%s\"} %u\n",
				 rows[i].model, rows[i].slice, states[k].state, states[k].value);
	}
}

/* By node: who it is has no place in a label, as each process would be a series of its own. */
static void taken_metrics(struct buf *out, const struct facts *f)
{
	metric_head(out, "taken_gpus", "gauge",
		    "GPUs that something uses which Fairlead did not place.");
	for (uint32_t id = 1; id <= f->nodes.count; id++) {
		const struct node *node = node_get(f, (struct node_id){ id });
		uint32_t count = 0;

		for (uint32_t gpu = 0; gpu < node->gpu_count; gpu++)
			count += gpu_taken_by(f, (struct node_id){ id }, gpu) != NULL;
		if (count && node->state != NODE_GONE)
			buf_addf(out, "fairlead_taken_gpus{node=\"%s\"} %u\n",
				 facts_name(f, node->name), count);
	}
}

static void forecast_metrics(struct call *call, struct buf *out)
{
	struct forecast_errors e;

	forecast_errors(call->api->forecasts, call->facts, &e);
	metric(out, "start_forecasts_total", "counter", "Jobs with a forecast that started.",
	       e.scored);
	metric(out, "start_forecasts_p90_total", "counter",
	       "Of these, jobs whose forecast had a time for 9 of 10 cases.", e.safe_known);
	metric(out, "start_forecasts_p90_in_time_total", "counter",
	       "Of those, jobs that started by then.", e.in_time);
	metric(out, "start_forecast_p50_loss_ms_total", "counter",
	       "Pinball loss of forecasts at even odds, ms.", e.loss_likely_ms);
	metric(out, "start_forecast_p90_loss_ms_total", "counter",
	       "Pinball loss of forecasts for 9 of 10 cases, ms.", e.loss_safe_ms);
}

static int64_t fragments_sum(struct call *call)
{
	const struct facts *f = call->facts;
	int64_t *fragments = arena_new_array(call->arena, int64_t, f->nodes.count + 1), sum = 0;

	demand_fragments(f, call->arena, fragments);
	for (uint32_t i = 0; i < f->nodes.count; i++)
		sum += fragments[i];
	return sum;
}

void handle_metrics(struct call *call)
{
	const struct api_status s = status_get(call);
	const struct facts *f = call->facts;
	struct buf out = BUF_INIT;
	struct tally tally;
	struct gpu_count gpus;

	tally_init(&tally, f);
	gpus = tally_all(&tally, f);
	metric_head(&out, "info", "gauge", "Version, as a label.");
	buf_adds(&out, "fairlead_info{version=\"" FAIRLEAD_VERSION "\"} 1\n");
	metric(&out, "accepting", "gauge", "1 while new work is acknowledged.", s.accepting);
	if (s.elected) {
		metric(&out, "leads", "gauge", "1 while this daemon leads, 0 while it stands by.",
		       s.leads);
		metric(&out, "epoch", "gauge", "Number of the journal's writer.", s.epoch);
		metric(&out, "behind_ms", "gauge",
		       "Of a stand-by: how long ago it had followed the whole journal.",
		       s.behind_ms);
	}
	metric(&out, "start_time_ms", "gauge", "Start of the daemon, ms since 1970.", s.started_ms);
	metric_head(&out, "jobs", "gauge", "Jobs by state.");
	for (uint8_t i = JOB_QUEUED; i < JOB_STATES; i++)
		buf_addf(&out, "fairlead_jobs{state=\"%s\"} %llu\n", job_state_name(i),
			 (unsigned long long)tally.jobs[i]);
	metric_head(&out, "gpus", "gauge", "GPUs by what becomes of them.");
	buf_addf(
		&out,
		"fairlead_gpus{state=\"free\"} %u\nfairlead_gpus{state=\"allocated\"} %u\nfairlead_gpus{state=\"unusable\"} %u\nfairlead_gpus{state=\"cut\"} %u\n",
		gpus.free, gpus.allocated, gpus.unusable, gpus.cut);
	slice_metrics(&out, f, &tally);
	taken_metrics(&out, f);
	if (s.on_cluster)
		metric(&out, "authority_conflicts", "gauge",
		       "Pools of nodes with two placement authorities.", s.conflicts);
	metric(&out, "shared_gpus", "gauge",
	       "Of the allocated GPUs, those of which parts are held.", gpus.shared);
	metric_head(&out, "shared_gpus_open", "gauge", "What is left of these, in GPUs.");
	buf_adds(&out, "fairlead_shared_gpus_open ");
	share_add(&out, gpus.open_share);
	buf_addc(&out, '\n');
	metric_head(&out, "fragment_gpus", "gauge",
		    "GPUs that are open and of no use, as expected of the next task.");
	buf_adds(&out, "fairlead_fragment_gpus ");
	share_add(&out, fragments_sum(call));
	buf_addc(&out, '\n');
	metric(&out, "moved_jobs_total", "counter",
	       "Jobs moved so that free GPUs came to lie together.", f->moves.jobs);
	metric(&out, "moves_lost_gpu_ms_total", "counter",
	       "What these moves were reckoned to lose, in ms of one GPU.", f->moves.lost_gpu_ms);
	metric(&out, "simulated", "gauge", "1 when some nodes are simulated.", s.simulated_nodes);
	queue_metrics(&out, f, &tally);
	metric(&out, "journal_records_total", "counter", "Durable records of the journal.",
	       (int64_t)s.last_seq);
	metric(&out, "journal_records_lost_total", "counter",
	       "Records of the journal that could not be read and were set aside.",
	       (int64_t)f->lost);
	metric(&out, "history_records_total", "counter",
	       "Records that the history database has seen.", (int64_t)s.history_seq);
	metric(&out, "turns_total", "counter", "Turns of the core since the start.",
	       (int64_t)s.turns);
	metric(&out, "decisions_total", "counter", "Decisions since the start.",
	       (int64_t)s.decisions);
	metric(&out, "decisions_paused", "gauge",
	       "1 while the same is decided again and again, with pauses between.", *s.loop != 0);
	metric(&out, "decision_loops_total", "counter", "How often that began since the start.",
	       (int64_t)s.loops_braked);
	metric(&out, "commits_total", "counter", "Commits of the journal since the start.",
	       (int64_t)s.commits);
	metric_us(&out, "longest_turn_seconds", "Longest turn of the core since the start.",
		  s.longest_turn_us);
	metric_us(&out, "longest_commit_seconds", "Longest commit of the journal since the start.",
		  s.longest_commit_us);
	forecast_metrics(call, &out);
	metric(&out, "stream_clients", "gauge", "Open event streams.",
	       event_hub_clients(call->api->hub));
	metric(&out, "resident_bytes", "gauge", "Memory of the daemon.", s.resident_bytes);
	tally_deinit(&tally);
	call_reply_text(call, "text/plain; version=0.0.4; charset=utf-8", &out);
}
