/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making the places of an attempt and spawning its shepherds. The steps, each of which a crash may
 * come between:
 *
 *	mkdir attempts/N		the claim: only one daemon, once, gets this number
 *	mkdir of each rank's folder, fsync of both levels
 *	per rank, in parallel: run folder, spec (fsync, rename, fsync), lock taken, watch,
 *	spawn with the lock handed over
 *
 * After a crash in between, a rank without spec never had a shepherd, and one with a spec and a
 * free lock has none now.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "engine/failpoint.h"
#include "engine/local/local.h"
#include "engine/local/mps.h"
#include "engine/local/place.h"
#include "engine/own_folder.h"
#include "engine/tree.h"
#include "store/io.h"

enum {
	ORDER_MEMORY = 256 << 20,
	TREE_MEMORY = 64 << 20,
	PORT_LEAST = 20000,
	PORT_TRIES = 2000,
	CODE_NO_USE = 126
};

/* --- the order --- */

static const char **copy_words(const char *const *words, struct arena *arena)
{
	size_t count = 0;

	while (words && words[count])
		count++;
	const char **copy = arena_new_array(arena, const char *, count + 1);
	for (size_t i = 0; i < count; i++)
		copy[i] = arena_strdup(arena, words[i]);
	return copy;
}

static const char *copy_text(const char *text, struct arena *arena)
{
	return text ? arena_strdup(arena, text) : NULL;
}

static const struct engine_role *copy_roles(const struct engine_start *start, struct arena *arena)
{
	struct engine_role *roles =
		arena_new_array(arena, struct engine_role, start->role_count + 1);

	for (uint32_t i = 0; i < start->role_count; i++) {
		const struct engine_role *from = &start->roles[i];

		roles[i] = *from;
		roles[i].argv = from->argv ? copy_words(from->argv, arena) : NULL;
		roles[i].script = copy_text(from->script, arena);
		roles[i].env = copy_words(from->env, arena);
	}
	return start->role_count ? roles : NULL;
}

struct order *order_copy(const struct engine *e, const struct engine_start *start)
{
	struct order *order = calloc(1, sizeof(*order));

	CHECK(order);
	arena_init(&order->arena, ORDER_MEMORY);
	order->users = 1;
	order->start = *start;
	order->start.argv =
		start->script || !start->argv ? NULL : copy_words(start->argv, &order->arena);
	order->start.script = copy_text(start->script, &order->arena);
	order->start.env = copy_words(start->env, &order->arena);
	order->start.shell_env = copy_words(start->shell_env, &order->arena);
	order->start.made_from = copy_words(start->made_from, &order->arena);
	order->start.roles = copy_roles(start, &order->arena);
	order->start.workdir = copy_text(start->workdir, &order->arena);
	order->start.snapshot = copy_text(start->snapshot, &order->arena);
	order->start.checkpoint_dir = start->checkpoint_offered && !e->open_to_all
					      ? NULL
					      : copy_text(start->checkpoint_dir, &order->arena);
	order->start.resume_path = copy_text(start->resume_path, &order->arena);
	struct engine_gpu_place *places =
		arena_new_array(&order->arena, struct engine_gpu_place, start->place_count);
	memcpy(places, start->places, start->place_count * sizeof(*places));
	order->start.places = places;
	task_env_nodes(&order->start, &order->arena, &order->nodes);
	return order;
}

/* The mutex is held. */
void order_drop(struct order *order)
{
	if (--order->users)
		return;
	arena_deinit(&order->arena);
	free(order);
}

void order_unref(struct engine *e, struct order *order)
{
	pthread_mutex_lock(&e->lock);
	order_drop(order);
	pthread_mutex_unlock(&e->lock);
}

void rank_born(struct rank *rank)
{
	rank->unborn = false;
	if (rank->again)
		order_drop(rank->again);
	rank->again = NULL;
}

/* --- failures --- */

/* The rank never got a shepherd. The record is for a daemon after this one; if it can't be written,
 * none is needed: that daemon will find no trace of it and say so. */
