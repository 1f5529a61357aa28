/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks at everything that must be right for Fairlead to work here, and says what to do about what
 * is not.
 */
#include <dlfcn.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>

#include "base/clock.h"
#include "cli/client.h"
#include "cli/table/commands.h"
#include "cli/running/holder.h"
#include "cli/jobs/jobs.h"
#include "cli/output/problem.h"
#include "cli/people/promised.h"
#include "store/data_check.h"
#include "store/history.h"
#include "store/journal.h"
#include "store/losses.h"

static const long cgroup2_magic = 0x63677270;

struct examination {
	struct invocation *in;
	const char *folder;
	json_t *findings;
	bool problem;
	bool guest; /* the daemon is another account's, and this one only uses it */
	bool on_cluster; /* its work runs on Kubernetes: this machine need have nothing for it */
};

enum finding { FINE, REMARK, PROBLEM };

static void find(struct examination *e, const char *what, enum finding finding, const char *format,
		 ...) PRINTF_LIKE(4, 5);
static void find(struct examination *e, const char *what, enum finding finding, const char *format,
		 ...)
{
	static const char *const words[] = { "fine", "remark", "problem" };
	char text[700];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	json_array_append_new(e->findings, json_pack("{s:s, s:s, s:s}", "check", what, "result",
						     words[finding], "text", text));
	e->problem = e->problem || finding == PROBLEM;
}

/* the data folder */

static bool is_of_another(const struct stat *status)
{
	return status->st_uid != geteuid() && geteuid() != 0;
}

static void check_folder(struct examination *e)
{
	struct stat status;

	if (stat(e->folder, &status) < 0) {
		if (errno == ENOENT)
			find(e, "data folder", REMARK, "%s does not exist; `fairlead up` makes it",
			     e->folder);
		else
			find(e, "data folder", PROBLEM, "%s can't be looked at: %s", e->folder,
			     err_errno_text(errno));
		return;
	}
	e->guest = is_of_another(&status);
	if (!S_ISDIR(status.st_mode))
		find(e, "data folder", PROBLEM, "%s is no folder", e->folder);
	else if (is_of_another(&status))
		find(e, "data folder", FINE,
		     "%s belongs to the daemon of another account (id %u); to use that daemon you need no access to it",
		     e->folder, (unsigned int)status.st_uid);
	else if (status.st_mode & 022)
		find(e, "data folder", PROBLEM, "%s can be written by others; `chmod go-w %s`",
		     e->folder, e->folder);
	else
		find(e, "data folder", FINE, "%s", e->folder);
}

static void check_space(struct examination *e)
{
	struct statvfs space;
	int64_t free_mib;

	if (statvfs(e->folder, &space) < 0)
		return; /* said above */
	free_mib = (int64_t)((uint64_t)space.f_bavail * space.f_frsize >> 20);
	if (free_mib < 256)
		find(e, "disk space", PROBLEM,
		     "%lld MiB are free; new work is refused when there is no space left",
		     (long long)free_mib);
	else if (free_mib < 2048)
		find(e, "disk space", REMARK, "%lld MiB are free; logs and journal grow",
		     (long long)free_mib);
	else
		find(e, "disk space", FINE, "%lld GiB free", (long long)free_mib >> 10);
	if (space.f_files && space.f_favail < 1000)
		find(e, "inodes", PROBLEM, "%llu files can still be made",
		     (unsigned long long)space.f_favail);
}

static void check_file_system(struct examination *e)
{
	struct statfs status;

	if (statfs(e->folder, &status) < 0)
		return;
	if (status.f_type == 0x6969 || status.f_type == 0xff534d42L || status.f_type == 0x517b)
		find(e, "file system", PROBLEM,
		     "the data folder lies on a network file system; locks and fsync are not safe there");
	else if (status.f_type == 0x01021994)
		find(e, "file system", REMARK,
		     "the data folder lies in memory (tmpfs); a restart of the machine loses it");
}

/* What could not be read is set aside, and everything that it told is missing from then on. */
static void check_quarantine(struct examination *e)
{
	const char *path = arena_printf(e->in->arena, "%s/quarantine", e->folder);
	DIR *folder = opendir(path);
	size_t count = 0;

	for (struct dirent *entry; folder && (entry = readdir(folder));)
		count += entry->d_name[0] != '.';
	if (folder)
		closedir(folder);
	if (count)
		find(e, "journal", PROBLEM,
		     "%zu damaged record%s in %s, and what followed from %s may be missing; `fairlead journal verify` names damage, "
		     "docs/operations.md says how to restore a backup; remove that folder to accept the loss",
		     count, count == 1 ? " lies" : "s lie", path, count == 1 ? "it" : "them");
}

