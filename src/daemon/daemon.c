/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Start and end of the daemon. The order of the start: the folder, the key, the state, then the threads, and the door is
 * opened last; the end runs the other way round. Running jobs are touched by neither.
 */
#include "daemon/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/wait.h"
#include "base/check.h"
#include "base/log.h"
#include "daemon/background.h"
#include "daemon/ending.h"
#include "daemon/site.h"
#include "daemon/state.h"
#include "engine/failpoint.h"
#include "engine/kubernetes/lease.h"
#include "engine/local/pids.h"
#include "core/scheduling/queues/calendar.h"
#include "node/discover.h"
#include "store/code.h"
#include "store/io.h"

int64_t daemon_wall_ms(void)
{
#ifdef FAIRLEAD_FAILPOINTS
	const char *step = getenv("FAIRLEAD_TEST_WALL_STEP_MS");
	if (step)
		return clock_wall_ms() + strtoll(step, NULL, 10);
#endif
	return clock_wall_ms();
}

struct io *daemon_io(const struct daemon *d)
{
	return d->store.io ? d->store.io : io_real();
}

/* A number that tests set in a program built for them. */
static int64_t test_number(const char *variable, int64_t usual)
{
#ifdef FAIRLEAD_FAILPOINTS
	const char *given = getenv(variable);
	if (given)
		return strtoll(given, NULL, 10);
#else
	(void)variable;
#endif
	return usual;
}

/* Number of records between two snapshots. */
static uint64_t snapshot_every(void)
{
	return (uint64_t)test_number("FAIRLEAD_TEST_SNAPSHOT_EVERY", SNAPSHOT_EVERY);
}

/* 0 = the journal's default. */
static int64_t segment_bytes(void)
{
	return test_number("FAIRLEAD_TEST_SEGMENT_BYTES", 0);
}

static void boot_id(char out[BOOT_ID_MAX])
{
	clock_boot_id(out);
#ifdef FAIRLEAD_FAILPOINTS
	const char *given = getenv("FAIRLEAD_TEST_BOOT_ID");
	if (given)
		snprintf(out, BOOT_ID_MAX, "%s", given);
#endif
}

static int make_folder(const char *path, struct err *err)
{
	char part[4096];
	snprintf(part, sizeof(part), "%s", path);
	for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(part, 0755) != 0 && errno != EEXIST)
			return err_errno(err, ERR_IO, errno, "folder \"%s\" can't be made", part);
		*slash = '/';
	}
	if (mkdir(part, 0711) != 0 && errno != EEXIST)
		return err_errno(err, ERR_IO, errno, "data folder \"%s\" can't be made", path);
	return 0;
}

/* --- what the daemon itself puts into the journal at its start ------------------------------------------------ */

static int start_identity(struct daemon *d, struct batch *batch, struct err *err)
{
	if (!facts_team_find(&d->facts, "default")) {
		struct event team = event_make(EVENT_TEAM_SET, 0, "fairlead");
		team.team_set.name = "default";
		team.team_set.title = "everybody without a team of their own";
		if (core_admit_own(d, batch, &team, err) < 0)
			return -1;
	}
	if (!facts_queue_find(&d->facts, "default").v) {
		struct event queue = event_make(EVENT_QUEUE_SET, 0, "fairlead");
		queue.queue_set.name = "default";
		queue.queue_set.limit_share = -1;
		queue.queue_set.weight = 1;
		if (core_admit_own(d, batch, &queue, err) < 0)
			return -1;
	}
	for (uint32_t id = 1; id <= d->facts.users.count; id++) {
		const struct user *user = table_get(&d->facts.users, id);
		if (!user->removed && user->uid == (int32_t)geteuid())
			return 0;
	}
	const struct passwd *account = getpwuid(geteuid());
	struct event user = event_make(EVENT_USER_SET, 0, "fairlead");
	user.user_set.name = account ? account->pw_name : "admin";
	user.user_set.team = "default";
	user.user_set.role = ROLE_ADMIN;
	user.user_set.uid = (int64_t)geteuid();
	user.user_set.gid = (int64_t)getegid();
	return core_admit_own(d, batch, &user, err);
}

