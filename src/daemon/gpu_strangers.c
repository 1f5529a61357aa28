/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/gpu_strangers.h"

#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/check.h"
#include "base/clock.h"
#include "core/model/taken.h"
#include "node/discover.h"

enum {
	HOLDERS_MAX = 4096,
	STRANGERS_MAX = 64, /* of one GPU that are looked at */
	NAMED_MAX = 2, /* of these in the reason */
	ALIKE_LOOKS =
		3, /* one program that is another process each time counts at so many looks in a row */
	AFTER_MS = 5000, /* a task's memory may be there so long after it */
	AGAIN_MS = 60000, /* a reason is worded anew no more often */
	RETURNS_MS = 600000, /* what is taken again so soon after it was back, */
	QUIET_MS = 60000, /* is back only when nobody was seen for so long */
	PROGRAM_MAX = 16,
	ACCOUNT_MAX = 40
};
#define FEW_BYTES (INT64_C(1) << 30)
#define MEMORY "memory that no process has"

/* A task that holds GPUs of this machine. */
struct holder {
	uint64_t attempt;
	uint32_t rank, launch, job, mask;
};

struct stranger {
	pid_t pid;
	bool shown; /* this machine knows the process */
	char program[PROGRAM_MAX], account[ACCOUNT_MAX];
	uint32_t job; /* it is of that job, which has not got this GPU; 0 = of none */
	bool over; /* or had it */
	uint32_t looks; /* in a row at which it, or one like it, was there */
};

/* What is kept of a GPU from look to look. */
struct watched {
	struct stranger before[STRANGERS_MAX]; /* of the last look */
	uint32_t before_count;
	bool memory_before;
	struct holder last; /* who had it last */
	int64_t held_ms, said_ms; /* boot clock: last seen held; last marked */
	int64_t seen_ms, back_ms; /* somebody was last seen; it was last given back, 0 = never */
	bool returns; /* who has it came back soon */
};

struct gpu_strangers {
	bool looked;
	struct watched gpu[NODE_GPUS_MAX];
	struct holder holders[HOLDERS_MAX];
	uint32_t holder_count;
	/* of the GPU that is looked at: */
	struct nvml_process processes[NVML_PROCESSES_MAX], graphics[NVML_PROCESSES_MAX];
	struct stranger strangers[STRANGERS_MAX];
	uint32_t count, more; /* beyond these */
	/* what was found: */
	bool known[NODE_GPUS_MAX];
	char text[NODE_GPUS_MAX][REASON_MAX_BYTES + 1]; /* "" = nobody has it */
};

struct gpu_strangers *gpu_strangers_create(void)
{
	struct gpu_strangers *s = calloc(1, sizeof(*s));

	CHECK(s);
	return s;
}

void gpu_strangers_destroy(struct gpu_strangers *s)
{
	free(s);
}

/* --- tasks that hold GPUs ----------------------------------------------------------------------------------------- */

static void holder_take(struct gpu_strangers *s, const struct facts *f, const struct job *job,
			uint32_t node)
{
	const struct attempt *attempt = attempt_get(f, job->attempt);

	for (uint32_t rank = 0; attempt->state != ATTEMPT_OVER && rank < attempt->tasks &&
				s->holder_count < HOLDERS_MAX;
	     rank++) {
		const struct task *task = task_get(f, attempt, rank);

		if (task->node.v == node && task->gpu_mask && task_holds(task))
			s->holders[s->holder_count++] =
				(struct holder){ job->attempt.v, rank, task->launch, attempt->job.v,
						 task->gpu_mask };
	}
}

static void holders_take(struct gpu_strangers *s, const struct facts *f, uint32_t node)
{
	const int64_t now_ms = clock_boot_ms();

	s->holder_count = 0;
	for (uint32_t id = 1; id <= f->jobs.count; id++) {
		const struct job *job = job_get(f, (struct job_id){ id });

		if (job_is_live(job) && job->attempt.v)
			holder_take(s, f, job, node);
	}
	for (uint32_t i = 0; i < s->holder_count; i++)
		for (uint32_t gpu = 0; gpu < NODE_GPUS_MAX; gpu++)
			if (s->holders[i].mask >> gpu & 1) {
				s->gpu[gpu].last = s->holders[i];
				s->gpu[gpu].held_ms = now_ms;
			}
}

static bool holder_owns(const struct daemon *d, const struct holder *h, pid_t pid)
{
	return d->engine_ops->owns(d->engine, h->attempt, h->rank, h->launch, pid);
}

