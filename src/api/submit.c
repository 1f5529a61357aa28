/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Submission. The way of a job file: parsed (jobfile.h), given its owner, checked for the right to use its queue, then a
 * command to the core; the answer leaves when it is durable.
 *
 * The client key: the header Idempotency-Key, made one's own by hashing it with the user's name, so that two people
 * may use the same key. With it goes a MAC of the body: the same key with another body is a conflict.
 */
#include <string.h>
#include "api/model_names.h"
#include "api/call.h"
#include "api/forecast.h"
#include "api/job_show.h"
#include "api/jobfile/checkpoint_place.h"
#include "api/jobfile/jobfile.h"
#include "api/money.h"
#include "api/own_masks.h"
#include "api/planner.h"
#include "api/snapshots.h"
#include "api/submit.h"
#include "api/zones.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/conf.h"
#include "base/digest.h"
#include "base/parse.h"
#include "core/model/apply.h"
#include "engine/own_folder.h"
#include "engine/pods.h"

enum { KEY_MAX = 255, FILE_NAME_MAX = 200, EVENT_BYTES_USUAL = 1000, ANSWER_BYTES_USUAL = 250 };

struct submission {
	struct call *call;
	struct job_request request;
	struct event zone; /* that its window needs, to be told before; kind 0 = none */
	struct command *command; /* waits until that is known */
	const char *queue_said; /* as the job file has it: "default" where it names none */
	const char *place; /* what is to be said of its checkpoints in pods; "" = nothing */
	const char *prospect;
	bool nodes_known,
		impossible; /* of a dry run: whether it could not start at all, and whether that can be known */
};

/* The file's name, for messages only: printable, short. */
static const char *file_name(const struct call *call)
{
	const char *given = http_header(call->request, "X-Fairlead-File");

	if (!given || !*given)
		return "job file";
	if (!text_is_utf8(given, strlen(given)))
		return "job file";
	return arena_strndup(call->arena, given, strnlen(given, FILE_NAME_MAX));
}

static int client_key(struct call *call, const char **ret, struct err *err)
{
	const char *key = http_header(call->request, "Idempotency-Key");
	char *hex = arena_alloc(call->arena, DIGEST_HEX_MAX);
	const struct user *user = table_get(&call->facts->users, call->caller.id);
	const char *owner = call->caller.user;
	struct digest digest;

	*ret = "";
	/* Keys of an earlier user of this name are not found. No name has a slash. */
	if (user->first_job)
		owner = arena_printf(call->arena, "%s/%u", owner, call->caller.id);
	if (!key)
		return 0;
	if (!*key || strlen(key) > KEY_MAX)
		return err_set(err, ERR_INVALID, "the Idempotency-Key must have 1 to %d characters",
			       KEY_MAX);
	digest = digest_of_two(owner, strlen(owner) + 1, key, strlen(key));
	*ret = digest_format(&digest, hex);
	return 0;
}

/* Whose it is, and for which team it counts. Only an admin submits for another team than his own. */
static int owner_fill(struct call *call, struct event_job_submitted *job, struct err *err)
{
	if (call->caller.uid < 0)
		return err_set(
			err, ERR_FORBIDDEN,
			"%s has no account on this machine as which a job could run; ask an admin to run: "
			"fairlead users change %s --uid UID",
			call->caller.user, call->caller.user);
	if (call->caller.gid < 0)
		return err_set(
			err, ERR_FORBIDDEN,
			"%s has no group on this machine as which a job could run; ask an admin to run: "
			"fairlead users change %s --gid GID",
			call->caller.user, call->caller.user);
	job->user = call->caller.user;
	job->uid = call->caller.uid;
	job->gid = call->caller.gid;
	if (!*job->team) {
		job->team = call->caller.team;
		return 0;
	}
	if (strcmp(job->team, call->caller.team) != 0 && call->caller.role != ROLE_ADMIN)
		return err_set(err, ERR_FORBIDDEN,
			       "team \"%s\": %s is of team \"%s\"; leave the field out", job->team,
			       call->caller.user, call->caller.team);
	if (!facts_team_find(call->facts, job->team))
		return err_set(err, ERR_NOT_FOUND, "there is no team \"%s\"", job->team);
	return 0;
}

