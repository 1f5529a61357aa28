/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The daemon's own state, shared by its files only. Each part names the thread that may touch it; what several
 * threads touch is atomic or has a lock of its own.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "api/backend.h"
#include "api/http/http.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/digest.h"
#include "core/core.h"
#include "daemon/away.h"
#include "daemon/brake.h"
#include "daemon/event_clock.h"
#include "daemon/mailbox.h"
#include "engine/engine.h"
#include "store/history.h"
#include "store/journal.h"
#include "store/losses.h"
#include "store/seal.h"

enum {
	MAILBOX_MOST =
		50000, /* commands waiting for the core; beyond it new ones are refused at once */
	TURN_MESSAGES = 512, /* messages of one turn */
	TURN_BYTES = 32 << 20, /* of sealed bodies: no further message is taken beyond it */
	/* A turn should last 5 ms at most. What is behind these goes on in the next one. */
	WAVE_TURNS =
		8, /* so many within WAVE_LOAD_MS: what an engine tells then waits for WAVE_MS since the last */
	WAVE_LOAD_MS = 100,
	WAVE_MS = 16,
	TAKE_US = 2000, /* no further message is taken after this */
	DECIDE_UNTIL_US = 3000, /* and no further step of deciding begun after this */
	DECIDE_BUDGET = 5000,
	STEP_ARENA_BYTES = 256 << 20,
	SNAPSHOT_EVERY = 100000, /* records */
	QUICK_WORKERS = 2,
	SLOW_WORKERS = 3, /* one more than a user may have at work (api/dear.h) */
	WORKERS = QUICK_WORKERS + SLOW_WORKERS,
	JOURNAL_LEVEL =
		1 /* readers below the level of a DAEMON_STARTED record refuse the journal */
};

/* A frozen copy of the facts with the place in the journal it stands for. The API sees the first member. */
struct publication {
	struct frozen frozen;
	uint64_t seq;
	struct digest chain; /* valid when it was the last of its commit: the only ones published */
	struct event_clock clock; /* event time and boot time, read together */
};

/* One turn's outcome on its way to the disk: records, blobs, and what leaves once they are durable. */
struct batch {
	struct message message;
	struct arena arena;
	struct buf texts; /* record texts, one after the other */
	struct batch_record {
		uint64_t seq;
		int64_t time_ms;
		uint32_t kind;
		bool must;
		size_t at, size;
	} *records;
	uint32_t record_count, record_room;
	struct batch_blob {
		struct command *command;
		struct digest name;
		struct buf sealed;
	} *blobs;
	uint32_t blob_count, blob_room;
	struct batch_reply {
		struct command *command;
		struct command_reply reply;
	} *replies;
	uint32_t reply_count, reply_room;
	struct publication *publication;
	uint32_t decisions;
	bool essential; /* holds facts of running work: may use the disk's reserve */
};

/* What travels to the core. */
enum core_message {
	CORE_COMMAND,
	CORE_FACT,
	CORE_NODE, /* what an engine with a cluster found of a node */
	CORE_NODES, /* and the names of all */
	CORE_MASK, /* nodes that are left for pods of one kind */
	CORE_MASKS, /* and the names of all: others end */
	CORE_ADOPTED, /* the engine has said what it found: in front of this */
	CORE_STOP
};
struct command_message {
	struct message message;
	struct command *command;
	struct digest blob;
	struct buf sealed;
};
struct fact_message {
	struct message message;
	struct engine_fact fact;
};
struct node_message {
	struct message message;
	struct engine_node node;
	struct engine_taken taken[]; /* of the node */
};
struct mask_message {
	struct message message;
	char *name, *why;
	bool whole, ended;
	char **in, **out; /* of CORE_MASKS: in are names of masks */
	uint32_t in_count, out_count;
};
struct nodes_message {
	struct message message;
	char **names;
	size_t count;
};

