/* SPDX-License-Identifier: Apache-2.0 */
/* What the API gets from the daemon (api/backend.h), and the worker threads. */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/wait.h"
#include "base/check.h"
#include "base/log.h"
#include "base/thread.h"
#include "daemon/state.h"
#include "engine/failpoint.h"
#include "engine/kubernetes/lease.h"
#include "store/code.h"

/* --- writing -------------------------------------------------------------------------------------------------- */

static void refuse(struct command *command, const struct err *err)
{
	struct command_reply reply = { .err = *err };
	command->done(command->context, &reply);
	command_destroy(command);
}

enum { PODS_CHANGE_MOST = 1024 }; /* ranks: each hears of all others */

/* Ranks that leave and come are told of it by their shepherds. */
static const char *ranks_lack(const struct daemon *d, const struct event_job_submitted *job)
{
	const bool comes_and_goes = job->tasks_min < job->tasks_max && job->resize == RESIZE_FREE;

	if (!comes_and_goes && !job->rejoins)
		return NULL;
	if (!d->kubernetes->shepherd_server)
		return comes_and_goes
			       ? "tasks that come and go: pods hear of it where the daemon was started with --pod-listen and --shepherd-image; or write resize: restart"
			       : "rejoin: pods hear of it where the daemon was started with --pod-listen and --shepherd-image";
	if (!job->checkpoint)
		return comes_and_goes
			       ? "tasks that come and go in a job without checkpoint: write checkpoint, so that its pods have a shepherd, by which they hear of it; or write resize: restart"
			       : "rejoin in a job without checkpoint: write checkpoint, so that its pods have a shepherd, by which they hear of it";
	if (job->tasks_max > PODS_CHANGE_MOST)
		return comes_and_goes
			       ? "more than 1,024 tasks that come and go; or write resize: restart"
			       : "rejoin in a job of more than 1,024 tasks";
	return NULL;
}

static const char *pods_lack(const struct daemon *d, const struct event_job_submitted *job)
{
	if (job->checkpoint && !d->kubernetes->shepherd_server)
		return "checkpoint: pods have a report socket where the daemon was started with --pod-listen and --shepherd-image";
	if (job->gpu_part || job->gpu_part_mib)
		return "parts of GPUs; write a slice that the nodes have, by its name, such as gpus: 1g.10gb";
	if (job->align)
		return "align";
	return ranks_lack(d, job);
}

/* What pods can't do yet is refused by name. */
static int pods_can(const struct daemon *d, const struct event *event, struct err *err)
{
	const char *what = event->kind == EVENT_LAYOUT_SET ? "cutting GPUs into slices"
			   : event->kind == EVENT_JOB_SUBMITTED
				   ? pods_lack(d, &event->job_submitted)
				   : NULL;

	if (!what)
		return 0;
	return err_set(err, ERR_UNSUPPORTED,
		       "the engine kubernetes does not support this in this release: %s", what);
}

/* What it says of a job is said of a dry run, too. A daemon without root can start processes as its own user only. */
static int may_run_as(void *context, const struct event *event, struct err *err)
{
	const struct daemon *d = context;

	if (d->kubernetes)
		return pods_can(d, event, err);
	if (event->kind != EVENT_JOB_SUBMITTED || d->root ||
	    (uid_t)event->job_submitted.uid == geteuid())
		return 0;
	return err_set(
		err, ERR_FORBIDDEN,
		"this daemon does not run as root, so it can run jobs of its own user only: submit as that user, or start it as root");
}

/*
 * What one pass of a network thread brings becomes one turn of the core where that is idle: the core is woken at the end
 * of the pass, and after each PASS_COMMANDS of a long one, so that it need not wait for all of it on another processor.
 */
enum { PASS_COMMANDS = 32 };
static _Thread_local struct {
	bool passing;
	unsigned int unsaid;
	struct mailbox *box;
} pass;