int queue_open_to(const struct call *call, const char *queue, struct err *err)
{
	const struct queue_id id = facts_queue_find(call->facts, queue);
	const char *team = id.v ? facts_name(call->facts, queue_get(call->facts, id)->team) : "";

	if (!*team || !strcmp(team, call->caller.team) ||
	    call_may(call, ROUTE_job_submit, RELATION_OTHER))
		return 0;
	return err_set(err, ERR_FORBIDDEN, "queue \"%s\" is for team \"%s\"; %s is of team \"%s\"",
		       queue, team, call->caller.user, call->caller.team);
}

/* The queue says who may: its team's members, or everybody when it has none. */
static int queue_permit(struct call *call, const char *name, struct err *err)
{
	const struct queue_id id = facts_queue_find(call->facts, name);
	const char *team;

	if (!id.v) /* the core says so, with the names that there are; nothing is granted by it */
		return call_permit(call, RELATION_TEAM, "a job", err);
	team = facts_name(call->facts, queue_get(call->facts, id)->team);
	if (!*team || !strcmp(team, call->caller.team))
		return call_permit(call, RELATION_TEAM,
				   arena_printf(call->arena, "a job in queue \"%s\"", name), err);
	if (queue_open_to(call, name, err) < 0)
		return -(int)err->code;
	call->permitted = true;
	return 0;
}

/*
 * Of all that was asked for, the body included, but not the state of git and the variables of the shell: a repeated key with anything else in it is a conflict. The queue
 * counts as it was said: a retry is the same request though the user's queue is another one by then.
 */
static const char *request_mac(struct submission *s)
{
	struct call *call = s->call;
	const struct job_request *request = &s->request;
	struct event said = request->event;
	AUTO_BUF all = BUF_INIT;
	char *mac = arena_alloc(call->arena, DIGEST_HEX_MAX);

	said.job_submitted.queue = s->queue_said;
	buf_reserve(&all, request->lasting_size + EVENT_BYTES_USUAL);
	event_encode(&said, &all);
	buf_addc(&all, '\n');
	buf_add(&all, request->lasting, request->lasting_size);
	call->api->backend->body_mac(call->api->backend->context, all.data, all.size, mac);
	return mac;
}

/* 17 stands for all of array 17, when it is one; 17_3 is number 3 of array 17 only where there is such an array. */
static int depends_read(const struct call *call, struct job_request *request, struct err *err)
{
	struct event_job_submitted *job = &request->event.job_submitted;
	int64_t *whole = arena_new_array(call->arena, int64_t, (size_t)job->depends_count + 1);

	for (uint32_t i = 0; i < job->depends_count; i++) {
		const int64_t array = request->depend_arrays[i],
			      number = array ? array : job->depends[i];
		const struct job *first =
			job_is_there(call->facts, number)
				? job_get(call->facts, (struct job_id){ (uint32_t)number })
				: NULL;

		if (!array) {
			whole[i] = first && first->array_first == number;
			job->depends_whole_count =
				whole[i] ? job->depends_count : job->depends_whole_count;
			continue;
		}
		if (!first || first->array_first != array)
			return err_set(err, ERR_NOT_FOUND,
				       "depends_on: %lld_%lld: there is no array %lld",
				       (long long)array, (long long)(job->depends[i] - array),
				       (long long)array);
		if (job->depends[i] >= array + first->array_count)
			return err_set(err, ERR_NOT_FOUND,
				       "depends_on: %lld_%lld: array %lld has the numbers 0 to %u",
				       (long long)array, (long long)(job->depends[i] - array),
				       (long long)array, first->array_count - 1);
	}
	job->depends_whole = whole;
	return 0;
}