/* What travels to the engine thread. */
enum effect_kind {
	EFFECT_ADOPT,
	EFFECT_ADOPT_ANEW,
	EFFECT_START,
	EFFECT_START_FROM, /* the same, when its checkpoint was looked at */
	EFFECT_RELEASE,
	EFFECT_WARN,
	EFFECT_STOP,
	EFFECT_RESIZE, /* who belongs to a running attempt has changed */
	EFFECT_FORGET,
	EFFECT_JOB_OVER, /* attempt: the job's number */
	EFFECT_OWN_CAME, /* jobs whose pods run on the nodes of a mask alone; attempt: the first of them; grace_ms: how many */
	EFFECT_PODS_ANSWER, /* what became of a gang that was offered; attempt: its job */
	EFFECT_PODS_WHY, /* why a gang waits; attempt: its job */
	EFFECT_PODS_PROMISE, /* which place a gang is promised, if any; attempt: its job */
	EFFECT_QUIT
};
/* Where an attempt begins: path NULL = at the beginning. */
struct resume_from {
	const char *path;
	uint32_t number; /* of the job's checkpoints */
	int64_t bytes; /* that its files had together when it was reported; 0 = not known */
	bool unknown; /* where it lies can't be read at this moment: it is not to be begun */
	bool away; /* its file server has not shown it for a while: the place is given back */
};

/* What a shepherd in a pod said of the checkpoint that its task was to resume from. */
struct torn {
	uint32_t job; /* 0 = empty */
	uint32_t number;
	bool missing; /* else it is smaller than it was */
};
enum { TORN_KEPT = 256 };

struct effect {
	struct message message;
	uint64_t attempt;
	int64_t grace_ms;
	char *path; /* of START_FROM: malloced, NULL = from the beginning. Of PODS_...: words */
	struct resume_from from; /* of START_FROM, with that path */
	char key[ENGINE_KEY_MAX]; /* of PODS_ANSWER */
	bool flag; /* of PODS_ANSWER: the job has ended; of PODS_WHY: room lacks */
	bool given_again;
};

struct job_work {
	struct message message;
	void (*fn)(void *argument);
	void *argument;
};

/* Whether the disk has room for starts (space.c). */
enum machine_answer { ANSWER_NONE, ANSWER_GOOD, ANSWER_BAD };
struct machine_faults {
	atomic_int fault; /* enum engine_fault: what keeps this machine from starting tasks */
	atomic_int answer; /* enum machine_answer, to the newest try */
	/* Boot clock; the engine thread's: next look, pause before it, when a fault ended last, when a start was tried (0: none is) */
	int64_t look_ms, pause_ms, back_ms, tried_ms;
};

/* What of the data folder is damaged, and how far the journal is verified (damage.c). */
enum { DAMAGE_TEXT_MAX = 700 };
struct damage_state {
	pthread_mutex_t lock; /* of all below */
	struct losses losses, accepted;
	uint64_t open; /* findings that are not accepted */
	char text[DAMAGE_TEXT_MAX]; /* the first of them */
	bool accepts; /* --accept-loss, until the first verification has ended */
	uint64_t verified_seq; /* of the current verification, or of the last one */
	int64_t verified_ms; /* when the last one ended; 0 = none did since the start */
	pthread_cond_t wake;
	bool runs, ends;
	pthread_t thread;
};

/* Event time and boot time of one moment: of the snapshot, or of the newest start of a daemon. */
struct known_clock {
	int64_t event_ms, boot_ms;
	char boot_id[BOOT_ID_MAX];
	char key[SEAL_PRINT_MAX]; /* fingerprint of the key of bodies then; "" = not known */
};

/* Masks of nodes are few, so that one user does not take them all. */
enum { OWN_MASKS_OF_USER = 64 };
struct mask_maker {
	char mask[NAME_MAX_BYTES + 1], user[NAME_MAX_BYTES + 1]; /* "" = free */
};

struct daemon {
	const char *folder;
	char build[64], boot_id[BOOT_ID_MAX];
	bool root, simulated;
	const struct engine_cluster *kubernetes; /* NULL = work runs on this machine */
	struct engine_site engine_site; /* where it runs then, and under which word (claim.c) */
	char instance[SITE_INSTANCE_MAX];
	const struct nodes_found *found; /* at the start */
	const struct scenario *site; /* the cluster file that they are from; NULL = none */
	struct journal_options
		store; /* its files and the journal's sizes; zero: the system's, and the usual ones */