static void fail_rank(struct engine *e, struct rank *rank, struct engine_fact fact)
{
	char path[PATH_MAX];

	fact.kind = ENGINE_EXITED;
	fact.attempt = rank->attempt->number;
	fact.rank = rank->number;
	fact.time_ms = clock_wall_ms();
	fact.never_ran = true;
	if (place_path(path, e->attempts, rank->attempt->number, rank->number, rank->launch) &&
	    access(path, F_OK) == 0)
		if (place_put_exit(io_real(), path, &fact, NULL) < 0) {
			/* reported all the same */
		}
	pthread_mutex_lock(&e->lock);
	rank_say(e, rank, &fact);
	rank_end(e, rank);
	pthread_mutex_unlock(&e->lock);
}

/* A path of the user's that is of no use ends it as the launcher would: the machine is not to blame. */
static void fail_rank_by(struct engine *e, struct rank *rank, const struct err *err)
{
	struct engine_fact fact = { .fault = fault_of(err) };

	fact.cause = fault_cause(fact.fault);
	if (err->code == ERR_FORBIDDEN) {
		fact.cause = ENGINE_CAUSE_EXIT;
		fact.code = CODE_NO_USE;
	}
	snprintf(fact.text, sizeof(fact.text), "%.255s", err->text);
	fail_rank(e, rank, fact);
}

/* --- rendezvous port --- */

/* 1 = it is; negative: no socket can be made. */
static int port_is_free(uint16_t port, struct err *err)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_port = htons(port),
				       .sin_addr.s_addr = htonl(INADDR_ANY) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return err_errno(err, ERR_IO, errno, "could not look for a rendezvous port");
	bool is_free = bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
	close(fd);
	return is_free;
}

static bool port_is_given(struct engine *e, uint16_t port)
{
	struct attempt *attempt, *next;

	HASH_ITER(hh, e->table, attempt, next)
	if (attempt->port == port)
		return true;
	return false;
}

/* Below the range from which the kernel gives ports to outgoing connections, so none of those takes
 * it before rank 0 listens; not one of another live attempt. */
static int choose_port(struct engine *e, struct attempt *attempt, struct err *err)
{
	char text[64];
	unsigned low = 32768, tried = 0;
	int is_free = 0;

	if (FAILPOINT("engine-port"))
		return err_set(err, ERR_UNAVAILABLE,
			       "no free port for the rendezvous of attempt %" PRIu64,
			       attempt->number);
	if (small_file_read("/proc/sys/net/ipv4/ip_local_port_range", text, sizeof(text)) > 0)
		low = (unsigned)strtoul(text, NULL, 10);
	unsigned first = low > PORT_LEAST + 1000 ? PORT_LEAST : 1024,
		 end = low > first + 100 ? low : 65536;
	unsigned at = (unsigned)((e->tag ^ attempt->number * 7919) % (end - first));
	pthread_mutex_lock(&e->lock);
	for (; tried < PORT_TRIES && !attempt->port && is_free >= 0; tried++) {
		uint16_t port = (uint16_t)(first + (at + tried) % (end - first));

		is_free = port_is_given(e, port) ? 0 : port_is_free(port, err);
		if (is_free > 0)
			attempt->port = port;
	}
	pthread_mutex_unlock(&e->lock);
	if (is_free < 0)
		return is_free;
	if (!attempt->port)
		return err_set(err, ERR_UNAVAILABLE,
			       "no free port for the rendezvous of attempt %" PRIu64
			       " among %d tried",
			       attempt->number, PORT_TRIES);
	return 0;
}

/* --- the attempt --- */

static struct rank *rank_at(struct engine *e, const struct attempt *attempt, uint32_t i)
{
	pthread_mutex_lock(&e->lock);
	struct rank *rank = attempt->ranks[i];
	pthread_mutex_unlock(&e->lock);
	return rank;
}