/* A job that names no queue goes where its user's jobs go. */
static void queue_choose(struct submission *s, const struct conf *document)
{
	struct event_job_submitted *job = &s->request.event.job_submitted;

	s->queue_said = job->queue;
	if (!conf_find(document, "queue"))
		job->queue = facts_default_queue(s->call->facts, s->call->caller.id, job->team);
}

/* Whose it is, and whether he may. */
static int submission_permit(struct submission *s, const struct conf *document, struct err *err)
{
	struct call *call = s->call;
	struct event_job_submitted *job = &s->request.event.job_submitted;
	int rc;

	s->request.event.actor = call->caller.user;
	rc = depends_read(call, &s->request, err);
	if (rc >= 0)
		rc = owner_fill(call, job, err);
	if (rc < 0)
		return rc;
	queue_choose(s, document);
	rc = queue_permit(call, job->queue, err);
	if (rc < 0)
		return rc;
	rc = zone_wanted(call, job->window, &s->zone, err);
	s->zone.seq = call->facts->seq; /* for copies: it counts as no step of theirs */
	return rc < 0 ? err_prefix(err, "window") : 0;
}

/* Whether the job's path is the folder or in it. */
static bool is_within(const char *path, const char *folder)
{
	size_t length = strlen(folder);

	while (length && folder[length - 1] == '/')
		length--;
	return strncmp(path, folder, length) == 0 && (!path[length] || path[length] == '/');
}

static bool host_path_permitted(const struct api_backend *backend, const char *path)
{
	for (size_t i = 0; backend->host_paths && backend->host_paths[i]; i++)
		if (is_within(path, backend->host_paths[i]))
			return true;
	return false;
}

/* What is asked for its pods. */
static int pods_permit(const struct call *call, const struct job_request *request, struct err *err)
{
	const struct api_backend *backend = call->api->backend;

	if (request->image && !backend->pods)
		return err_set(
			err, ERR_UNSUPPORTED,
			"image is for a cluster; this daemon runs programs as they are on its machine: leave it out");
	if (request->pod_field && !backend->pods)
		return err_set(
			err, ERR_UNSUPPORTED,
			"%s is for a cluster; this daemon runs programs as they are on its machine, with its folders, devices and memory under their own names: leave it out",
			request->pod_field);
	if (!request->image && backend->image_needed)
		return err_set(
			err, ERR_INVALID,
			"the job names no image, and the daemon was started without --image: say image, such as pytorch/pytorch:2.8.0");
	for (uint32_t i = 0; i < request->host_path_count; i++)
		if (!host_path_permitted(backend, request->host_paths[i]))
			return err_set(
				err, ERR_FORBIDDEN,
				"volumes: the folder %.200s of nodes is not open to jobs here; whoever runs the daemon opens folders with --host-path",
				request->host_paths[i]);
	return 0;
}

/* The data folder is the daemon's; a job gets its place in there from the daemon. Of nodes of a cluster it is not known where paths lead. */
static int path_permit(const struct call *call, const char *field, const char *path,
		       struct err *err)
{
	const struct api *api = call->api;

	if (!path || !*api->folder || !path_leads_into(api->folder, path))
		return 0;
	return err_set(
		err, ERR_FORBIDDEN,
		"%s: %.300s leads into the daemon's data folder, which no job may use; "
		"name a folder of your own%s",
		field, path,
		strcmp(field, "checkpoint.path") == 0
			? ", or leave the field out: the job then gets a folder from the daemon"
			: "");
}