	/* core thread */
	struct facts facts;
	struct view *view;
	struct event_clock clock;
	struct arena step;
	int64_t wake_ms;
	/* So often the engine was asked what it finds of the work that ran, and has not said all of it yet: until then nothing is
	 * decided. Else time that passed while the machine was off would end time limits of work that is gone with it. */
	uint32_t adopting;
	int64_t rebuild_ms; /* boot clock: when state was last read back after a failed commit */
	uint64_t rebuilt_seq; /* up to here; nothing beyond it durable means that it was in vain */
	bool again; /* the last turn stopped deciding early */
	struct brake brake;
	struct mask_maker
		mask_makers[MASKS_MAX]; /* those of own jobs, by whoever named them first */
	bool mask_makers_known; /* those of earlier days were read */
	int64_t loop_said_ms; /* boot clock: when the log last said that the brake is on; not more than once in a minute */
	bool loop_said; /* that it is on now: its end is said too */
#ifdef FAIRLEAD_FAILPOINTS
	bool loops; /* a loop was planted (core-loop) */
#endif
	uint64_t batches_sent;
	int64_t epoch; /* of the journal, where it is in a database */
	struct known_clock known;
	bool leaves; /* another daemon has the journal: this one is on its way out */
	bool unreadable; /* the journal could not be read back; said once */

	/* stand_by.c */
	/* by which one of several daemons leads; NULL = there is one, or its door opened a moment ago */
	struct lease *_Atomic lease;
	struct lease *life; /* which that one renews for people to see: it fences nothing */
	atomic_bool
		stands_by; /* another one leads: the main thread follows it and owns the facts */
	atomic_int_fast64_t followed_ms; /* boot clock: when all there was had been followed last */
	atomic_int_fast64_t leader_epoch;
	bool key_known; /* to be the right one */

	struct mailbox core_box, journal_box, engine_box, work_box[2]; /* by enum work_pace */
	pthread_t core_thread, journal_thread, engine_thread, history_thread, pods_thread,
		workers[WORKERS];

	/* journal thread (the core thread while it recovers) */
	struct journal *journal;
	uint64_t snapshot_seq, snapshot_every; /* records */
	bool in_database; /* the journal; known from the start on */
	bool full_said; /* and not yet that there is room again */
	int64_t full_look_ms; /* boot clock: when a database whose disk was full is tried again */
	atomic_bool snapshot_running;
	atomic_uint_fast64_t batches_done;

	/* published, any thread */
	pthread_mutex_t publication_lock;
	struct publication *published;
	pthread_cond_t durable_cond;
	uint64_t durable_seq; /* under publication_lock */
	bool stopping; /* under publication_lock */

	atomic_bool faulted; /* a commit failed: the core must rebuild */
	atomic_bool full; /* the disk has no room for new work */
	struct damage_state damage;
	bool settled; /* two held a GPU then (facts_settle): the next start writes it down */
	pthread_mutex_t problem_lock;
	char problem[256];
	char loop
		[BRAKE_TEXT_MAX]; /* under problem_lock: what is decided again and again; "" = nothing */
	atomic_uint_fast64_t loops_braked; /* since the start */

	/* counters, any thread */
	atomic_uint_fast64_t turns, decisions, commits;
	atomic_int_fast64_t longest_turn_us, longest_commit_us, event_now_ms;
	int64_t started_ms;

	struct seal_key *key;
	char key_print[SEAL_PRINT_MAX]; /* its fingerprint */
	pthread_mutex_t reader_lock; /* for reader: bodies are few */
	struct journal *reader;
	struct history *
		history; /* history thread writes; NULL = could not be opened yet, and is tried again */
	atomic_uint_fast64_t history_seq; /* how far it is */
	char history_problem[256]; /* under problem_lock: why it can't be opened; "" = it is open */
	atomic_bool history_behind; /* it can't at present */
	uint64_t history_wanted; /* under publication_lock: somebody waits until it is there */
	uint64_t
		history_due; /* under publication_lock: the history thread is told when this record is durable */
	pthread_mutex_t feed_lock; /* for feed_journal */
	struct journal *feed_journal; /* what the history thread reads; NULL = not open */
	pthread_mutex_t history_lock; /* for history_reader, NULL like history */
	struct history *history_reader;