static uint32_t launch_of(struct engine *e, const struct attempt *attempt, uint32_t i)
{
	return rank_at(e, attempt, i)->launch;
}

/* What of an attempt may be there before it is made: nothing, unless a daemon before this one began it, or its ranks come and go. */
static enum own_folder_old old_of(const struct attempt *attempt)
{
	return attempt->adopted || attempt->resized ? OWN_FOLDER_KEEP : OWN_FOLDER_REFUSE;
}

/* RUN/ATTEMPT or ATTEMPTS/ATTEMPT: the descriptor, or negative. */
static int attempt_folder_open(const char *parent, uint64_t number, struct err *err)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%.4000s/%" PRIu64, parent, number);
	return own_folder_open(path, err);
}

static int make_claim(struct engine *e, const struct attempt *attempt, struct err *err)
{
	char name[24];
	int attempts = own_folder_open(e->attempts, err), folder;

	if (attempts < 0)
		return attempts;
	snprintf(name, sizeof(name), "%" PRIu64, attempt->number);
	if (FAILPOINT("engine-claim"))
		folder = err_errno(err, ERR_IO, ENOSPC, "could not make the folder \"%s\"", name);
	else
		folder = own_folder_at(attempts, name, 0700, old_of(attempt), err);
	close(attempts);
	if (folder < 0)
		return err_prefix(err, "could not claim attempt %" PRIu64 " in the data folder",
				  attempt->number);
	return folder;
}

static int make_rank_folders(struct engine *e, const struct attempt *attempt, int folder,
			     struct err *err)
{
	char name[PLACE_NAME_MAX];

	for (uint32_t i = 0; i < attempt->count; i++) {
		int place;

		place_name(name, i, launch_of(e, attempt, i));
		place = own_folder_at(folder, name, 0700, old_of(attempt), err);
		if (place < 0)
			return err_prefix(err,
					  "could not make the place of rank %u of attempt %" PRIu64,
					  i, attempt->number);
		close(place);
	}
	return 0;
}

static int make_attempt_folders(struct engine *e, const struct attempt *attempt, struct err *err)
{
	struct io *io = io_real();
	char path[PATH_MAX];
	int folder = make_claim(e, attempt, err), result;

	if (folder < 0)
		return folder;
	(void)FAILPOINT("engine-claimed");
	result = make_rank_folders(e, attempt, folder, err);
	close(folder);
	if (result < 0)
		return result;
	snprintf(path, sizeof(path), "%.4000s/%" PRIu64, e->attempts, attempt->number);
	result = io->sync_folder(io, path);
	if (result == 0)
		result = io->sync_folder(io, e->attempts);
	(void)FAILPOINT("engine-folders-synced");
	if (result < 0)
		return err_errno(err, ERR_IO, -result,
				 "could not keep the places of attempt %" PRIu64, attempt->number);
	return 0;
}

/* Ranks may leave and come while this order waited for a worker: what a newer one told its tasks stays. */
static int put_world_and_hosts(struct engine *e, struct attempt *attempt, int folder,
			       const struct order *order, struct err *err)
{
	AUTO_BUF hosts = BUF_INIT;
	int result = 0;

	task_env_hostfile(&hosts, &order->nodes);
	pthread_mutex_lock(&e->lock);
	if (order->start.generation >= attempt->generation) {
		result = place_put(folder, "hosts", hosts.data, hosts.size, err);
		if (result == 0 && fchmodat(folder, "hosts", 0644, 0) < 0)
			result = err_errno(err, ERR_IO, errno,
					   "could not make the host file readable");
		if (result == 0)
			result = put_world(attempt, folder, &order->start, err);
	}
	pthread_mutex_unlock(&e->lock);
	return result;
}

/* What tasks can see: RUN/ATTEMPT/hosts, and RUN/ATTEMPT/RANK for the shepherds. */
static int make_run_folder(struct engine *e, struct attempt *attempt, const struct order *order,
			   struct err *err)
{
	char name[24];
	int run = own_folder_open(e->run, err), folder, result;