static int paths_permit(const struct call *call, const struct job_request *request, struct err *err)
{
	int rc = 0;

	if (!call->api->backend->pods)
		rc = path_permit(call, "workdir", request->workdir, err);
	if (rc >= 0 && !call->api->backend->pods)
		rc = path_permit(call, "checkpoint.path", request->checkpoint_path, err);
	for (uint32_t i = 0; rc >= 0 && i < request->host_path_count; i++)
		rc = path_permit(call, "volumes", request->host_paths[i], err);
	return rc;
}

static int document_read(const struct call *call, const char *file, const struct conf *document,
			 struct job_request *ret, struct err *err)
{
	return call->api->backend->pods
		       ? jobfile_read_for_pods(file, document, call->arena, ret, err)
		       : jobfile_read(file, document, call->arena, ret, err);
}

/* A dry run has sent none. */
static int snapshot_permit(const struct call *call, const struct job_request *request, bool dry_run,
			   struct err *err)
{
	if (!request->snapshot)
		return 0;
	return dry_run ? snapshots_permit(call, err) : snapshot_find(call, request->snapshot, err);
}

/* So that a dry run refuses what a submission does. */
static int engine_permits(const struct call *call, const struct event *event, struct err *err)
{
	const struct api_backend *backend = call->api->backend;

	return backend->permit ? backend->permit(backend->context, event, err) : 0;
}

/* After the MAC too: what a short name means may change between two tries. */
static int models_complete(struct call *call, struct job_request *request, struct err *err)
{
	struct event_job_submitted *job = &request->event.job_submitted;

	return models_in_full(call->facts, job->models, call->arena, &job->models, err);
}

/* After the MAC too: how a program is told from another may change from one release to the next. */
static int program_note(const struct call *call, struct job_request *request, struct err *err)
{
	struct job_body body;
	int rc = job_body_parse(request->body, request->body_size, call->arena, &body, err);

	if (rc >= 0)
		request->event.job_submitted.program = job_body_program(&body);
	return rc;
}

static int submission_read(struct submission *s, struct err *err)
{
	struct call *call = s->call;
	struct event_job_submitted *job = &s->request.event.job_submitted;
	size_t size;
	const char *text = http_body(call->request, &size);
	struct conf *document;
	int rc = jobfile_read_text(file_name(call), text, size, call->arena, &document, err);

	if (rc >= 0)
		rc = document_read(call, file_name(call), document, &s->request, err);
	if (rc >= 0 && job->checkpoint && call->api->backend->pods)
		s->place = checkpoint_place_text(document, call->arena);
	if (rc >= 0)
		rc = submission_permit(s, document, err);
	if (rc >= 0)
		rc = pods_permit(call, &s->request, err);
	if (rc >= 0)
		rc = paths_permit(call, &s->request, err);
	if (rc >= 0)
		rc = snapshot_permit(call, &s->request, call_query_int(call, "dry_run", 0) != 0,
				     err);
	if (rc >= 0)
		rc = engine_permits(call, &s->request.event, err);
	if (rc < 0)
		return rc;
	job->body_mac = request_mac(s);
	if (models_complete(call, &s->request, err) < 0 || program_note(call, &s->request, err) < 0)
		return -(int)err->code;
	job->owner =
		call->caller
			.id; /* after the MAC, so that a retry is the same request to every release */
	return client_key(call, &job->client_key, err);
}

static void answer_begin(struct buf *out, const struct submission *s, uint32_t id, bool already,
			 bool dry_run)
{
	const struct event_job_submitted *job = &s->request.event.job_submitted;

	out_object(out, NULL);
	out_int(out, "id", id);
	out_int(out, "array_count", job->array_count > 1 ? job->array_count : 1);
	out_bool(out, "already", already);
	out_bool(out, "dry_run", dry_run);
	out_text(out, "name", job->name);
	out_text(out, "queue", job->queue);
	if (s->prospect)
		out_text(out, "prospect", s->prospect);
}