/* the daemon */

static void check_forecasts(struct examination *e, const json_t *forecasts)
{
	int64_t scored = get_int(forecasts, "scored"), known = get_int(forecasts, "safe_known");

	if (!scored)
		return;
	find(e, "estimates", FINE,
	     "of %lld jobs with an estimate that started, %lld of %lld did so by the time named for 9 of 10 cases",
	     (long long)scored, (long long)get_int(forecasts, "in_time"), (long long)known);
}

static void check_cluster(struct examination *e, const json_t *cluster, const json_t *status)
{
	const char *problem = get_text(cluster, "problem");
	int64_t refused = get_int(cluster, "pods_refused");

	if (*problem)
		find(e, "cluster", PROBLEM, "%s", problem);
	else if (!get_bool(cluster, "seen"))
		find(e, "cluster", REMARK, "its nodes and pods are being listed");
	else
		find(e, "cluster", FINE, "%lld nodes with %lld GPUs",
		     (long long)get_int(status, "nodes"),
		     (long long)get_int(json_object_get(status, "gpus"), "total"));
	if (*get_text(cluster, "conflict"))
		find(e, "authority", PROBLEM, "%s%s", get_text(cluster, "conflict"),
		     get_int(cluster, "conflicts") > 1 ? "; other pools too" : "");
	if (refused > 0)
		find(e, "pods", REMARK,
		     "%lld pods with schedulerName: fairlead are not taken; `kubectl describe pod` and `fairlead explain NAMESPACE/POD` say why",
		     (long long)refused);
}

static void check_verified(struct examination *e, const json_t *status)
{
	char when[LOCAL_TIME_MAX];
	int64_t ended_ms = get_int(status, "verified_ms");

	if (!ended_ms)
		find(e, "verified", REMARK,
		     "records up to %lld of %lld since the start of the daemon; the rest follows in the background",
		     (long long)get_int(status, "verified_seq"),
		     (long long)get_int(status, "last_seq"));
	else
		find(e, "verified", FINE, "all records up to %lld, at %s",
		     (long long)get_int(status, "verified_seq"),
		     clock_format_local(ended_ms, when));
}

/* What takes no work. */
static void check_service(struct examination *e, const json_t *status)
{
	const json_t *reason;
	size_t i;

	if (*get_text(status, "starts_problem"))
		find(e, "starts", PROBLEM, "%s", get_text(status, "starts_problem"));
	json_array_foreach(json_object_get(status, "out_of_service"), i, reason)
		find(e, "out_of_service", REMARK,
		     "%s (\"fairlead gpus back\" or \"fairlead nodes ready\" takes it back)",
		     json_string_value(reason));
}

static void check_status(struct examination *e, const json_t *status)
{
	int64_t lag = get_int(status, "last_seq") - get_int(status, "history_seq");
	int64_t clock = clock_wall_ms() - get_int(status, "now_ms");
	const json_t *election = json_object_get(status, "election");

	if (get_bool(election, "stands_by"))
		find(e, "daemon", *get_text(election, "leader") ? FINE : REMARK,
		     "version %s stands by, %lld ms behind: %s leads, %s",
		     get_text(status, "version"), (long long)get_int(election, "behind_ms"),
		     *get_text(election, "leader") ? get_text(election, "leader") : "nobody",
		     get_text(election, "leader_address"));
	else if (get_bool(status, "accepting"))
		find(e, "daemon", FINE, "version %s answers and takes work",
		     get_text(status, "version"));
	else
		find(e, "daemon", PROBLEM, "it takes no new work: %s", get_text(status, "problem"));
	if (get_text(status, "loop")[0])
		find(e, "decisions", PROBLEM, "%s", get_text(status, "loop"));
	if (*get_text(status, "damaged"))
		find(e, "damage", PROBLEM,
		     "%s. Restore a backup, or start the daemon with --accept-loss to accept this",
		     get_text(status, "damaged"));
	check_verified(e, status);
	if (get_int(status, "records_lost") > 0)
		find(e, "records", REMARK, "%s; what they told is missing, all else is there",
		     get_text(status, "damage"));
	if (strcmp(get_text(status, "version"), FAIRLEAD_VERSION) != 0)
		find(e, "version", REMARK,
		     "the daemon is %s, this command %s; start the daemon again to use the same",
		     get_text(status, "version"), FAIRLEAD_VERSION);
	if (get_text(status, "history_problem")[0])
		find(e, "history", PROBLEM, "%s", get_text(status, "history_problem"));
	else if (lag > 10000)
		find(e, "history", REMARK,
		     "the history database is %lld records behind; it catches up by itself",
		     (long long)lag);
	else
		find(e, "history", FINE, "%lld records behind the journal",
		     (long long)(lag > 0 ? lag : 0));
	if (clock < -2000)
		find(e, "clock", REMARK,
		     "event time is %lld s ahead of the clock: the clock was set back; it waits until both agree",
		     (long long)(-clock / 1000));
	check_forecasts(e, json_object_get(status, "forecasts"));
	check_service(e, status);
	if (get_bool(status, "simulated"))
		find(e, "gpus", REMARK, "nodes are simulated: processes are real, GPUs are not");
	if (e->on_cluster)
		check_cluster(e, json_object_get(status, "cluster"), status);
	else if (!get_bool(status, "runs_as_root"))
		find(e, "account", REMARK,
		     "the daemon has no root rights: it runs only its own account's jobs");
}