	if (run < 0)
		return run;
	snprintf(name, sizeof(name), "%" PRIu64, attempt->number);
	if (old_of(attempt) == OWN_FOLDER_REFUSE)
		remove_folder_at(run, name); /* of another data folder that was here before */
	folder = own_folder_at(run, name, 0711, old_of(attempt), err);
	close(run);
	if (folder < 0)
		return folder;
	result = put_world_and_hosts(e, attempt, folder, order, err);
	close(folder);
	return result;
}

/* The job's own folder below `checkpoints`: made for its user, or made before. A checkpoint is nobody else's to read. */
static int make_own_checkpoints(int checkpoints, const struct engine_start *start, struct err *err)
{
	char name[24];
	struct stat st;
	bool made;
	int folder, rc = 0;

	snprintf(name, sizeof(name), "%" PRIu64, start->job);
	made = mkdirat(checkpoints, name, 0700) == 0;
	if (!made && errno != EEXIST)
		return err_errno(err, ERR_IO, errno, "could not make the checkpoint folder %s",
				 start->checkpoint_dir);
	folder = openat(checkpoints, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (folder < 0 || fstat(folder, &st) < 0)
		rc = err_errno(err, ERR_IO, errno, "could not open the checkpoint folder %s",
			       start->checkpoint_dir);
	else if (!made && st.st_uid != start->uid && st.st_uid != geteuid())
		rc = err_set(
			err, ERR_CONFLICT,
			"the checkpoint folder %.300s belongs to uid %u and not to user \"%s\"; move it away",
			start->checkpoint_dir, (unsigned)st.st_uid, start->user);
	else if (st.st_uid == geteuid() && fchown(folder, start->uid, start->gid) < 0)
		rc = err_errno(err, ERR_IO, errno, /* new, or a crash came before it was given */
			       "could not give the checkpoint folder to user \"%s\"", start->user);
	if (folder >= 0)
		close(folder);
	return rc;
}

/* Is it the folder that the daemon gives to this job, DATA/checkpoints/JOB? */
static bool is_own_checkpoints(const struct engine *e, const struct engine_start *start)
{
	const char *const names[] = { e->folder, e->options.folder };
	char path[PATH_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "%.3900s/checkpoints/%" PRIu64, names[i], start->job);
		if (strcmp(path, start->checkpoint_dir) == 0)
			return true;
	}
	return false;
}

/*
 * Root makes one folder for a user, DATA/checkpoints/JOB, which the user could not make. All others are made by the launcher, with the rights
 * of the user. One in the data folder is refused at submission; a symbolic link may have been put there since.
 */
static int make_checkpoint_folder(struct engine *e, const struct engine_start *start,
				  struct err *err)
{
	int data, checkpoints, rc;

	if (!start->checkpoint_dir || geteuid() != 0)
		return 0;
	if (!is_own_checkpoints(e, start))
		return path_leads_into(e->folder, start->checkpoint_dir)
			       ? err_set(err, ERR_FORBIDDEN,
					 "the checkpoint folder %.300s leads into the daemon's data folder",
					 start->checkpoint_dir)
			       : 0;
	data = own_folder_open(e->folder, err);
	if (data < 0)
		return data;
	checkpoints = own_folder_at(data, "checkpoints", 0711, OWN_FOLDER_KEEP, err);
	close(data);
	if (checkpoints < 0)
		return checkpoints;
	rc = make_own_checkpoints(checkpoints, start, err);
	close(checkpoints);
	return rc;
}

/* The list of a snapshot, and the folder of its files. */
static int snapshot_read(const struct engine *e, const struct engine_start *start, struct buf *text,
			 int *ret_files, struct err *err)
{
	char path[PATH_MAX];
	int folder, rc;

	snprintf(path, sizeof(path), "%.3500s/code/%lld/trees", e->folder, (long long)start->uid);
	folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	rc = folder < 0 ? 1 : place_read(folder, start->snapshot, text, err);
	if (folder >= 0)
		close(folder);
	if (rc < 0)
		return rc;
	snprintf(path, sizeof(path), "%.3500s/code/%lld/files", e->folder, (long long)start->uid);
	*ret_files = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (rc > 0 || *ret_files < 0)
		return err_set(err, ERR_NOT_FOUND, "the snapshot %s is not there any more",
			       start->snapshot);
	return 0;
}