	struct engine *engine; /* engine thread, once that runs */
	pthread_mutex_t
		engine_swap; /* held while `engine` is replaced, and by others than its thread while they ask it */
	const struct engine_ops *engine_ops;
	uint32_t levels_refused; /* of the engine, as jobs name others: said once */
	char shepherd[4096];
	struct resume *resume;
	struct gpu_watch *gpu_watch; /* NULL = there is none */
	struct machine_faults faults;
	atomic_bool ending; /* what is still to be done is done by the next start */
	struct api_backend backend;
	struct api *api;
	struct http_server *server;
	struct shepherd_calls *shepherd_calls; /* NULL = no pods have shepherds */
	struct away away;
	int64_t store_pause_until_ms; /* boot clock; the engine thread's: effects_body() */
	pthread_mutex_t torn_lock; /* of what follows */
	struct torn torn[TORN_KEPT];
	uint32_t torn_next; /* which is overwritten */
	char logs_folder[4096];
};

/*
 * Each thread is a loop around its `..._pass`, which waits at most wait_ms (-1: for ever) for something to do and does it; false
 * when the thread is to end. The simulation of the whole system (tests/whole) calls the passes itself, in one thread, with 0.
 */

/* daemon.c */
void daemon_init(struct daemon *d, const char *folder); /* the folder's name stays the caller's */
struct io *daemon_io(const struct daemon *d);
/* The first records of a start: that the daemon is up, and start_state. In the caller's thread. */
int start_events(struct daemon *d, struct err *err) MUST_CHECK;
/* What every state needs for work, appended where it is missing: a jump over the numbers that lost records gave, the first
 * team, queue and user, the nodes that were found. */
int start_machines(struct daemon *d, struct batch *batch, struct err *err)
	MUST_CHECK; /* of these: nodes */
int start_state(struct daemon *d, struct batch *batch, struct err *err) MUST_CHECK;

/* core.c */
struct core_hand {
	struct message *messages; /* taken from the mailbox; may be for more than one turn */
	bool stop;
	int64_t began_ns[WAVE_TURNS]; /* of the last turns with records, the oldest at `next` */
	uint32_t next;
};
bool core_pass(struct daemon *d, struct core_hand *hand, int64_t wait_ms);
/* After a failed commit: until state may be read back. */
int64_t core_rebuild_wait_ms(struct daemon *d);
int64_t
core_wait_ms(struct daemon *d); /* until the core has something to do by itself; -1 = never */
void core_start(struct daemon *d);
void core_join(struct daemon *d);
/* Appends, applies and follows one event in the batch; the event's seq and time are given here. */
void core_append(struct daemon *d, struct batch *batch, struct event *event);
/* core_admit, then core_append; negative when refused. Used for the events of the daemon's own start. */
int core_admit_own(struct daemon *d, struct batch *batch, struct event *event, struct err *err)
	MUST_CHECK;
void core_decide(struct daemon *d, struct batch *batch, int64_t began_ns); /* of the turn */
void core_publish_into(struct daemon *d, struct batch *batch);
struct publication *
publication_create(struct daemon *d); /* of the facts as they are: by their owner */

/* batch.c */
struct batch *batch_create(void);
void batch_destroy(struct batch *batch);
void batch_record(struct batch *batch, const struct event *event);
void batch_reply(struct batch *batch, struct command *command, const struct command_reply *reply);
void batch_blob(struct batch *batch, struct command *command, const struct digest *name,
		struct buf *sealed);