static void pass_tell(void)
{
	if (pass.unsaid)
		mailbox_wake(pass.box);
	pass.unsaid = 0;
}

void serve_pass(void *context, bool begins)
{
	(void)context;
	pass.passing = begins;
	pass_tell();
}

static void send_message(struct mailbox *box, struct message *message)
{
	mailbox_add(box, message);
	pass.box = box;
	pass.unsaid++;
	if (!pass.passing || pass.unsaid >= PASS_COMMANDS)
		pass_tell();
}

static int leads(const struct daemon *d, struct err *err)
{
	struct lease *lease = atomic_load(&d->lease);
	struct lease_view view = { 0 };

	if (!atomic_load(&d->stands_by))
		return 0;
	if (lease)
		lease_look(lease, &view);
	if (!view.holder[0] || view.leads)
		return err_set(
			err, ERR_UNAVAILABLE,
			"this daemon stands by, and no other one leads at present: try again in a moment");
	return err_set(err, ERR_UNAVAILABLE,
		       "this daemon stands by and takes no changes: %s leads, and answers at %s",
		       view.holder, view.address);
}

static void send_command(void *context, struct command *command)
{
	struct daemon *d = context;
	struct err err = { 0 };
	if (leads(d, &err) < 0 || may_run_as(d, &command->event, &err) < 0) {
		refuse(command, &err);
		return;
	}
	if (mailbox_size(&d->core_box) > MAILBOX_MOST) {
		err_set(&err, ERR_UNAVAILABLE,
			"more than %d requests wait already: try again in a moment", MAILBOX_MOST);
		refuse(command, &err);
		return;
	}
	struct command_message *message = arena_alloc(command->arena, sizeof(*message));
	message->message.kind = CORE_COMMAND;
	message->command = command;
	if (command->body) {
		char name[DIGEST_HEX_MAX];
		seal_close_bytes(d->key, command->body, command->body_size, &message->sealed,
				 &message->blob);
		command->event.job_submitted.body =
			arena_strdup(command->arena, digest_format(&message->blob, name));
	}
	if (command->patient)
		mailbox_send_soon(&d->core_box, &message->message);
	else
		send_message(&d->core_box, &message->message);
}

static void body_mac(void *context, const void *body, size_t size, char out[DIGEST_HEX_MAX])
{
	struct daemon *d = context;
	struct digest mac;
	seal_mac(d->key, body, size, &mac);
	digest_format(&mac, out);
}

/* --- reading ---------------------------------------------------------------------------------------------------- */

static struct frozen *get_frozen(void *context)
{
	return &publication_get(context)->frozen;
}

static void release_frozen(void *context, struct frozen *frozen)
{
	(void)context;
	publication_release((struct publication *)frozen);
}

static int64_t resident_bytes(void)
{
	long pages = 0;
	FILE *file = fopen("/proc/self/statm", "re");
	if (!file)
		return 0;
	if (fscanf(file, "%*d %ld", &pages) != 1)
		pages = 0;
	fclose(file);
	return pages * sysconf(_SC_PAGESIZE);
}

static void status_of_lease(struct daemon *d, struct lease *lease, struct api_status *ret)
{
	struct lease_view view;

	lease_look(lease, &view);
	snprintf(ret->leader, sizeof(ret->leader), "%s", view.holder);
	snprintf(ret->leader_address, sizeof(ret->leader_address), "%s", view.address);
	ret->leads = view.may_write && !ret->stands_by;
	ret->behind_ms = ret->stands_by ? clock_boot_ms() - atomic_load(&d->followed_ms) : 0;
	ret->accepting &= !ret->stands_by;
}