static void submitted(void *context, const struct command_reply *reply)
{
	struct submission *s = context;
	struct buf out = BUF_INIT;

	if (reply->err.code != ERR_NONE) {
		call_fail(s->call, &reply->err);
		return;
	}
	buf_reserve(&out, ANSWER_BYTES_USUAL);
	answer_begin(&out, s, reply->job, reply->already, false);
	out_end(&out, '}');
	http_add_header(s->call->request, "Location",
			arena_printf(s->call->arena, "/api/v1/jobs/%u", reply->job));
	call_reply(s->call, reply->already ? 200 : 201, &out);
}

static void zone_told(void *context, const struct command_reply *reply)
{
	struct submission *s = context;

	if (reply->err.code != ERR_NONE) {
		command_destroy(s->command);
		call_fail(s->call, &reply->err);
		return;
	}
	s->call->api->backend->send(s->call->api->backend->context, s->command);
}

static void submission_send(struct submission *s)
{
	struct call *call = s->call;
	struct command *command;

	/* Its mask is made when the submission is durable; until then the job runs nowhere. */
	s->request.event.job_submitted.mask = s->request.mask;
	s->request.event.job_submitted.role_masks = s->request.role_masks;
	s->request.event.job_submitted.together = s->request.together;
	s->request.event.job_submitted.body_bytes = (int64_t)s->request.body_size;
	command = command_create(&s->request.event, s->request.body, s->request.body_size);
	CHECK(call->permitted);
	call_release(call);
	command->context = s;
	command->done = submitted;
	if (s->zone.kind) {
		s->command = command;
		command = command_create(&s->zone, NULL, 0);
		command->context = s;
		command->done = zone_told;
	}
	call->api->backend->send(call->api->backend->context, command);
}

/* --- dry run and prospect: in a worker ----------------------------------------------------------------------------------- */

static void prospect_find(struct submission *s)
{
	struct call *call = s->call;
	const struct facts *facts;
	struct view *view = planner_enter(call->api->planner, call->frozen, 0, &facts);
	const char *text = explain_prospect(facts, view, &s->request.event, call->arena);
	struct api_status status = { 0 };

	if (call->api->backend->pods)
		call->api->backend->status(call->api->backend->context, &status);
	s->nodes_known = !status.on_cluster || status.cluster_seen;
	if (call_query_int(call, "dry_run", 0))
		s->impossible = explain_is_impossible(facts, view, &s->request.event, call->arena);
	if (!s->nodes_known)
		text = "The nodes of the cluster are being listed: whether it can start there is not known yet";
	s->prospect = arena_printf(call->arena, "%s%s%s", text ? text : "",
				   s->place && *s->place ? ". " : "", s->place ? s->place : "");
	planner_leave(call->api->planner);
}

static void places_add(struct buf *out, const struct facts *f, const struct event *placed)
{
	const bool promise = placed->kind == EVENT_PROMISE_MADE;
	const int64_t *nodes = promise ? placed->promise_made.nodes : placed->attempt_placed.nodes;
	const int64_t *masks = promise ? placed->promise_made.masks : placed->attempt_placed.masks;
	const uint32_t count =
		promise ? placed->promise_made.nodes_count : placed->attempt_placed.nodes_count;
	const uint32_t mask_count =
		promise ? placed->promise_made.masks_count : placed->attempt_placed.masks_count;
	const uint32_t part_count =
		promise ? placed->promise_made.parts_count : placed->attempt_placed.parts_count;
	const int64_t *parts = promise ? placed->promise_made.parts : placed->attempt_placed.parts;

	out_list(out, "places");
	for (uint32_t rank = 0; rank < count; rank++) {
		const int64_t node = nodes[rank];

		out_object(out, NULL);
		out_int(out, "rank", rank);
		out_text(out, "node",
			 node > 0 && node <= f->nodes.count
				 ? facts_name(f,
					      node_get(f, (struct node_id){ (uint32_t)node })->name)
				 : "");
		gpu_list_add(out, "gpus", rank < mask_count ? (uint32_t)masks[rank] : 0);
		if (rank < part_count)
			out_share(out, "gpu_share", parts[rank]);
		out_end(out, '}');
	}
	out_end(out, ']');
	if (promise || !placed->attempt_placed.slowdown_permille)
		return;
	out_int(out, "bandwidth_mbps", placed->attempt_placed.bandwidth_mbps);
	out_int(out, "slowdown_permille", placed->attempt_placed.slowdown_permille);
}