static int start_zone(struct daemon *d, struct batch *batch, const char *known, struct err *err)
{
	char name[NAME_MAX_BYTES + 1];
	struct zone_rules rules;
	struct err why;
	struct event event;
	snprintf(name, sizeof(name), "%s", known);
	if (zone_read(name, &rules, &why) < 0) {
		log_line(LOG_WARN, "%s; its clock goes on as it was known", why.text);
		return 0;
	}
	event = event_zone_make(name, &rules, 0, "fairlead");
	return core_admit_own(d, batch, &event, err);
}

/* The record that told of its clock is lost. */
static int start_zone_lost(struct daemon *d, struct batch *batch, const char *calendar,
			   struct err *err)
{
	struct calendar c;
	if (!*calendar || calendar_parse(calendar, &c, NULL) < 0 || !c.zone_name[0] ||
	    facts_zone_find(&d->facts, c.zone_name))
		return 0;
	return start_zone(d, batch, c.zone_name, err);
}

/* The machine's zone files may have changed since: laws do. A clock that is gone from them stays as it was. */
static int start_zones(struct daemon *d, struct batch *batch, struct err *err)
{
	int result = 0;
	for (uint32_t row = 1; result >= 0 && row <= d->facts.zones.count; row++) {
		const struct zone *zone = table_get(&d->facts.zones, row);
		result = start_zone(d, batch, facts_name(&d->facts, zone->name), err);
	}
	for (uint32_t id = 1; result >= 0 && d->facts.lost && id <= d->facts.queues.count; id++)
		result = start_zone_lost(
			d, batch,
			facts_text(&d->facts,
				   queue_get(&d->facts, (struct queue_id){ id })->calendar),
			err);
	for (uint32_t id = 1; result >= 0 && d->facts.lost && id <= d->facts.shapes.count; id++)
		result = start_zone_lost(
			d, batch,
			facts_name(&d->facts,
				   shape_get(&d->facts, (struct shape_id){ id })->window),
			err);
	return result < 0 ? result : 0;
}

int start_state(struct daemon *d, struct batch *batch, struct err *err)
{
	struct event passed;
	if (facts_lost_numbers(&d->facts, &passed) || d->settled)
		core_append(d, batch, &passed);
	if (d->kubernetes && !claim_is_known(d)) {
		claim_event(d, &passed);
		core_append(d, batch, &passed);
	}
	if (start_identity(d, batch, err) < 0)
		return -1;
	/* Of a Kubernetes cluster the engine tells later what is there; until then it is as it was. */
	if (!d->kubernetes && start_machines(d, batch, err) < 0)
		return -1;
	return start_zones(d, batch, err) < 0 ? -1 : 0;
}

int start_events(struct daemon *d, struct err *err)
{
	struct batch *batch = batch_create();
	struct event started = event_make(EVENT_DAEMON_STARTED, 0, "fairlead");
	started.daemon_started.build = d->build;
	started.daemon_started.boot_id = d->boot_id;
	started.daemon_started.boot_ms = clock_boot_ms();
	started.daemon_started.level = JOURNAL_LEVEL;
	started.daemon_started.key = d->key_print;
	core_append(d, batch, &started);
	for (uint32_t i = 0; i < d->found->count; i++)
		d->simulated |= d->found->nodes[i].simulated;
	if (start_state(d, batch, err) < 0) {
		batch_destroy(batch);
		return -1;
	}
	return gate_commit_now(d, batch, err);
}

/* --- the parts ------------------------------------------------------------------------------------------------------ */

static void shepherd_path(char out[4096])
{
	const char *given = getenv("FAIRLEAD_SHEPHERD");
	if (given && *given) {
		snprintf(out, 4096, "%s", given);
		return;
	}
	char self[3900] = "";
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (length > 0)
		self[length] = '\0';
	char *slash = strrchr(self, '/');
	if (slash)
		*slash = '\0';
	snprintf(out, 4096, "%s/fairlead-shepherd", self);
	if (access(out, X_OK) != 0)
		snprintf(out, 4096, "%s/../shepherd/fairlead-shepherd",
			 self); /* in a build folder */
}

/* Before anything is written: the cluster may be another one than the journal's. */
static int open_cluster(struct daemon *d, struct err *err)
{
	struct engine_site site;

	if (claim_engine(d, err) < 0)
		return -1;
	if (!d->kubernetes || d->engine)
		return 0;
	d->engine_ops = &engine_kubernetes;
	if (effects_open_engine(d, err) < 0 || d->engine_ops->site(d->engine, &site, err) < 0)
		return -1;
	return claim_site(d, &site, err);
}