/* RUN/ATTEMPT/code, the user's. */
static int make_snapshot(struct engine *e, struct order *order, struct err *err)
{
	AUTO_BUF text = BUF_INIT;
	struct arena arena;
	struct tree tree;
	int files = -1, run, rc;

	if (!order->start.snapshot)
		return 0;
	run = attempt_folder_open(e->run, order->start.attempt, err);
	if (run < 0)
		return run;
	remove_folder_at(run, "code.new");
	arena_init(&arena, TREE_MEMORY);
	rc = snapshot_read(e, &order->start, &text, &files, err);
	if (rc == 0)
		rc = tree_parse(text.data, text.size, &arena, &tree, err);
	if (rc == 0)
		rc = tree_unpack(&tree, files, run, "code", order->start.uid, order->start.gid,
				 err);
	if (files >= 0)
		close(files);
	close(run);
	arena_deinit(&arena);
	return rc;
}

void prepare_attempt(struct engine *e, struct attempt *attempt, struct order *order)
{
	struct err err;
	int result = make_attempt_folders(e, attempt, &err);

	if (result == 0)
		result = make_run_folder(e, attempt, order, &err);
	if (result == 0)
		result = make_snapshot(e, order, &err);
	if (result == 0)
		result = make_checkpoint_folder(e, &order->start, &err);
	if (result == 0 && !attempt->port)
		result = choose_port(e, attempt, &err);
	for (uint32_t i = 0; i < attempt->count; i++) {
		struct rank *rank = rank_at(e, attempt, i);

		pthread_mutex_lock(&e->lock);
		bool waits = rank->waits;
		rank->waits = false;
		pthread_mutex_unlock(&e->lock);
		if (!waits)
			continue;
		if (result < 0) {
			fail_rank_by(e, rank, &err);
			continue;
		}
		pthread_mutex_lock(&e->lock);
		order->users++;
		engine_queue(e, JOB_PREPARE_RANK, attempt, rank, order);
		pthread_mutex_unlock(&e->lock);
	}
}

void rank_again(struct engine *e, struct rank *rank)
{
	struct order *order = rank->again;

	rank_unwatch(e, rank);
	close(rank->folder);
	rank->folder = -1;
	rank->again = NULL;
	rank->unborn = false;
	rank->ready_said = rank->started_said = false;
	rank->state = RANK_PREPARING;
	engine_queue(e, JOB_PREPARE_RANK, rank->attempt, rank, order);
}

/* --- one rank --- */

/* The script as a file of the user's, not as an argument: arguments can be read by everybody in
 * /proc. */
static int put_script(int run, const struct engine_start *start, const char *script,
		      struct err *err)
{
	size_t size = strlen(script);

	(void)unlinkat(run, "script", 0);
	int fd = openat(run, "script", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0500);
	if (fd < 0)
		return err_errno(err, ERR_IO, errno, "could not make the task's script");
	int result = 0;
	ssize_t n = write(fd, script, size);
	if (n != (ssize_t)size)
		result = err_errno(err, ERR_IO, n < 0 ? errno : ENOSPC,
				   "could not write the task's script");
	else if (geteuid() == 0 && fchown(fd, start->uid, start->gid) < 0)
		result = err_errno(err, ERR_IO, errno, "could not give the script to user \"%s\"",
				   start->user);
	close(fd);
	return result;
}

/* Only where there is a real GPU of which the task has a part with a bound of memory. */
static bool mps_keeps(const struct engine_start *start, uint32_t rank, char pipes[PATH_MAX])
{
	const struct engine_gpu_place *at = &start->places[rank];

	return !start->simulated_gpus && at->gpu_memory_mib && !at->gpu_slice[0] && mps_runs(pipes);
}