static bool is_held(const struct gpu_strangers *s, uint32_t gpu)
{
	for (uint32_t i = 0; i < s->holder_count; i++)
		if (s->holders[i].mask >> gpu & 1)
			return true;
	return false;
}

/* The task on the GPU, or else on another one, that the process is of; NULL = none. */
static const struct holder *holder_of(const struct gpu_strangers *s, const struct daemon *d,
				      uint32_t gpu, bool here, pid_t pid)
{
	for (uint32_t i = 0; i < s->holder_count; i++)
		if ((s->holders[i].mask >> gpu & 1) == here && holder_owns(d, &s->holders[i], pid))
			return &s->holders[i];
	return NULL;
}

/* --- processes ---------------------------------------------------------------------------------------------------- */

/* A name that others chose: what would upset a terminal or a record is left out. */
static void name_clean(char *name)
{
	for (; *name; name++)
		if (*name < 0x20 || *name > 0x7e)
			*name = '?';
}

/* As /proc has it; false = it is gone, or out of sight. */
static bool process_look(struct stranger *ret)
{
	char path[64], line[PROGRAM_MAX + 1] = "", room[4096];
	struct passwd entry, *found = NULL;
	struct stat status;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)ret->pid);
	file = ret->pid > 0 ? fopen(path, "re") : NULL;
	if (!file)
		return false;
	if (!fgets(line, sizeof(line), file))
		line[0] = '\0';
	line[strcspn(line, "\n")] = '\0';
	snprintf(ret->program, sizeof(ret->program), "%.15s", line);
	name_clean(ret->program);
	ret->shown = fstat(fileno(file), &status) == 0;
	fclose(file);
	if (!ret->shown)
		return false;
	if (getpwuid_r(status.st_uid, &entry, room, sizeof(room), &found) == 0 && found)
		snprintf(ret->account, sizeof(ret->account), "%.39s", entry.pw_name);
	else
		snprintf(ret->account, sizeof(ret->account), "uid %u", (unsigned)status.st_uid);
	name_clean(ret->account);
	return true;
}