/* By role, "" = none; how many. */
static uint32_t role_masks_split(const struct submission *s, const char *ret[ROLES_MAX])
{
	const char *list = s->request.role_masks;
	char name[NAME_MAX_BYTES + 1];
	uint32_t count = 0;

	while (count < ROLES_MAX && list_next(&list, name))
		ret[count++] = arena_strdup(s->call->arena, name);
	return count;
}

static bool mask_is_known(const struct facts *facts, const char *name)
{
	return facts_mask_find(facts, facts_name_find(facts, name)) != 0;
}

/* Of its masks those that are there: of the others nobody has said anything. */
static void masks_known(const struct submission *s, const struct facts *facts,
			struct event_job_submitted *ret)
{
	const char *names[ROLES_MAX], *list = "";
	const uint32_t count = role_masks_split(s, names);

	if (mask_is_known(facts, s->request.mask))
		ret->mask = s->request.mask;
	if (mask_is_known(facts, s->request.together))
		ret->together = s->request.together;
	for (uint32_t i = 0; i < count; i++)
		list = arena_printf(s->call->arena, "%s%s%s", list, i ? "," : "",
				    mask_is_known(facts, names[i]) ? names[i] : "");
	ret->role_masks = list;
}

/* Checked by the core as a submission is. */
static int planned_admit(struct submission *s, const struct facts *facts, struct event *ret,
			 struct err *err)
{
	uint32_t job = 0;

	*ret = s->request.event;
	masks_known(s, facts, &ret->job_submitted);
	ret->time_ms = facts->now_ms;
	ret->job_submitted.client_key = "";
	return core_admit(facts, NULL, ret, s->call->arena, &job, err);
}

/* Decided on a copy; nothing is sent. */
static void planned_add(struct buf *out, const struct submission *s, const struct facts *facts,
			const struct event *event, const struct estimate *estimate)
{
	struct dry_run run = { 0 };

	core_dry_run(facts, event, s->call->arena, &run);
	answer_begin(out, s, 0, false, true);
	if (s->nodes_known)
		out_bool(out, "possible", !s->impossible);
	out_bool(out, "starts_now", run.starts_now);
	out_int(out, "evicts", run.victims);
	if (run.placed)
		places_add(out, facts, run.placed);
	if (run.placed && run.placed->kind == EVENT_ATTEMPT_PLACED)
		transfer_add(out, facts, facts_queue_find(facts, event->job_submitted.queue),
			     run.placed->attempt_placed.transfer_ms,
			     run.placed->attempt_placed.transfer_micro);
	if (!run.starts_now)
		explanation_add(out, "why", facts, 0, "queued", &run.why, NULL, FORECAST_NONE, NULL,
				NULL);
	if (estimate)
		estimate_add(out, facts, estimate);
	price_add(out, facts, facts_queue_find(facts, event->job_submitted.queue), &run.price);
	out_end(out, '}');
}

/* Those that can give pods of its the claims and resources that they ask for, as the engine says. */
static int mask_consider(const struct submission *s, const struct engine_own_mask *own,
			 struct facts *facts, struct err *err)
{
	const struct api_backend *backend = s->call->api->backend;
	struct event event = event_make(EVENT_NODE_MASK, facts->now_ms, "engine");
	struct arena *arena = s->call->arena;
	struct engine_mask mask;
	int64_t *in;
	int rc;