static int write_spec(struct engine *e, struct rank *rank, struct order *order, const char *place,
		      const char *run, struct err *err)
{
	const struct engine_start *start = &order->start;
	char name[80], own[PLACE_NAME_MAX], hostfile[PATH_MAX], report[PATH_MAX], world[PATH_MAX],
		pipes[PATH_MAX], code[PATH_MAX];
	struct arena arena;
	AUTO_BUF text = BUF_INIT;

	snprintf(hostfile, sizeof(hostfile), "%s/%" PRIu64 "/hosts", e->run, start->attempt);
	snprintf(world, sizeof(world), "%s/%" PRIu64 "/world", e->run, start->attempt);
	snprintf(code, sizeof(code), "%s/%" PRIu64 "/code", e->run, start->attempt);
	snprintf(report, sizeof(report), "%.500s/report", run);
	struct task_env_place at = { .nodes = &order->nodes,
				     .report_socket = report,
				     .hostfile = hostfile,
				     .world_file = world,
				     .port = rank->attempt->port };
	struct task_spec spec = {
		.version = SPEC_VERSION,
		.job = start->job,
		.attempt = start->attempt,
		.rank = rank->number,
		.count = start->place_count,
		.user = start->user,
		.uid = start->uid,
		.gid = start->gid,
		.argv = (const char **)(uintptr_t)engine_argv(start, rank->number),
		.script = engine_script(start, rank->number),
		.workdir = start->snapshot ? code : start->workdir,
		.checkpoint_dir = start->checkpoint_dir,
		.checkpoint_signal = start->checkpoint_signal,
		.checkpoint_every_ms = start->checkpoint_every_ms,
		.memory_mib = start->places[rank->number].memory_mib,
		.cpus = *start->places[rank->number].cpus ? start->places[rank->number].cpus : NULL,
		.log_cap_bytes = start->log_cap_bytes,
		.logs = e->logs,
		.run = run,
		.port = rank->attempt->port,
		.brand = proctree_brand(e->tag, start->attempt, rank->number, rank->launch),
		.launch = rank->launch,
	};
	arena_init(&arena, ORDER_MEMORY);
	rank->gpu_limited = mps_keeps(start, rank->number, pipes);
	at.mps = rank->gpu_limited ? pipes : NULL;
	spec.env = task_env_build(start, rank->number, &at, &arena);
	snprintf(spec.boot, sizeof(spec.boot), "%s", e->boot);
	place_name(own, rank->number, rank->launch);
	snprintf(name, sizeof(name), "fairlead.%08" PRIx32 ".%" PRIu64 ".%s", (uint32_t)e->tag,
		 start->attempt, own);
	cgroup_set_name(&e->cgroups, name, &spec.cgroups);
	spec_format(&text, &spec);
	int result =
		text.size > SPEC_BYTES_MAX
			? err_set(err, ERR_TOO_LARGE,
				  "command and environment of the task take %zu bytes; at most %d",
				  text.size, SPEC_BYTES_MAX)
			: place_put_durable(io_real(), place, "spec", text.data, text.size, err);
	explicit_bzero(text.data, text.size);
	arena_deinit(&arena);
	return result;
}

/* The environment of a shepherd: fixed, nothing of the daemon's, nothing of the job's. Made once,
 * read by all workers. */
static char *shepherd_words[6];