/* gate.c: the journal thread */
bool gate_pass(struct daemon *d, int64_t wait_ms);
void gate_start(struct daemon *d);
void gate_join(struct daemon *d);
/* Writes the batch to the journal in the caller's thread, while the gate is idle or not there yet. Nothing leaves by it. */
int gate_write(struct daemon *d, struct batch *batch, struct err *err) MUST_CHECK;
/* The same, and publishes; frees the batch. For the start. */
int gate_commit_now(struct daemon *d, struct batch *batch, struct err *err) MUST_CHECK;
/* After a rebuild, by the core thread while the gate is idle: publishes the facts that were read back. Records of a failed
 * commit that are on disk after all go to the stream; their effects are the engine's to adopt. */
void gate_publish_rebuilt(struct daemon *d);
void gate_publish(
	struct daemon *
		d); /* the facts as they are, which are durable: by their owner, while the gate is idle or not there yet */
void gate_snapshot(struct daemon *d); /* a snapshot of them, when one is due */
struct publication *publication_get(struct daemon *d); /* a reference */
void publication_release(struct publication *publication);

/* recover.c */
/* Opens the journal, loads the newest good snapshot and the records behind it; facts, view and clock are then ready. With `create`, at the
 * start, a journal in a database is only followed: recover_follow promotes it. Without, it must still be this daemon's. */
int recover(struct daemon *d, bool create, struct err *err) MUST_CHECK;
/* What has come to the journal since, onto facts and view and into the stream. promote: and from now on this daemon writes it, which
 * means nothing where the journal is in files. By the owner of the facts. */
int recover_follow(struct daemon *d, bool promote, struct err *err) MUST_CHECK;
/* body_key.c */
/* Opens the key, which must be the one that the journal names. */
int body_key_open(struct daemon *d, struct err *err) MUST_CHECK;
enum { BODY_TEXT_MAX = 200 };
/* Holds a job whose body cannot be read; `reason` gets what the job says then. */
void body_key_hold(struct daemon *d, struct job_id job, const char *why,
		   char reason[BODY_TEXT_MAX]);

/* damage.c */
void damage_init(struct daemon *d);
/* Logs what is new of it, one line each, and shows it. */
void damage_note(struct daemon *d, const struct losses *found);
void damage_accepts_no_more(struct daemon *d);
void damage_known(struct daemon *d, const struct losses *accepted); /* what was accepted before */
void damage_status(struct daemon *d, struct api_status *ret);
void damage_start(struct daemon *d); /* verifies the journal in a thread of its own */
void damage_join(struct daemon *d);

void snapshot_take(struct daemon *d); /* of what is published; any thread but the core's */

/* effects.c: the engine thread */
struct effects_hand {
	struct message *first; /* commands to be given again */
	int64_t at_ms; /* boot clock */
};
bool effects_pass(struct daemon *d, struct effects_hand *again, bool wait);
/* What a job said when it was submitted; ERR_UNAVAILABLE: again in a second. The engine thread's. */
int effects_body(struct daemon *d, const struct facts *facts, struct job_id job, struct buf *ret,
		 struct err *err) MUST_CHECK;
void effects_start(struct daemon *d);
void effects_join(struct daemon *d);
/* Whether effects_of_event does anything with a kind: the gate decodes and hands on no others. */
bool effects_follow(uint32_t kind);
void effects_of_event(struct daemon *d, const struct event *event); /* by the gate, in order */
void effects_adopt(struct daemon *d); /* after a start: the engine learns what is live */
void effects_adopt_anew(
	struct daemon
		*d); /* after a rebuild: so does a new one, as facts of the old one were lost */
int effects_open_engine(struct daemon *d, struct err *err) MUST_CHECK;

/* The engine's callback: what it tells goes to the core. Any thread, does not block. */
void effects_report(void *daemon, const struct engine_fact *fact);

/* resume.c: threads that may be held up by a file server */
void resume_open(struct daemon *d); /* without the threads */
bool resume_pass(struct daemon *d, int64_t wait_ms);
size_t resume_waiting(struct daemon *d);
void resume_start(struct daemon *d);
bool resume_join(struct daemon *d); /* false: one of them is stuck there */
void resume_find(struct daemon *d, uint64_t attempt); /* answered by effects_start_from */
void effects_start_from(struct daemon *d, uint64_t attempt,
			const struct resume_from *from); /* effects.c; it is copied */