/* One that stands by has no engine yet. */
static void status_of_cluster(struct daemon *d, struct api_status *ret)
{
	struct engine_cluster_state state;

	pthread_mutex_lock(&d->engine_swap);
	if (d->engine && d->engine_ops->pods) {
		d->engine_ops->pods->look(d->engine, &state);
		ret->on_cluster = true;
		ret->cluster_seen = state.seen;
		ret->pods_refused = state.refused;
		ret->conflicts = state.conflicts;
		snprintf(ret->conflict, sizeof(ret->conflict), "%s", state.conflict);
		snprintf(ret->cluster_problem, sizeof(ret->cluster_problem), "%s", state.problem);
	}
	pthread_mutex_unlock(&d->engine_swap);
}

static void get_status(void *context, struct api_status *ret)
{
	struct daemon *d = context;
	struct lease *lease = atomic_load(&d->lease);

	*ret = (struct api_status){
		.build = d->build,
		.boot_id = d->boot_id,
		.data_folder = d->folder,
		.started_ms = d->started_ms,
		.now_ms = atomic_load(&d->event_now_ms),
		.accepting = !atomic_load(&d->faulted) && !atomic_load(&d->full),
		.history_seq = atomic_load(&d->history_seq),
		.simulated_nodes = d->simulated,
		.runs_as_root = d->root,
		.turns = atomic_load(&d->turns),
		.decisions = atomic_load(&d->decisions),
		.loops_braked = atomic_load(&d->loops_braked),
		.commits = atomic_load(&d->commits),
		.longest_turn_us = atomic_load(&d->longest_turn_us),
		.longest_commit_us = atomic_load(&d->longest_commit_us),
		.resident_bytes = resident_bytes(),
		.elected = lease != NULL,
		.stands_by = atomic_load(&d->stands_by),
		.epoch = atomic_load(&d->leader_epoch),
	};
	if (lease)
		status_of_lease(d, lease, ret);
	status_of_cluster(d, ret);
	damage_status(d, ret);
	machine_faults_status(d, ret);
	pthread_mutex_lock(&d->problem_lock);
	snprintf(ret->problem, sizeof(ret->problem), "%s", d->problem);
	snprintf(ret->loop, sizeof(ret->loop), "%s", d->loop);
	snprintf(ret->history_problem, sizeof(ret->history_problem), "%s", d->history_problem);
	pthread_mutex_unlock(&d->problem_lock);
	pthread_mutex_lock(&d->publication_lock);
	ret->last_seq = d->durable_seq;
	pthread_mutex_unlock(&d->publication_lock);
}

void daemon_problem(struct daemon *d, const char *text)
{
	pthread_mutex_lock(&d->problem_lock);
	snprintf(d->problem, sizeof(d->problem), "%s", text);
	pthread_mutex_unlock(&d->problem_lock);
}

static int open_reader(struct daemon *d, struct err *err)
{
	if (d->reader)
		return 0;
	struct journal_options options = d->store;
	options.folder = d->folder;
	options.read_only = true;
	return journal_open(&options, &d->reader, err);
}

static int get_body(void *context, const struct facts *facts, struct job_id job, struct buf *ret,
		    struct err *err)
{
	struct daemon *d = context;
	const struct body *body = table_get(&facts->bodies, job_get(facts, job)->body);
	struct digest name;
	memcpy(name.bytes, body->blob, sizeof(name.bytes));
	void *sealed = NULL;
	size_t size = 0;
	pthread_mutex_lock(&d->reader_lock);
	int result = open_reader(d, err);
	if (result == 0)
		result = journal_blob(d->reader, &name, &sealed, &size, err);
	pthread_mutex_unlock(&d->reader_lock);
	if (result == 0)
		result = seal_open_bytes(d->key, sealed, size, ret, err);
	free(sealed);
	return result;
}

struct history_take {
	void *context;
	int (*take)(void *context, uint64_t seq, int64_t time_ms, uint32_t kind, const char *text,
		    size_t size);
};

static int take_row(void *context, const struct history_row *row)
{
	const struct history_take *to = context;
	return to->take(to->context, row->seq, row->time_ms, row->kind, row->text, row->size);
}