static void tell_promised(void *context, const char *text)
{
	find(context, "guarantees", REMARK, "%s", text);
}

/* Who may not see queues or nodes is told nothing of them. */
static void check_promised(struct examination *e, struct client *client)
{
	struct err err;
	int told = promised_look(client, e->in->arena, e, tell_promised, &err);

	if (told == 0)
		find(e, "guarantees", FINE, "there are GPUs for all of them");
}

/* While no daemon says what it found. */
static void check_files(struct examination *e)
{
	struct losses found = { 0 };
	struct buf text = BUF_INIT;
	struct err err;

	if (access(e->folder, R_OK | X_OK) < 0)
		return;
	if (data_check(e->folder, NULL, &found, &err) < 0 && err.code != ERR_NOT_FOUND &&
	    err.code != ERR_FORBIDDEN)
		find(e, "damage", PROBLEM, "%s", err.text);
	for (size_t i = 0; i < found.count; i++) {
		buf_clear(&text);
		loss_text(&found.items[i], &text);
		find(e, "damage", PROBLEM, "%s", buf_text(&text));
	}
	losses_deinit(&found);
	buf_deinit(&text);
}

static void check_daemon(struct examination *e)
{
	AUTO_CLIENT client = NULL;
	json_t *status = NULL;
	struct err err;
	long holder = holder_find(e->folder, e->in->arena);

	if (client_open(e->in, &client, &err) < 0 ||
	    client_get(client, "/api/v1/status", &status, &err) < 0) {
		if (holder > 0 && err.code == ERR_UNREACHABLE)
			find(e, "daemon", PROBLEM,
			     "process %ld holds the data folder, but does not answer; see daemon.log there",
			     holder);
		else
			find(e, "daemon", err.code == ERR_UNREACHABLE ? REMARK : PROBLEM, "%s",
			     err.text);
		if (err.code == ERR_UNREACHABLE)
			check_files(e);
		return;
	}
	e->on_cluster = json_object_get(status, "cluster") != NULL;
	if (e->guest)
		find(e, "you", FINE,
		     "you can submit jobs (`fairlead run`) and follow your own; what this machine lacks is for the administrator to see, with `fairlead doctor` as root");
	check_status(e, status);
	check_promised(e, client);
	json_decref(status);
}

/* the machine */

static void check_cgroups(struct examination *e)
{
	struct statfs status;
	bool second =
		statfs("/sys/fs/cgroup", &status) == 0 && (long)status.f_type == cgroup2_magic;
	bool first = access("/sys/fs/cgroup/memory/cgroup.procs", F_OK) == 0;

	if (second && access("/sys/fs/cgroup/cgroup.procs", W_OK) == 0)
		find(e, "cgroups", FINE,
		     "version 2, writable: memory limits are kept by the kernel");
	else if (first && access("/sys/fs/cgroup/memory/cgroup.procs", W_OK) == 0)
		find(e, "cgroups", FINE,
		     "version 1, writable: memory limits are kept by the kernel");
	else if (second || first)
		find(e, "cgroups", REMARK,
		     "not writable for this account: memory limits of jobs are watched, not enforced");
	else
		find(e, "cgroups", REMARK,
		     "none here: memory limits of jobs are watched, not enforced");
}