/* machine_faults.c */
/* A start failed for it (not NONE). Any thread, does not block. */
void machine_faults_note(struct daemon *d, enum engine_fault fault);
/* The engine's answer to a try: NULL = a task could be started. Any thread. */
void machine_faults_tried(void *daemon, const struct err *err);
/* The engine thread's: after a restart; and a look when it is due. Answers ms to the next one, -1 = none. */
void machine_faults_recall(struct daemon *d, const struct facts *facts);
int64_t machine_faults_look(struct daemon *d);
/* Fills starts_problem. Any thread. */
void machine_faults_status(struct daemon *d, struct api_status *ret);

/* claim.c: where the work of this journal runs */
/* Behind recover: whether this engine may have it, and the word for what is its own there. ERR_CONFLICT: jobs would run twice. */
int claim_engine(struct daemon *d, struct err *err) MUST_CHECK;
/* The same for the cluster that the engine found. */
int claim_site(struct daemon *d, const struct engine_site *found, struct err *err) MUST_CHECK;
bool claim_is_known(const struct daemon *d); /* to the journal */
void claim_event(const struct daemon *d, struct event *ret);

/* daemon.c */
int64_t daemon_wall_ms(void); /* FAIRLEAD_TEST_WALL_STEP_MS moves it, in builds with failpoints */

/* stand_by.c: one of several daemons on a journal. By the main thread. */
enum { STAND_BY_LEADS, STAND_BY_ENDS };
/* Behind the door's opening: begins to look who leads. */
int stand_by_open(struct daemon *d, struct lease **ret, struct err *err) MUST_CHECK;
void stand_by_live(struct daemon *d); /* of one that leads alone */
/* Follows the journal until this daemon leads and has the journal for itself, or is asked to end. */
int stand_by_wait(struct daemon *d, struct err *err) MUST_CHECK;
/* Until it is asked to end. Does not come back when it has lost the lead. */
void stand_by_lead(struct daemon *d);
/* Whether keys/body.key is the one that the journal's bodies were sealed with; true where there is none to be opened. */
int stand_by_key(struct daemon *d, struct err *err) MUST_CHECK;

/* facts_in.c */
/* The event an engine fact amounts to; false when it tells nothing new. */
bool fact_event(const struct facts *facts, const struct fact_message *message, struct event *ret);

/* gpu_watch.c: a thread that looks at this machine's real GPUs; none where there are none, nor for a cluster */
void gpu_watch_start(struct daemon *d);
void gpu_watch_join(struct daemon *d);

/* nodes_in.c: nodes that an engine finds. The callbacks come from any thread and do not block; the rest is the core's. */
void nodes_report(void *daemon, const struct engine_node *node);
void nodes_report_all(void *daemon, const char *const *names, size_t count);
void take_node(struct daemon *d, struct batch *batch, struct node_message *message);
void take_nodes(struct daemon *d, struct batch *batch, struct nodes_message *message);
void nodes_message_destroy(struct nodes_message *message);

/* masks_in.c: masks that an engine makes. As above. */
void masks_report(void *daemon, const struct engine_mask *mask);
void masks_report_all(void *daemon, const char *const *names, uint32_t count);
void take_mask(struct daemon *d, struct batch *batch, struct mask_message *message);
void take_masks(struct daemon *d, struct batch *batch, struct mask_message *message);
struct masks_made {
	uint32_t count;
	char name[ROLES_MAX + 2][NAME_MAX_BYTES + 1];
};
int masks_for_submission(struct daemon *d, struct batch *batch, const struct event *submission,
			 struct masks_made *ret, struct err *err) MUST_CHECK;
void masks_unmake(struct daemon *d, struct batch *batch, const struct masks_made *made);
void mask_ends(struct daemon *d, struct batch *batch, const char *name);
void mask_message_destroy(struct mask_message *message);