/* Waits until the read models have what is durable now; not when they can't be written, and ten seconds at most. */
static int wait_for_history(struct daemon *d, struct err *err)
{
	const struct timespec until = wait_until(10000);
	int result = 0;
	pthread_mutex_lock(&d->publication_lock);
	uint64_t wanted = d->durable_seq;
	if (d->history_wanted < wanted && atomic_load(&d->history_seq) < wanted) {
		d->history_wanted = wanted;
		pthread_cond_broadcast(&d->durable_cond); /* the history thread hurries */
	}
	while (atomic_load(&d->history_seq) < wanted && !d->stopping &&
	       !atomic_load(&d->history_behind) && result == 0)
		result = pthread_cond_timedwait(&d->durable_cond, &d->publication_lock, &until);
	bool reached = atomic_load(&d->history_seq) >= wanted;
	pthread_mutex_unlock(&d->publication_lock);
	if (!reached)
		return err_set(err, ERR_UNAVAILABLE,
			       "history is behind the journal: see `fairlead doctor`");
	return 0;
}

static int no_history(struct err *err)
{
	return err_set(err, ERR_UNAVAILABLE,
		       "the history database can't be opened: see `fairlead doctor`");
}

static int get_history(void *context, uint32_t job, uint64_t after, uint32_t limit,
		       void *take_context,
		       int (*take)(void *take_context, uint64_t seq, int64_t time_ms, uint32_t kind,
				   const char *text, size_t size),
		       struct err *err)
{
	struct daemon *d = context;
	if (wait_for_history(d, err) < 0)
		return -1;
	struct history_take to = { take_context, take };
	pthread_mutex_lock(&d->history_lock);
	int result = d->history_reader ? history_list(d->history_reader, job, after, limit, &to,
						      take_row, err)
				       : no_history(err);
	pthread_mutex_unlock(&d->history_lock);
	return result;
}

static int get_submission(void *context, uint32_t job, void *take_context,
			  int (*take)(void *take_context, uint64_t seq, int64_t time_ms,
				      uint32_t kind, const char *text, size_t size),
			  struct err *err)
{
	struct daemon *d = context;
	struct history_take to = { take_context, take };
	pthread_mutex_lock(&d->history_lock);
	int result = d->history_reader ? history_before(d->history_reader, job, EVENT_JOB_SUBMITTED,
							&to, take_row, err)
				       : no_history(err);
	pthread_mutex_unlock(&d->history_lock);
	return result;
}

static bool pod_job(void *context, const char *namespace, const char *name, struct api_pod *ret)
{
	struct daemon *d = context;
	struct engine_pod_found pod = { 0 };

	pthread_mutex_lock(&d->engine_swap);
	bool found = d->engine && d->engine_ops->pods &&
		     d->engine_ops->pods->find(d->engine, namespace, name, &pod);
	pthread_mutex_unlock(&d->engine_swap);
	*ret = (struct api_pod){ .job = (uint32_t)pod.job,
				 .attempt = (uint32_t)pod.attempt,
				 .rank = (uint32_t)pod.rank };
	_Static_assert(sizeof(ret->text) == sizeof(pod.text), "one text");
	memcpy(ret->text, pod.text, sizeof(ret->text));
	return found;
}

static bool consider(void *context, const struct engine_own_mask *own, struct arena *arena,
		     struct engine_mask *ret)
{
	struct daemon *d = context;

	pthread_mutex_lock(&d->engine_swap);
	bool known = d->engine && d->engine_ops->pods &&
		     d->engine_ops->pods->consider(d->engine, own, arena, ret);
	pthread_mutex_unlock(&d->engine_swap);
	return known;
}

static const char *held_up(void *context, uint32_t job, bool starts, struct arena *arena)
{
	struct daemon *d = context;
	char text[AWAY_TEXT_MAX];

	return away_say(&d->away, job, starts, text) ? arena_strdup(arena, text) : NULL;
}

