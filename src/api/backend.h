/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the API needs of the daemon, as a table of functions: the handlers know facts and events, and nothing of threads,
 * journal or engine. Tests give a small backend of their own.
 *
 * Reading: a frozen copy of the facts, the newest that is durable, so an answer never shows what a crash could take
 * back, and whoever got an acknowledgement sees its effect in every later answer.
 * Writing: a proposed event goes to the core; the answer comes back only when it is durable.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/buf.h"
#include "base/digest.h"
#include "base/err.h"
#include "core/core.h"

struct code_store;
struct engine_output;
struct engine_own_mask;
struct engine_mask;

struct api_backend;
struct http_request;

struct frozen { /* shared; release it soon */
	struct facts facts;
	int references; /* the daemon's */
};

/* The answer to a command. `err.code` ERR_NONE = done and durable. */
struct command_reply {
	uint64_t seq; /* of the event; 0 for "already so" */
	uint32_t job; /* for JOB_SUBMITTED: the (first) id */
	/* it was so before (repeated client key, cancel of a cancelled job ...) */
	bool already;
	struct err err;
};

/* A proposed event on its way to the core; made with command_create, which copies texts and lists. Owned by the backend
 * from send() on; `done` is called once from a thread of the daemon. */
struct command {
	struct event event;
	/* plain body of a JOB_SUBMITTED (JSON): sealed by the daemon, named in the event; NULL = none */
	const void *body;
	size_t body_size;
	bool patient; /* it may wait a little for others, so that they share a commit */
	/* Asked when its turn comes: false = it has no use any more, and is answered as one that was done before. NULL = always. */
	bool (*applies)(const struct command *command, const struct facts *facts);
	void *context;
	void (*done)(void *context, const struct command_reply *reply);
	struct arena *arena; /* holds all of the above, this struct too */
	struct command *next;
};
struct command *command_create(const struct event *event, const void *body, size_t body_size);
void command_destroy(struct command *command);

struct api_status {
	const char *build, *boot_id, *data_folder;
	int64_t started_ms, now_ms; /* event time */
	/* false: nothing new is acknowledged; `problem` says why */
	bool accepting;
	/* works, but something of the data folder is damaged and not accepted: `damage` says what */
	bool degraded;
	char damage[700];
	uint64_t verified_seq; /* records up to this one were verified since the start */
	int64_t verified_ms; /* when the last verification ended; 0 = none did */
	char problem[256];
	/* the same is decided again and again, with pauses between: what; "" = nothing. How often since the start */
	char loop[256];
	uint64_t loops_braked;
	char starts_problem[256]; /* why no work is started on this machine; empty = it is */
	char history_problem[256]; /* why the history database can't be opened; "" = it is open */
	uint64_t last_seq, history_seq;
	bool simulated_nodes, runs_as_root;
	uint64_t turns, decisions, commits; /* counters since the start */
	int64_t longest_turn_us, longest_commit_us;
	uint32_t stream_clients;
	/* Of several daemons on one journal (daemon/stand_by.c). Nothing of it where one is alone. */
	bool elected; /* it is one of several */
	bool leads; /* and leads, by what it may say now */
	bool stands_by; /* it follows another one, and takes no changes */
	char leader[128], leader_address[256]; /* "" = nobody, or not known */
	int64_t behind_ms; /* of a stand-by: how long ago it had followed all there was */
	int64_t epoch; /* of the journal's writer, as it was seen */
	int64_t resident_bytes;
	/* Of a daemon whose work runs on a cluster. */
	bool on_cluster, cluster_seen; /* seen: its nodes and pods were listed */
	char cluster_problem[256]; /* "" = none */
	uint32_t pods_refused; /* that ask for Fairlead, and that it does not take */
	uint32_t conflicts; /* pools of nodes with two placement authorities */
	char conflict[512]; /* one of them, and who they are; "" = none */
};

enum { API_POD_TEXT_MAX = 400 };
struct api_pod {
	uint32_t job; /* 0 = it has none, and `text` says why */
	uint32_t attempt, rank; /* 0 = the newest attempt */
	char text[API_POD_TEXT_MAX];
};

enum work_pace { WORK_QUICK, WORK_SLOW };