/* pods_in.c: pods that others made. The callbacks come from any thread and do not block; the rest is the engine thread's. */
void pods_offer(void *daemon, const struct engine_gang *gang);
void pods_withdraw(void *daemon, uint64_t job, const char *why);
void pods_adopt(struct daemon *d, const struct facts *facts);
void pods_over(struct daemon *d, const struct facts *facts, uint64_t job);
void pods_effect(struct daemon *d, const struct effect *effect);
void pods_promise(struct daemon *d, const struct facts *facts, uint64_t job);
/* Before it is stopped. */
void pods_disrupted(struct daemon *d, const struct facts *facts, uint64_t attempt);

/* own_in.c: own jobs that name a mask. own_follow: whether this record is the submission of one. */
bool own_follow(const struct daemon *d, uint32_t kind, const char *text, size_t size);
bool own_is_masked(const struct facts *facts, uint32_t job);
/* Both answer whether it is to be told again: the store did not answer. said: a failure was logged before. */
bool own_tell(struct daemon *d, const struct facts *facts, uint32_t job, bool said);
bool own_came(struct daemon *d, const struct facts *facts, const struct effect *effect);

/* pods_tell.c: a thread that says why gangs wait; none without an engine that has pods */
void pods_tell_start(struct daemon *d);
void pods_tell_join(struct daemon *d);

/* shepherd_calls.c: what shepherds in pods ask */
enum { SHEPHERD_TOKEN_MAX = 96 };
void shepherd_token(struct daemon *d, uint64_t attempt, char out[SHEPHERD_TOKEN_MAX]);
void shepherd_calls_create(struct daemon *d);
int shepherd_calls_open(struct daemon *d, const char *listen, int connections, struct err *err)
	MUST_CHECK;
const char *shepherd_calls_address(const struct daemon *d); /* "" = nobody listens for pods */
void shepherd_calls_wake(struct daemon *d); /* something was published that one of them waits for */
void shepherd_calls_close(struct daemon *d); /* answers all of them */
void shepherd_calls_destroy(struct daemon *d);
/* effects.c: whether ranks of its attempts leave and come while others run */
bool ranks_change(const struct facts *facts, const struct job *job);
/* world_calls.c: who belongs to an attempt, for its shepherds. known: the generation that one of them knows, -1 = none. */
enum { WORLD_UNASKED = -2 };
bool world_is_news(const struct facts *facts, uint64_t attempt, int64_t known);
/* Members of an answer, each with a comma in front. */
void world_add(struct daemon *d, const struct publication *publication, uint64_t attempt,
	       uint32_t rank, struct buf *out);

/* torn_calls.c: checkpoints that shepherds did not find good. The facts say of the attempt that it is live. */
void torn_say(struct daemon *d, struct http_request *request, const struct facts *facts,
	      uint64_t attempt);
/* What it says; bytes -1 = the checkpoint is not there. Negative: it is not so, with the reason. */
int torn_hear(struct daemon *d, const struct facts *facts, uint64_t attempt, int64_t number,
	      int64_t bytes, struct err *err) MUST_CHECK;
/* Whether it was said of that checkpoint; it is forgotten then. */
bool torn_take(struct daemon *d, uint32_t job, uint32_t number, bool *ret_missing);

/* code_calls.c: the job's snapshot, for who has shown that it is of the attempt. Answers later, by a worker. */
enum { CODE_LIST = -1 };
void code_answer(struct daemon *d, struct http_request *request, uint64_t attempt, int64_t from);

/* feeder.c: the history thread */
/* Opens the read models, which must not know more than record `last`. What keeps them shut is in history_problem, too. */
int feeder_open(struct daemon *d, uint64_t last, struct err *err) MUST_CHECK;
void feeder_start(struct daemon *d);
void feeder_join(struct daemon *d);

/* serve.c: backend for the API, worker threads */
void serve_open(struct daemon *d); /* the backend alone */
bool work_pass(struct daemon *d, enum work_pace pace, int64_t wait_ms);
void serve_start(struct daemon *d);
void serve_join(struct daemon *d);
void serve_pass(void *context, bool begins); /* http_options.pass */
void daemon_problem(struct daemon *d, const char *text); /* "" = none any more */