/* These serve other programs, or look at GPUs. */
static bool is_helper(const char *program)
{
	static const char *const names[] = { "nvidia-cuda-mps", "nvidia-persiste", "nv-hostengine",
					     "dcgm-exporter",   "nvidia-smi",      "Xorg",
					     "Xwayland",        "gnome-shell" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strncmp(program, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

static bool draws(const struct gpu_strangers *s, int graphics, pid_t pid)
{
	for (int i = 0; i < graphics; i++)
		if (s->graphics[i].pid == pid)
			return true;
	return false;
}

static void process_judge(struct gpu_strangers *s, struct daemon *d, uint32_t gpu,
			  const struct nvml_process *process, int graphics)
{
	struct stranger found = { .pid = process->pid };
	const struct holder *last = &s->gpu[gpu].last, *of;

	if (holder_of(s, d, gpu, true, process->pid))
		return;
	if (!process_look(&found) && is_held(s, gpu))
		return;
	if ((int64_t)process->bytes < FEW_BYTES &&
	    (is_helper(found.program) || draws(s, graphics, process->pid)))
		return;
	of = holder_of(s, d, gpu, false, process->pid);
	if (!of && last->attempt && holder_owns(d, last, process->pid)) {
		of = last;
		found.over = true;
	}
	found.job = of ? of->job : 0;
	if (s->count < STRANGERS_MAX)
		s->strangers[s->count++] = found;
	else
		s->more++;
}

/* --- words -------------------------------------------------------------------------------------------------------- */

static void stranger_say(const struct stranger *stranger, char out[static 128])
{
	char job[48] = "";

	if (stranger->job)
		snprintf(job, sizeof(job),
			 stranger->over ? ", left over from job %u"
					: ", of job %u, which has not got this GPU",
			 stranger->job);
	if (stranger->shown)
		snprintf(out, 128, "process %d (%s) of %s%s", (int)stranger->pid, stranger->program,
			 stranger->account, job);
	else
		snprintf(out, 128, "process %d, which can't be seen from here%s",
			 (int)stranger->pid, job);
}

static int by_pid(const void *a, const void *b)
{
	const struct stranger *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

static void strangers_say(struct gpu_strangers *s, char out[static REASON_MAX_BYTES + 1])
{
	uint32_t named = s->count < NAMED_MAX ? s->count : NAMED_MAX,
		 more = s->count - named + s->more;
	char one[NAMED_MAX][128], rest[24] = "";

	qsort(s->strangers, s->count, sizeof(s->strangers[0]), by_pid);
	one[1][0] = '\0';
	for (uint32_t i = 0; i < named; i++)
		stranger_say(&s->strangers[i], one[i]);
	if (more)
		snprintf(rest, sizeof(rest), " and %u more", more);
	snprintf(out, REASON_MAX_BYTES + 1, GPU_TAKEN "%.104s%s%.104s%s", one[0],
		 named > 1 ? "; " : "", one[1], rest);
}

static void memory_say(const struct watched *gpu, int64_t bytes,
		       char out[static REASON_MAX_BYTES + 1])
{
	char last[48] = "";

	if (gpu->last.job)
		snprintf(last, sizeof(last), "; job %u had the GPU last", gpu->last.job);
	snprintf(out, REASON_MAX_BYTES + 1,
		 GPU_TAKEN MEMORY " which can be seen from here, %lld MiB%s",
		 (long long)(bytes >> 20), last);
}

/* --- one GPU ------------------------------------------------------------------------------------------------------ */

/* Memory that none of the processes has; 0 = it can't be told, or is little. */
static int64_t memory_alone(const struct gpu_strangers *s, struct nvml *nvml, uint32_t gpu,
			    int count, int graphics)
{
	int64_t used = nvml_used(nvml, gpu);

	if (used < FEW_BYTES || is_held(s, gpu) ||
	    (s->gpu[gpu].held_ms && clock_boot_ms() < s->gpu[gpu].held_ms + AFTER_MS))
		return 0;
	for (int i = 0; i < count; i++) {
		if (!s->processes[i].bytes)
			return 0;
		used -= (int64_t)s->processes[i].bytes;
	}
	for (int i = 0; i < graphics; i++)
		used -= (int64_t)s->graphics[i].bytes;
	return used >= FEW_BYTES ? used : 0;
}

/* The same program of the same account, which is of no task. */
static bool is_alike(const struct stranger *a, const struct stranger *b)
{
	return !a->job && !b->job && a->shown == b->shown && strcmp(a->program, b->program) == 0 &&
	       strcmp(a->account, b->account) == 0;
}

/* It was there at the last look; or one like it, and before that another one: a program that is started again and again. */
static bool was_there(const struct watched *gpu, struct stranger *stranger)
{
	bool same = false;

	stranger->looks = 0;
	for (uint32_t i = 0; i < gpu->before_count; i++) {
		const struct stranger *before = &gpu->before[i];
		bool is_same = before->pid == stranger->pid;

		same = same || is_same;
		if ((is_same || is_alike(before, stranger)) && before->looks > stranger->looks)
			stranger->looks = before->looks;
	}
	stranger->looks++;
	return same || stranger->looks >= ALIKE_LOOKS;
}

/* Of the strangers, those that count. */
static void strangers_confirm(struct gpu_strangers *s, struct watched *gpu, bool at_once)
{
	struct stranger now[STRANGERS_MAX];
	uint32_t kept = 0, seen = s->count;

	for (uint32_t i = 0; i < seen; i++) {
		bool before = was_there(gpu, &s->strangers[i]) || at_once;

		now[i] = s->strangers[i];
		if (before)
			s->strangers[kept++] = s->strangers[i];
	}
	s->count = kept;
	memcpy(gpu->before, now, seen * sizeof(now[0]));
	gpu->before_count = seen;
}

/* `taken`: the facts say already that somebody has it. */
static void gpu_look(struct gpu_strangers *s, struct daemon *d, struct nvml *nvml, uint32_t gpu,
		     bool taken, int count)
{
	struct watched *watched = &s->gpu[gpu];
	int graphics = nvml_graphics(nvml, gpu, s->graphics);
	bool at_once = taken || !s->looked;
	int64_t alone;

	s->count = s->more = 0;
	for (int i = 0; i < count; i++)
		process_judge(s, d, gpu, &s->processes[i], graphics > 0 ? graphics : 0);
	alone = memory_alone(s, nvml, gpu, count, graphics > 0 ? graphics : 0);
	if (s->count || alone)
		watched->seen_ms = clock_boot_ms();
	strangers_confirm(s, watched, at_once);
	if (s->count)
		strangers_say(s, s->text[gpu]);
	else if (alone && (at_once || watched->memory_before))
		memory_say(watched, alone, s->text[gpu]);
	watched->memory_before = alone > 0;
}

/* --- against the facts -------------------------------------------------------------------------------------------- */

/* Programs that come and go would fill the journal, and jobs would be placed between them. */
static bool waits_for_quiet(const struct watched *gpu)
{
	return gpu->returns && clock_boot_ms() < gpu->seen_ms + QUIET_MS;
}

/* What the facts are to say of the GPU: 1 = it is taken, as the text has it; 0 = it is not; -1 = no word. */
static int gpu_compare(struct gpu_strangers *s, const struct facts *f, struct node_id id,
		       uint32_t gpu)
{
	const char *by = gpu_taken_by(f, id, gpu), *text = s->text[gpu];
	bool aside = node_get(f, id)->set_aside_mask >> gpu & 1;

	if (!s->known[gpu] || (aside && !by))
		return -1;
	if (!text[0])
		return by && !waits_for_quiet(&s->gpu[gpu]) ? 0 : -1;
	if (by && (strcmp(by, text + strlen(GPU_TAKEN)) == 0 ||
		   clock_boot_ms() < s->gpu[gpu].said_ms + AGAIN_MS ||
		   (strncmp(by, MEMORY, strlen(MEMORY)) == 0 &&
		    strncmp(text + strlen(GPU_TAKEN), MEMORY, strlen(MEMORY)) == 0)))
		return -1;
	return 1;
}

/* It is said now that somebody has it, or nobody any more. */
static void watched_note(struct watched *gpu, bool taken, bool before)
{
	const int64_t now_ms = clock_boot_ms();

	if (taken)
		gpu->said_ms = now_ms;
	else
		gpu->back_ms = now_ms;
	if (taken && !before)
		gpu->returns = gpu->back_ms && now_ms < gpu->back_ms + RETURNS_MS;
}

static const char *reason_of(const struct facts *f, struct node_id id, uint32_t gpu)
{
	const struct gpu_record *record = table_get(&f->gpus, (id.v - 1) * NODE_GPUS_MAX + gpu + 1);

	return facts_text(f, record->reason);
}

void gpus_back_tell(const struct facts *f, struct node_id id, uint32_t mask, gpus_mark_fn *mark,
		    void *context)
{
	uint32_t left = mask & node_get(f, id)->set_aside_mask;

	while (left) {
		const char *reason = reason_of(f, id, (uint32_t)__builtin_ctz(left));
		uint32_t same = 0;

		for (uint32_t gpu = 0; gpu < NODE_GPUS_MAX; gpu++)
			if (left >> gpu & 1 && strcmp(reason_of(f, id, gpu), reason) == 0)
				same |= UINT32_C(1) << gpu;
		mark(context, id.v, same, false, reason);
		left &= ~same;
	}
}

static void findings_tell(struct gpu_strangers *s, const struct facts *f, struct node_id id,
			  gpus_mark_fn *mark, void *context)
{
	uint32_t count = node_get(f, id)->gpu_count, back = 0, done = 0;
	int what[NODE_GPUS_MAX];

	for (uint32_t gpu = 0; gpu < count; gpu++) {
		what[gpu] = gpu_compare(s, f, id, gpu);
		back |= what[gpu] == 0 ? UINT32_C(1) << gpu : 0;
		if (what[gpu] >= 0)
			watched_note(&s->gpu[gpu], what[gpu] > 0, gpu_taken_by(f, id, gpu) != NULL);
	}
	gpus_back_tell(f, id, back, mark, context);
	for (uint32_t gpu = 0; gpu < count; gpu++) {
		uint32_t mask = 0;

		if (what[gpu] <= 0 || done >> gpu & 1)
			continue;
		for (uint32_t same = gpu; same < count; same++)
			if (what[same] > 0 && strcmp(s->text[same], s->text[gpu]) == 0)
				mask |= UINT32_C(1) << same;
		done |= mask;
		mark(context, id.v, mask, true, s->text[gpu]);
	}
}

void gpu_strangers_look(struct gpu_strangers *s, struct daemon *d, struct nvml *nvml,
			gpus_mark_fn *mark, void *context)
{
	struct publication *publication = publication_get(d);
	const struct facts *f = &publication->frozen.facts;
	struct node_id id = facts_node_find(f, d->found->nodes[0].name);
	bool any = id.v && node_get(f, id)->state != NODE_GONE;

	pthread_mutex_lock(&d->engine_swap);
	if (any && d->engine) {
		holders_take(s, f, id.v);
		for (uint32_t gpu = 0; gpu < node_get(f, id)->gpu_count; gpu++) {
			int count = nvml_processes(nvml, gpu, s->processes);

			s->text[gpu][0] = '\0';
			s->known[gpu] = count >= 0;
			if (count >= 0)
				gpu_look(s, d, nvml, gpu, gpu_taken_by(f, id, gpu) != NULL, count);
		}
		s->looked = true;
		findings_tell(s, f, id, mark, context);
	}
	pthread_mutex_unlock(&d->engine_swap);
	publication_release(publication);
}