struct api_backend {
	void *context;
	void (*send)(void *context, struct command *command);
	struct frozen *(*frozen)(void *context);
	void (*release)(void *context, struct frozen *frozen);
	void (*status)(void *context, struct api_status *ret);
	/* Plain body of a job (JSON as submitted). Blocking file access; any thread. */
	int (*body)(void *context, const struct facts *facts, struct job_id job, struct buf *ret,
		    struct err *err);
	/* Rows of a job's history (job 0: all events), seq > after. Waits until everything durable at the call is in there. */
	int (*history)(void *context, uint32_t job, uint64_t after, uint32_t limit,
		       void *take_context,
		       int (*take)(void *take_context, uint64_t seq, int64_t time_ms, uint32_t kind,
				   const char *text, size_t size),
		       struct err *err);
	/* The submission that a job came with, also of an array whose first job it is not; nothing taken: not known. */
	int (*submission)(void *context, uint32_t job, void *take_context,
			  int (*take)(void *take_context, uint64_t seq, int64_t time_ms,
				      uint32_t kind, const char *text, size_t size),
			  struct err *err);
	/* MAC of a plain body, so that a repeated client key with another body can be told; 64 hex digits and NUL. */
	void (*body_mac)(void *context, const void *body, size_t size, char out[DIGEST_HEX_MAX]);
	/* Runs fn on a worker thread: one for what walks tables and ends soon, or one for what plans or reads files. */
	void (*work)(void *context, enum work_pace pace, void (*fn)(void *argument),
		     void *argument);
	/* LOGS/JOB/ATTEMPT/RANK.out and .err: see src/engine/local/README.md */
	const char *logs_folder;
	bool one_thread; /* there are no other threads (tests/whole): event_hub_pass is called by whoever made this */
	const char *const *
		host_paths; /* where `pods`: folders of nodes that jobs may mount; NULL-terminated, NULL = none */
	bool pods; /* jobs run as pods of a cluster, not on this machine; their output is not in logs_folder */
	struct code_store *code; /* where snapshots are kept (store/code.h); NULL = nowhere */
	bool image_needed; /* where `pods`: a job that names no image has none */
	/* Whether whoever carries jobs out can do what this one asks. NULL = all of it. Any thread. */
	int (*permit)(void *context, const struct event *event, struct err *err);
	const char *snapshots_lack; /* where `pods`: why they get none; NULL = they do */
	/* Where `pods`: what a pod has printed. False: it is asked for too much at this moment; else `done` comes once, from any thread. */
	bool (*pod_output)(void *context, const struct engine_output *output); /* engine/pods.h */
	/* Where `pods`: the nodes that are left for a job which was not submitted (engine/pods.h). False: not known. NULL = all. Any thread. */
	bool (*consider)(void *context, const struct engine_own_mask *own, struct arena *arena,
			 struct engine_mask *ret);
	/* What keeps a job from beginning that the core does not know: a sentence, in the arena. starts: it has its place. NULL = nothing does. Any thread. */
	const char *(*held_up)(void *context, uint32_t job, bool starts, struct arena *arena);
	/* Where `pods`: whose a pod is. False: there is no such pod. Any thread. */
	bool (*pod_job)(void *context, const char *namespace, const char *name,
			struct api_pod *ret);
};

/* The event stream: the daemon calls this with each durable event, in order, from one thread. */
struct event_hub;
void event_hub_publish(struct event_hub *hub, const struct event *event, const char *text,
		       size_t size);

/* The API as a whole: what http_options.handle is given. */
struct http_request;
struct api;
struct api *api_create(const struct api_backend *backend);
/* What of its work outlives the daemon lies in this folder from now on. Before the first request. */
void api_keep(struct api *api, const char *folder);
void api_destroy(struct api *api);
/* http_options.head: who asks what, before the body is read */
int api_head(void *api, struct http_request *request);
void api_handle(void *api, struct http_request *request);
/* http_options.known: whether the peer's account is a user's */
struct http_peer;
bool api_known(void *api, const struct http_peer *peer);
enum { API_STRANGERS_MAX = 16 }; /* connections of all others together */
struct event_hub *api_hub(struct api *api);