static void make_environment(void)
{
	static char path[] = "PATH=/usr/sbin:/usr/bin:/sbin:/bin", lang[] = "LANG=C.UTF-8";

	shepherd_words[0] = path;
	shepherd_words[1] = lang;
#ifdef FAIRLEAD_FAILPOINTS
	static char points[1100], boot[100], gate[300];
	const char *text;
	int count = 2;

	if ((text = getenv("FAIRLEAD_SHEPHERD_FAILPOINT")) ||
	    (text = getenv("FAIRLEAD_FAILPOINT"))) {
		snprintf(points, sizeof(points), "FAIRLEAD_FAILPOINT=%s", text);
		shepherd_words[count++] = points;
	}
	if ((text = getenv("FAIRLEAD_FAILPOINT_GATE"))) {
		snprintf(gate, sizeof(gate), "FAIRLEAD_FAILPOINT_GATE=%s", text);
		shepherd_words[count++] = gate;
	}
	if ((text = getenv("FAIRLEAD_TEST_BOOT_ID"))) {
		snprintf(boot, sizeof(boot), "FAIRLEAD_TEST_BOOT_ID=%s", text);
		shepherd_words[count++] = boot;
	}
#endif
}

static char **shepherd_environment(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	CHECK(pthread_once(&once, make_environment) == 0);
	return shepherd_words;
}

static int spawn_with(struct engine *e, char *place, const posix_spawn_file_actions_t *actions,
		      pid_t *ret, struct err *err)
{
	char *argv[] = { e->shepherd, place, NULL };
	posix_spawnattr_t attributes;
	sigset_t none, all;

	sigemptyset(&none);
	sigfillset(&all);
	CHECK(posix_spawnattr_init(&attributes) == 0);
	CHECK(posix_spawnattr_setsigmask(&attributes, &none) == 0);
	CHECK(posix_spawnattr_setsigdefault(&attributes, &all) == 0);
	CHECK(posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK |
							    POSIX_SPAWN_SETSIGDEF) == 0);
	int error =
		posix_spawn(ret, e->shepherd, actions, &attributes, argv, shepherd_environment());
	posix_spawnattr_destroy(&attributes);
	if (error)
		return err_errno(err, ERR_IO, error, "could not start the task's shepherd %s",
				 e->shepherd);
	return 0;
}

/* The lock is taken here and handed over open: from its first instruction on the shepherd holds it. */
static int spawn_shepherd(struct engine *e, const struct rank *rank, char *place, pid_t *ret,
			  struct err *err)
{
	char log[PATH_MAX];
	posix_spawn_file_actions_t actions;
	int lock = place_lock(rank->folder, err);

	if (lock < 0)
		return lock;
	if (FAILPOINT_RANK("engine-spawn", rank->number)) {
		close(lock);
		return err_errno(err, ERR_IO, EAGAIN, "could not start the task's shepherd %s",
				 e->shepherd);
	}
	snprintf(log, sizeof(log), "%.4000s/shepherd.log", place);
	CHECK(posix_spawn_file_actions_init(&actions) == 0);
	if (FAILPOINT_RANK("engine-child", rank->number))
		CHECK(posix_spawn_file_actions_addopen(&actions, STDIN_FILENO,
						       getenv("FAIRLEAD_FAILPOINT_GATE"), O_RDONLY,
						       0) == 0);
	CHECK(posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0) ==
	      0);
	CHECK(posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0) ==
	      0);
	CHECK(posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, log,
					       O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW,
					       0600) == 0);
	CHECK(posix_spawn_file_actions_adddup2(&actions, lock, PLACE_LOCK_FD) == 0);
	int result = spawn_with(e, place, &actions, ret, err);
	posix_spawn_file_actions_destroy(&actions);
	close(lock);
	return result;
}

/* The rank's folder among the attempts, where only the daemon reads. Of what a daemon before this one left there nothing had a task. */
static int open_place(struct engine *e, const struct rank *rank, const char *name, struct err *err)
{
	int attempt = attempt_folder_open(e->attempts, rank->attempt->number, err), place;

	if (attempt < 0)
		return attempt;
	if (rank->attempt->adopted)
		remove_folder_at(attempt, name);
	place = own_folder_at(attempt, name, 0700,
			      rank->attempt->adopted ? OWN_FOLDER_REFUSE : OWN_FOLDER_KEEP, err);
	if (place >= 0 && rank->attempt->adopted && fsync(attempt) < 0) {
		int saved = errno;

		close(place);
		place = err_errno(err, ERR_IO, saved,
				  "could not keep the place of rank %s of attempt %" PRIu64, name,
				  rank->attempt->number);
	}
	close(attempt);
	return place;
}