static void check_gpus(struct examination *e)
{
	void *library = dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL);

	if (library)
		find(e, "nvidia driver", FINE, "its library (NVML) is there");
	else
		find(e, "nvidia driver", REMARK,
		     "none on this machine: use `fairlead up --nodes sim:...` to try things, or jobs with --gpus 0");
	if (library)
		dlclose(library);
}

static void check_shepherd(struct examination *e)
{
	static const char *const places[] = { "fairlead-shepherd",
					      "../shepherd/fairlead-shepherd" };
	const char *said = getenv("FAIRLEAD_SHEPHERD");
	char self[4096];
	ssize_t size = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	if (said && said[0]) {
		find(e, "shepherd", access(said, X_OK) == 0 ? FINE : PROBLEM,
		     "%s (FAIRLEAD_SHEPHERD)", said);
		return;
	}
	self[size > 0 ? size : 0] = '\0';
	slash = strrchr(self, '/');
	for (size_t i = 0; slash && i < 2; i++) {
		const char *path =
			arena_printf(e->in->arena, "%.*s/%s", (int)(slash - self), self, places[i]);

		if (access(path, X_OK) == 0) {
			find(e, "shepherd", FINE, "%s", path);
			return;
		}
	}
	find(e, "shepherd", PROBLEM,
	     "the program fairlead-shepherd, which runs tasks, is not beside this one: install it, or name it in "
	     "FAIRLEAD_SHEPHERD");
}

/* the history database made anew */

static int rebuild(struct invocation *in, const char *folder, struct err *err)
{
	struct history *history = NULL;
	long holder = holder_find(folder, in->arena);
	int rc = client_may_read_folder(in, err);

	if (rc < 0)
		return rc;
	if (holder)
		return err_set(
			err, ERR_CONFLICT,
			"a daemon (process %ld) uses the data folder \"%.200s\"; stop it first, jobs go on",
			holder, folder);
	if (access(arena_printf(in->arena, "%s/journal", folder), F_OK) != 0)
		return err_set(
			err, ERR_NOT_FOUND,
			"there is no journal in \"%.200s\"; name the data folder with --data",
			folder);
	rc = history_open(folder, &history, err);
	if (rc >= 0)
		rc = history_clear(history, err);
	history_close(history);
	if (rc < 0)
		return rc;
	output_write(
		"The history database is empty now. The daemon fills it again from the journal when it starts.\n",
		94);
	return 0;
}

/* the report */

static void cell_found(const json_t *row, struct buf *out)
{
	say_text(out, get_text(row, "text"));
}

static const struct column columns[] = {
	{ "CHECK", "check", CELL_TEXT },
	{ "RESULT", "result", CELL_TEXT },
	{ "FOUND", .cell = cell_found, .wraps = true },
	{ 0 },
};

static int run_doctor(struct invocation *in, struct err *err)
{
	struct examination e = { .in = in, .folder = client_data_folder(in) };
	struct output output;
	int rc;

	if (arg_has(in, "rebuild"))
		return rebuild(in, e.folder, err);
	e.findings = json_array();
	check_folder(&e);
	if (!e.guest) {
		check_space(&e);
		check_file_system(&e);
		check_quarantine(&e);
	}
	check_daemon(&e);
	if (!e.on_cluster && !e.guest) {
		check_shepherd(&e);
		check_cgroups(&e);
		check_gpus(&e);
	}
	output_init(&output, in);
	rc = output_list(&output, columns, e.findings, "check", err);
	json_decref(e.findings);
	return rc < 0 ? rc : e.problem ? 1 : 0;
}

static const struct flag flags[] = {
	{ "rebuild", 0, NULL,
	  "make the history database anew from the journal; the daemon must be stopped", false },
	{ 0 },
};

const struct command command_doctor = {
	.name = "doctor",
	.arguments = "",
	.summary = "look for what is wrong with this installation",
	.about =
		"Each line is a check: fine, a remark, or a problem with what to do about it. The exit status is 1 when there is a problem.",
	.flags = flags,
	.examples = "fairlead doctor\n"
		    "fairlead doctor --rebuild\twhen the history database is damaged",
	.shares = SHARES_LIST | SHARES_DAEMON,
	.run = run_doctor,
};