static int open_engine(struct daemon *d, struct err *err)
{
	if (d->engine)
		return 0;
	shepherd_path(d->shepherd);
	if (access(d->shepherd, X_OK) != 0)
		return err_errno(
			err, ERR_NOT_FOUND, errno,
			"the program fairlead-shepherd is not beside this one (\"%s\"): install it, or name it in FAIRLEAD_SHEPHERD",
			d->shepherd);
	d->engine_ops = &engine_local;
	return effects_open_engine(d, err);
}

/* What can't be opened is no reason not to start: all of it comes from the journal, and the history thread tries again. */
static void open_history(struct daemon *d)
{
	struct err err = { 0 };

	if (feeder_open(d, d->facts.seq, &err) < 0)
		log_line(LOG_ERROR, "%s", d->history_problem);
}

static int open_door(struct daemon *d, const struct daemon_options *options, struct err *err)
{
	char socket[4096];
	snprintf(socket, sizeof(socket), "%s/fairlead.sock", d->folder);
	/* The doors share the descriptors that there are. */
	const int fit = http_connections_fit();
	const int most = fit < HTTP_CONNECTIONS_MAX && options->pod_listen ? fit / 2 : fit;
	if (fit < HTTP_CONNECTIONS_MAX)
		log_line(
			LOG_WARN,
			"the limit of open files leaves room for %d connections, not %d: raise it (prlimit --nofile, LimitNOFILE= of a systemd unit) where more clients come",
			fit, HTTP_CONNECTIONS_MAX);
	const struct http_options http = { .unix_path = socket,
					   .unix_owned = true,
					   .listen = options->listen,
					   .context = d->api,
					   .handle = api_handle,
					   .head = api_head,
					   .pass = serve_pass,
					   .connections_max = most,
					   .strangers_max = API_STRANGERS_MAX,
					   .known = api_known };
	int result = http_start(&http, &d->server, err);
	return result < 0 ? result : shepherd_calls_open(d, options->pod_listen, most, err);
}

/*
 * A request's memory is taken by one thread and given back by another, some tens of KiB at a time. By its own measure the
 * allocator would ask the kernel for almost each of them and hand it back at once.
 */
static void tune_memory(void)
{
	(void)mallopt(M_TOP_PAD, 1 << 20);
	(void)mallopt(M_TRIM_THRESHOLD, 16 << 20);
}

void daemon_init(struct daemon *d, const char *folder)
{
	*d = (struct daemon){ .folder = folder,
			      .root = geteuid() == 0,
			      .snapshot_every = snapshot_every(),
			      .started_ms = clock_wall_ms() };
	snprintf(d->build, sizeof(d->build), "%s", FAIRLEAD_VERSION);
	snprintf(d->logs_folder, sizeof(d->logs_folder), "%s/logs", folder);
	boot_id(d->boot_id);
	arena_init(&d->step, STEP_ARENA_BYTES);
	mailbox_init(&d->core_box);
	mailbox_init(&d->journal_box);
	mailbox_init(&d->engine_box);
	mailbox_init(&d->work_box[WORK_QUICK]);
	mailbox_init(&d->work_box[WORK_SLOW]);
	pthread_mutex_init(&d->publication_lock, NULL);
	cond_init(&d->durable_cond);
	pthread_mutex_init(&d->problem_lock, NULL);
	pthread_mutex_init(&d->torn_lock, NULL);
	damage_init(d);
	away_init(&d->away);
	pthread_mutex_init(&d->reader_lock, NULL);
	pthread_mutex_init(&d->feed_lock, NULL);
	pthread_mutex_init(&d->history_lock, NULL);
	pthread_mutex_init(&d->engine_swap, NULL);
}

static void greet_nodes(const struct daemon *d, const struct nodes_found *found)
{
	uint32_t gpus = 0;
	for (uint32_t i = 0; i < found->count; i++)
		gpus += found->nodes[i].gpu_count;
	printf("Fairlead %s is up: %u node%s, %u %sGPU%s.\n", d->build, found->count,
	       found->count == 1 ? "" : "s", gpus, d->simulated ? "simulated " : "",
	       gpus == 1 ? "" : "s");
	if (found->remark[0])
		printf("%s\n", found->remark);
	if (!d->root)
		printf("Without root it runs jobs of its own user only, and memory limits may not be enforced.\n");
}