/* RUN/ATTEMPT/RANK, with the script in it. A rank that is prepared once more finds its own. */
static int make_run_place(struct engine *e, const struct rank *rank, const struct order *order,
			  const char *name, struct err *err)
{
	const char *script = engine_script(&order->start, rank->number);
	int attempt, run, rc = 0;

	if (FAILPOINT_RANK("engine-place", rank->number))
		return err_errno(err, ERR_IO, EIO, "could not make the folder \"%s\"", name);
	attempt = attempt_folder_open(e->run, rank->attempt->number, err);
	if (attempt < 0)
		return attempt;
	run = own_folder_at(attempt, name, 0711, OWN_FOLDER_KEEP, err);
	close(attempt);
	if (run < 0)
		return run;
	if (script)
		rc = put_script(run, &order->start, script, err);
	close(run);
	return rc;
}

static int make_place(struct engine *e, struct rank *rank, struct order *order,
		      char place[PATH_MAX], struct err *err)
{
	char run[PATH_MAX], own[PLACE_NAME_MAX];

	place_name(own, rank->number, rank->launch);
	if (!place_path(place, e->attempts, rank->attempt->number, rank->number, rank->launch))
		return err_set(err, ERR_TOO_LARGE, "the path of a task's place is too long");
	snprintf(run, sizeof(run), "%s/%" PRIu64 "/%s", e->run, rank->attempt->number, own);
	int folder = open_place(e, rank, own, err);
	if (folder < 0)
		return folder;
	rank->folder = folder;
	int result = make_run_place(e, rank, order, own, err);
	if (result < 0)
		return result;
	if (mkfifoat(folder, "wake", 0600) < 0)
		return err_errno(err, ERR_IO, errno, "could not make the task's wake pipe");
	/* Taken before there is a shepherd: one without it could not even say that the disk is full. */
	result = place_reserve_exit(io_real(), place, err);
	if (result == 0)
		result = write_spec(e, rank, order, place, run, err);
	(void)FAILPOINT_RANK("engine-spec-written", rank->number);
	return result;
}

/* From here the rank has a shepherd. A stop that came meanwhile found none to give it to. */
static void rank_begins(struct engine *e, struct rank *rank, pid_t pid)
{
	struct attempt *attempt = rank->attempt;

	rank->state = RANK_LIVE;
	watch_shepherd(e, rank, pid);
	if (attempt->stopping) {
		if (place_put_command(rank->folder, "stop", attempt->stop_number,
				      attempt->stop_grace_ms, NULL) < 0) {
			/* the daemon's next stop, or its restart, tries again */
		}
		place_wake(rank->folder);
	}
	rank_scan(e, rank);
}

void prepare_rank(struct engine *e, struct rank *rank, struct order *order)
{
	char place[PATH_MAX];
	struct err err;
	pid_t pid;

	pthread_mutex_lock(&e->lock);
	bool stopping = rank->attempt->stopping || rank->attempt->ending;
	pthread_mutex_unlock(&e->lock);
	if (stopping) {
		fail_rank(e, rank, (struct engine_fact){ .cause = ENGINE_CAUSE_STOPPED });
		return;
	}
	int result = make_place(e, rank, order, place, &err);
	if (result == 0) {
		pthread_mutex_lock(&e->lock);
		result = rank_watch(e, rank, &err);
		pthread_mutex_unlock(&e->lock);
	}
	if (result == 0)
		result = spawn_shepherd(e, rank, place, &pid, &err);
	if (result < 0) {
		fail_rank_by(e, rank, &err);
		return;
	}
	(void)FAILPOINT_RANK("engine-spawned", rank->number);
	pthread_mutex_lock(&e->lock);
	rank_begins(e, rank, pid);
	pthread_mutex_unlock(&e->lock);
}