	rc = questions_take(&s->call->api->questions, s->call->caller.user, clock_boot_ms(), err);
	if (rc < 0)
		return rc;
	if (!backend->consider(backend->context, own, arena, &mask))
		return 0;
	in = arena_new_array(arena, int64_t, mask.in_count + 1);
	for (uint32_t i = 0; i < mask.in_count; i++) {
		struct node_id node = facts_node_find(facts, mask.in[i]);

		if (node.v)
			in[event.node_mask.in_count++] = node.v;
	}
	event.node_mask.name = own->name;
	event.node_mask.in = in;
	event.node_mask.why = mask.why;
	apply(facts, &event);
	return 0;
}

/* Where no other job asks for the same. */
static int masks_consider(const struct submission *s, struct facts *facts, struct err *err)
{
	const struct event_job_submitted *job = &s->request.event.job_submitted;
	struct own_wish wish = { .mask = s->request.mask,
				 .together = s->request.together,
				 .tasks = *job->spread ? 1 : (uint32_t)job->tasks_max,
				 .gpus = jobfile_gpus_most(job) };
	const char *names[ROLES_MAX];
	struct engine_own_mask masks[ENGINE_OWN_MASKS];
	struct job_body body;
	uint32_t count;
	int rc = 0;

	if ((!*s->request.mask && !*s->request.role_masks) || !s->call->api->backend->consider ||
	    job_body_parse(s->request.body, s->request.body_size, s->call->arena, &body, NULL) < 0)
		return 0;
	wish.role_count = role_masks_split(s, names);
	for (uint32_t i = 0; i < wish.role_count; i++) {
		const int64_t *of = job->role_numbers + (size_t)i * ROLE_NUMBERS;

		wish.roles[i] = (struct own_role){ .mask = names[i],
						   .tasks = (uint32_t)of[ROLE_TASKS_MAX],
						   .gpus = of[ROLE_GPUS] };
	}
	count = job_body_masks(&body, &wish, masks);
	for (uint32_t i = 0; i < count && rc >= 0; i++)
		if (!mask_is_known(facts, masks[i].name))
			rc = mask_consider(s, &masks[i], facts, err);
	return rc;
}

/* A copy that knows the clock of its window, and on which nodes its pods may run. */
static int facts_copy(const struct submission *s, const struct facts *facts, struct facts *ret,
		      struct err *err)
{
	facts_freeze(facts, ret);
	ret->now_ms = request_ms(facts);
	if (s->zone.kind)
		apply(ret, &s->zone);
	return masks_consider(s, ret, err);
}

static int dry_run(struct submission *s, struct buf *out, struct err *err)
{
	struct facts facts;
	struct estimate estimate;
	struct event event;
	int rc;

	rc = facts_copy(s, s->call->facts, &facts, err);
	if (rc >= 0)
		rc = planned_admit(s, &facts, &event, err);
	if (rc >= 0)
		planned_add(out, s, &facts, &event,
			    forecast_new(&facts, &event, 1, &estimate) ? &estimate : NULL);
	facts_deinit(&facts);
	return rc;
}

static void submission_consider(void *argument)
{
	struct submission *s = argument;
	struct err err = { 0 };
	struct buf out = BUF_INIT;

	prospect_find(s);
	if (!call_query_int(s->call, "dry_run", 0)) {
		submission_send(s);
		return;
	}
	if (dry_run(s, &out, &err) < 0) {
		buf_deinit(&out);
		call_fail(s->call, &err);
	} else {
		call_reply(s->call, 200, &out);
	}
}

void handle_job_submit(struct call *call)
{
	struct submission *s = arena_new(call->arena, struct submission);
	struct err err = { 0 };

	s->call = call;
	if (submission_read(s, &err) < 0)
		call_fail(call, &err);
	else if (call_query_int(call, "dry_run", 0)) /* on a worker already */
		submission_consider(s);
	else if (call_query_int(call, "prospect", 0))
		call->api->backend->work(call->api->backend->context, WORK_SLOW,
					 submission_consider, s);
	else
		submission_send(s);
}