static void greet(const struct daemon *d, const struct nodes_found *found, const char *database,
		  const char *lost)
{
	if (d->kubernetes)
		printf("Fairlead %s is up, for work on Kubernetes.\n", d->build);
	else
		greet_nodes(d, found);
	printf("Data folder: %s\n", d->folder);
	if (*database)
		printf("Journal: %s\n", database);
	if (lost[0])
		printf("%s. What they told is missing; `fairlead doctor` says what to do.\n", lost);
	if (http_port(d->server))
		printf("HTTP: http://%s (token needed: fairlead token create)\n",
		       http_address(d->server));
	if (*shepherd_calls_address(d))
		printf("Pods report to: http://%s\n", shepherd_calls_address(d));
	fflush(stdout);
}

/* Of use only for a later start: without it that needs its flags again. */
static void remember_start(const struct daemon *d, const char *text)
{
	char path[4096 + 16], fresh[4096 + 16];
	int fd;
	bool good;

	if (!text)
		return;
	snprintf(path, sizeof(path), "%s/start", d->folder);
	snprintf(fresh, sizeof(fresh), "%s/start.new", d->folder);
	fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	good = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) && fsync(fd) == 0;
	if (fd >= 0)
		close(fd);
	if (!good || rename(fresh, path) < 0)
		log_line(LOG_WARN, "could not note nodes and address for the next start: %s",
			 err_errno_text(errno));
}

static void block_signals(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGPIPE);
	sigaddset(&set,
		  SIGCONT); /* but where connections to a cluster are: engine/kubernetes/wake.h */
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	ending_watch();
}

static void close_files(struct daemon *d)
{
	api_destroy(d->api);
	shepherd_calls_destroy(d);
	code_store_destroy(d->backend.code);
	history_close(d->history);
	history_close(d->history_reader);
	journal_close(d->reader);
	journal_close(d->journal);
	seal_key_close(d->key);
}

static void end(struct daemon *d)
{
	shepherd_calls_close(d);
	http_stop(d->server);
	atomic_store(&d->ending, true);
	damage_join(d);
	gpu_watch_join(d); /* its commands are for the core */
	pods_tell_join(d); /* and its words for the engine thread */
	core_join(d);
	gate_join(d);
	effects_join(d);
	feeder_join(d);
	serve_join(d);
	if (!atomic_load(&d->faulted))
		snapshot_take(d);
	d->engine_ops->close(d->engine);
	lease_close(d->life);
	lease_close(d->lease); /* nothing more of this daemon goes to the cluster */
	if (!resume_join(d)) {
		log_line(LOG_WARN,
			 "a checkpoint folder does not answer: ended without waiting for it");
		journal_close(d->journal);
		_exit(EXIT_SUCCESS);
	}
	close_files(d);
}

/* Of one that did not come to lead, or failed at it. */
static void end_following(struct daemon *d)
{
	shepherd_calls_close(d);
	http_stop(d->server);
	atomic_store(&d->ending, true);
	feeder_join(d);
	serve_join(d);
	if (d->engine)
		d->engine_ops->close(d->engine);
	lease_close(d->lease);
	snapshot_take(d);
	close_files(d);
}

/* Of a Kubernetes cluster the engine tells later what is there. */
static int find_nodes(struct daemon *d, const struct daemon_options *options, struct arena *arena,
		      struct nodes_found *ret, struct err *err)
{
	if (d->kubernetes)
		return 0;
	return options->cluster ? site_find(options->cluster, arena, ret, &d->site, err)
				: nodes_find(options->nodes, arena, ret, err);
}

/* --- the parts, in the order of the start --------------------------------------------------------------------------- */

/* The first records of this daemon, and the engine. */
static int start_leading(struct daemon *d, struct err *err)
{
	return open_cluster(d, err) < 0 || start_events(d, err) < 0 || open_engine(d, err) < 0 ? -1
											       : 0;
}

/* What answers questions: it needs facts that are published, and nobody who changes them. */
static void start_reading(struct daemon *d)
{
	serve_start(d);
	d->api = api_create(&d->backend);
	api_keep(d->api, d->folder);
	feeder_start(d);
}

static void start_deciding(struct daemon *d)
{
	resume_start(d);
	effects_start(d);
	effects_adopt(d);
	gate_start(d);
	core_start(d);
	gpu_watch_start(d);
	pods_tell_start(d);
	damage_start(d);
}

/* Follows first, and leads when it is its turn; the door is open all the time. */
static int lead_in_turn(struct daemon *d, const struct daemon_options *options,
			struct background *background, struct err *err)
{
	struct lease *lease = NULL;
	int result = open_door(d, options, err);