static bool pod_output(void *context, const struct engine_output *output)
{
	static const char none[] = "the daemon has no cluster at this moment";
	struct daemon *d = context;
	bool there, begun = true;

	pthread_mutex_lock(&d->engine_swap);
	there = d->engine && d->engine_ops->pods;
	if (there)
		begun = d->engine_ops->pods->output(d->engine, output);
	pthread_mutex_unlock(&d->engine_swap);
	if (!there)
		output->done(output->context, 0, none, strlen(none));
	return begun;
}

enum { SLOW_NICE = 5 };

/* --- workers ------------------------------------------------------------------------------------------------------ */

static void work(void *context, enum work_pace pace, void (*fn)(void *argument), void *argument)
{
	struct daemon *d = context;
	struct job_work *job = calloc(1, sizeof(*job));
	CHECK(job);
	job->fn = fn;
	job->argument = argument;
	mailbox_send(&d->work_box[pace], &job->message);
}

bool work_pass(struct daemon *d, enum work_pace pace, int64_t wait_ms)
{
	struct job_work *job = (struct job_work *)mailbox_take(&d->work_box[pace], 1, wait_ms);
	if (!job)
		return true;
	bool stop = job->fn == NULL;
	if (!stop && pace == WORK_SLOW)
		(void)FAILPOINT("work-before-slow");
	if (!stop)
		job->fn(job->argument);
	free(job);
	return !stop;
}

static void *quick_main(void *argument)
{
	while (work_pass(argument, WORK_QUICK, -1))
		continue;
	return NULL;
}

/* What is cheap goes before it on a busy processor, and so does the core. */
static void *slow_main(void *argument)
{
	(void)setpriority(PRIO_PROCESS, (id_t)gettid(), SLOW_NICE);
	while (work_pass(argument, WORK_SLOW, -1))
		continue;
	return NULL;
}

/* Where the daemons for a cluster share a journal they share this, too; on one machine the engine makes copies of files. */
static struct code_store *code_open(const struct daemon *d)
{
	const char *address = d->kubernetes ? journal_address(d->journal) : NULL;

	return address ? code_store_database(address) : code_store_files(d->folder);
}

static const char *snapshots_lack(const struct daemon *d)
{
	if (d->kubernetes && !d->kubernetes->shepherd_server)
		return "pods get it where the daemon was started with --pod-listen, where they reach it, and --shepherd-image, which has the program that gets it; without, put the code into the image or on a volume";
	return NULL;
}

void serve_open(struct daemon *d)
{
	d->backend = (struct api_backend){
		.context = d,
		.send = send_command,
		.frozen = get_frozen,
		.release = release_frozen,
		.status = get_status,
		.body = get_body,
		.history = get_history,
		.submission = get_submission,
		.body_mac = body_mac,
		.work = work,
		.logs_folder = d->logs_folder,
		.pods = d->kubernetes != NULL,
		.code = code_open(d),
		.image_needed = d->kubernetes && !d->kubernetes->image,
		.permit = may_run_as,
		.snapshots_lack = snapshots_lack(d),
		.host_paths = d->kubernetes ? d->kubernetes->host_paths : NULL,
		.pod_job = pod_job,
		.pod_output = pod_output,
		.consider = consider,
		.held_up = held_up,
	};
}

void serve_start(struct daemon *d)
{
	serve_open(d);
	for (int i = 0; i < WORKERS; i++)
		thread_start(&d->workers[i], i < QUICK_WORKERS ? quick_main : slow_main, d);
}

void serve_join(struct daemon *d)
{
	for (int i = 0; i < WORKERS; i++)
		work(d, i < QUICK_WORKERS ? WORK_QUICK : WORK_SLOW, NULL, NULL);
	for (int i = 0; i < WORKERS; i++)
		pthread_join(d->workers[i], NULL);
}