/* --- plan: several jobs, in the order in which they would be submitted -------------------------------------------------- */

enum { PLANNED_MAX = 20 };

struct planning {
	struct submission jobs[PLANNED_MAX];
	struct event events[PLANNED_MAX];
	struct estimate estimates[PLANNED_MAX];
	uint32_t count;
};

/* One job file, or {"jobs": [job file, ...]}. */
static int planning_read(struct call *call, struct planning *p, struct err *err)
{
	const char *file = file_name(call);
	size_t size;
	const char *text = http_body(call->request, &size);
	struct conf *document;
	const struct conf *list, *one;
	int rc = jobfile_read_text(file, text, size, call->arena, &document, err);

	if (rc < 0)
		return rc;
	list = document->type == CONF_MAP ? conf_find(document, "jobs") : NULL;
	if (list && (list->type != CONF_LIST || !list->count || list->count > PLANNED_MAX))
		return conf_error(err, file, list, "jobs must be a list of 1 to %d job files",
				  PLANNED_MAX);
	p->count = list ? (uint32_t)list->count : 1;
	for (uint32_t i = 0; i < p->count; i++) {
		one = list ? list->items[i] : document;
		p->jobs[i].call = call;
		rc = document_read(call, file, one, &p->jobs[i].request, err);
		if (rc >= 0)
			rc = submission_permit(&p->jobs[i], one, err);
		if (rc >= 0)
			rc = pods_permit(call, &p->jobs[i].request, err);
		if (rc >= 0)
			rc = models_complete(call, &p->jobs[i].request, err);
		if (rc >= 0)
			rc = program_note(call, &p->jobs[i].request, err);
		if (rc < 0)
			return rc;
		p->jobs[i].request.event.job_submitted.owner = call->caller.id;
	}
	return 0;
}

static int planning_answer(struct call *call, struct planning *p, struct buf *out, struct err *err)
{
	struct facts copy, clocks;
	int rc = 0;

	facts_freeze(call->facts, &clocks);
	clocks.now_ms = request_ms(call->facts);
	for (uint32_t i = 0; i < p->count && rc >= 0; i++) {
		if (p->jobs[i].zone.kind)
			apply(&clocks, &p->jobs[i].zone);
		rc = masks_consider(&p->jobs[i], &clocks, err);
	}
	facts_freeze(&clocks, &copy);
	for (uint32_t i = 0; i < p->count && rc >= 0; i++) {
		rc = planned_admit(&p->jobs[i], &copy, &p->events[i], err);
		if (rc >= 0)
			apply(&copy, &p->events[i]);
	}
	facts_deinit(&copy);
	if (rc < 0) {
		facts_deinit(&clocks);
		return rc;
	}
	(void)forecast_new(&clocks, p->events, p->count, p->estimates);
	facts_freeze(&clocks, &copy);
	facts_deinit(&clocks);
	out_object(out, NULL);
	out_list(out, "jobs");
	for (uint32_t i = 0; i < p->count; i++) {
		planned_add(out, &p->jobs[i], &copy, &p->events[i],
			    p->estimates[i].at_ms ? &p->estimates[i] : NULL);
		apply(&copy, &p->events[i]);
	}
	facts_deinit(&copy);
	out_end(out, ']');
	out_int(out, "seq", (int64_t)call->facts->seq);
	out_end(out, '}');
	return 0;
}

void handle_plan(struct call *call)
{
	struct planning *p = arena_new(call->arena, struct planning);
	struct err err = { 0 };
	struct buf out = BUF_INIT;

	if (planning_read(call, p, &err) < 0 || planning_answer(call, p, &out, &err) < 0) {
		buf_deinit(&out);
		call_fail(call, &err);
	} else {
		call_reply(call, 200, &out);
	}
}