	(void)FAILPOINT("stand-by-before-lease");
	if (result == 0)
		result = stand_by_open(d, &lease, err);
	atomic_store(&d->lease, lease);
	if (result < 0)
		return result;
	ending_is_up();
	printf("Fairlead %s stands by, for work on Kubernetes.\nData folder: %s\nJournal: %s\n",
	       d->build, d->folder, journal_database(d->journal));
	fflush(stdout);
	background_ready(background);
	result = stand_by_wait(d, err);
	if (result != STAND_BY_LEADS)
		return result;
	result = start_leading(d, err);
	if (result < 0)
		return result;
	start_deciding(d);
	atomic_store(&d->stands_by, false);
	stand_by_lead(d);
	end(d);
	return 0;
}

static int run_elected(struct daemon *d, const struct daemon_options *options,
		       struct background *background, struct err *err)
{
	int result;

	if (!journal_database(d->journal))
		return err_set(
			err, ERR_INVALID,
			"--stand-by is for a journal in a database, which several daemons can reach: give --store");
	/* It was opened to see which cluster this is; who leads opens one that the Lease fences. */
	d->engine_ops->close(d->engine);
	d->engine = NULL;
	atomic_store(&d->stands_by, true);
	gate_publish(d);
	start_reading(d);
	result = lead_in_turn(d, options, background, err);
	if (atomic_load(&d->stands_by))
		end_following(d);
	return result < 0 ? result : 0;
}

static int run(struct daemon *d, const struct daemon_options *options,
	       struct background *background, struct err *err)
{
	struct arena arena;
	struct nodes_found found = { .remark = "" };
	char lost[LOST_TEXT_MAX], database[256] = "";
	arena_init(&arena, 64 << 20);
	block_signals();
	d->found = &found;
	d->store.address = options->store;
	d->store.segment_bytes = segment_bytes();
	d->store.loss = options->accept_loss ? JOURNAL_LOSS_ACCEPT : JOURNAL_LOSS_LITTLE;
	d->damage.accepts = options->accept_loss;
	d->store.join = options->kubernetes != NULL;
	d->kubernetes = options->kubernetes;
	if (options->pod_listen)
		shepherd_calls_create(d);
	if (find_nodes(d, options, &arena, &found, err) < 0 || recover(d, true, err) < 0 ||
	    body_key_open(d, err) < 0 || open_cluster(d, err) < 0)
		return -1;
	open_history(d);
	serve_open(d);
	if (journal_database(d->journal) && stand_by_key(d, err) < 0)
		return -1;
	if (options->stand_by)
		return run_elected(d, options, background, err);
	if (recover_follow(d, true, err) < 0 || start_leading(d, err) < 0)
		return -1;
	start_reading(d);
	facts_lost_text(&d->facts, lost); /* from here on facts and journal are the core's */
	if (journal_database(d->journal))
		snprintf(database, sizeof(database), "%s", journal_database(d->journal));
	start_deciding(d);
	int result = open_door(d, options, err);
	if (result == 0) {
		ending_is_up();
		remember_start(d, options->remember);
		greet(d, &found, database, lost);
		background_ready(background);
		stand_by_live(d);
		(void)ending_wait(-1);
	}
	end(d);
	arena_deinit(&arena);
	return result;
}

int daemon_run(const struct daemon_options *options, struct err *err)
{
	if (make_folder(options->data, err) < 0)
		return -1;
	char *folder = realpath(options->data, NULL);
	if (!folder)
		return err_errno(err, ERR_IO, errno, "data folder \"%s\" can't be opened",
				 options->data);
	struct background background;
	int result = background_begin(&background, options->background, folder, err);
	if (result != 0) {
		free(folder);
		return result == BACKGROUND_PARENT ? 0 : result;
	}
	log_open("fairlead", LOG_INFO);
	struct daemon *d = calloc(1, sizeof(*d));
	CHECK(d);
	/* The kernel kills a task for memory before the daemon, and the daemon before a shepherd; needs root. */
	(void)small_file_write("/proc/self/oom_score_adj", "-800");
	tune_memory();
	daemon_init(d, folder);
	result = run(d, options, &background, err);
	if (result < 0)
		background_failed(&background, err);
	brake_deinit(&d->brake);
	free(d);
	free(folder);
	return result;
}
