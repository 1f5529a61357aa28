/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kubernetes/client.h"

#include <curl/curl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/arena.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "engine/failpoint.h"
#include "engine/kubernetes/credential.h"
#include "engine/kubernetes/refusal.h"
#include "engine/kubernetes/rights.h"
#include "engine/kubernetes/wake.h"

enum {
	CONNECT_MS = 10000,
	ANSWER_MS = 60000,
	SILENCE_S =
		10, /* of a stream: then it is asked for anew, which costs next to nothing where nothing has changed */
	TOKEN_EVERY_MS = 30000,
	IDLE_MS = 1000,
	FENCED_MS = 50,
	STREAMS_MOST =
		256 /* with a connection kept for each beside those of requests: else requests close and open theirs all the time */
};

struct exchange {
	struct exchange *next;
	struct kube_client *client;
	const char *method, *type;
	char *url;
	struct buf body, answer;
	size_t read; /* of `answer`: lines told */
	bool once, late, stopped, too_large, frees;
	bool renewed; /* it was refused with what a program gave, and the program is run again for it */
	bool held; /* its time was over before its bytes left */
	kube_done *done;
	kube_judge *judge;
	bool (*wanted)(void *context);
	kube_line *line;
	void *context;
	void (*timer)(void *context); /* instead of a request */
	int64_t due_ms; /* boot clock: not before */
	int64_t pause_ms;
	CURL *curl;
	uint64_t serial; /* of the credential that it was sent with */
	struct curl_slist *headers;
	char problem[CURL_ERROR_SIZE];
};

/* Requests that may be in flight at once. */
struct window {
	uint32_t in_flight, max, top;
	uint32_t answered; /* since max changed */
};

struct kube_client {
	const struct kube_access *access;
	pthread_t thread;
	CURLM *multi;

	pthread_mutex_t lock;
	struct exchange *given, **given_end; /* under the lock: not yet taken by the thread */
	bool ending; /* under the lock */
	char trouble[256],
		lacking[256]; /* under the lock; lacking: the right that was missed last */
	struct kube_figures figures; /* under the lock */

	/* the thread's */
	struct exchange *ready, **ready_end; /* may be sent */
	struct exchange *late, **late_end; /* likewise, when others leave room */
	struct exchange *streams; /* likewise, at once */
	struct exchange *paused; /* by due_ms */
	struct exchange *flying;
	CURL *spare[KUBE_FLIGHT_MAX]; /* handles not in use: they keep their settings */
	uint32_t spare_count;
	struct window usual, gives_way;
	bool (*may_send)(void *context); /* NULL = always */
	void *may_send_context;
	struct rights rights;
	void (*granted)(void *context); /* a right came that was lacking */
	void *granted_context;
	struct arena token_arena;
	const char *token;
	int64_t token_ms;
	struct credential *credential; /* from a program; NULL = the access says it all */
	struct credential_text *given_text; /* what it gave, of this serial; 0 = nothing yet */
	uint64_t serial;
	uint64_t random;
};

static const char client_closed[] = "the engine was closed";

bool kube_is_end(const struct kube_answer *answer)
{
	return answer->status == 0 && answer->problem == client_closed;
}

/* --- lists ------------------------------------------------------------------------------------------------- */

static void put_last(struct exchange ***end, struct exchange *x)
{
	x->next = NULL;
	**end = x;
	*end = &x->next;
}

static struct exchange *take_first(struct exchange **list, struct exchange ***end)
{
	struct exchange *x = *list;

	*list = x->next;
	if (!*list)
		*end = list;
	return x;
}

static struct window *window_of(struct kube_client *client, const struct exchange *x)
{
	return x->late ? &client->gives_way : &client->usual;
}

static void pause_until(struct kube_client *client, struct exchange *x, int64_t due_ms)
{
	struct exchange **at = &client->paused;

	x->due_ms = due_ms;
	while (*at && (*at)->due_ms <= due_ms)
		at = &(*at)->next;
	x->next = *at;
	*at = x;
}

static void exchange_destroy(struct exchange *x)
{
	if (x->frees)
		free(x->context);
	free(x->url);
	buf_deinit(&x->body);
	buf_deinit(&x->answer);
	free(x);
}

/* xorshift: for pauses only. */
static int64_t random_below(struct kube_client *client, int64_t limit)
{
	client->random ^= client->random << 13;
	client->random ^= client->random >> 7;
	client->random ^= client->random << 17;
	return limit > 0 ? (int64_t)(client->random % (uint64_t)limit) : 0;
}

/* --- what is sent -------------------------------------------------------------------------------------------- */

static void read_token(struct kube_client *client)
{
	struct err err = { 0 };
	const char *path = client->access->token_file, *token = NULL;

	if (!path || (client->token && clock_boot_ms() - client->token_ms < TOKEN_EVERY_MS))
		return;
	arena_reset(&client->token_arena);
	client->token = NULL;
	client->token_ms = clock_boot_ms();
	if (access_token(path, &client->token_arena, &token, &err) < 0)
		log_line(LOG_WARN, "Kubernetes: %s", err.text);
	client->token = token;
}

static size_t take_bytes(char *data, size_t one, size_t size, void *context)
{
	struct exchange *x = context;
	size_t bytes = one * size, most = x->line ? KUBE_LINE_MAX : KUBE_ANSWER_MAX;
	long status = 0;
	char *end;

	if (x->answer.size - x->read + bytes > most) {
		x->too_large = true;
		return 0;
	}
	buf_add(&x->answer, data, bytes);
	curl_easy_getinfo(x->curl, CURLINFO_RESPONSE_CODE, &status);
	if (!x->line || status != 200)
		return bytes;
	while ((end = memchr(x->answer.data + x->read, '\n', x->answer.size - x->read))) {
		const char *from = x->answer.data + x->read;

		x->read = (size_t)(end + 1 - x->answer.data);
		if (end > from && !x->line(x->context, from, (size_t)(end - from))) {
			x->stopped = true;
			return 0;
		}
	}
	if (x->read == x->answer.size) {
		buf_clear(&x->answer);
		x->read = 0;
	} else if (x->read > (1 << 20)) {
		memmove(x->answer.data, x->answer.data + x->read, x->answer.size - x->read);
		x->answer.size -= x->read;
		x->read = 0;
	}
	return bytes;
}

static struct curl_blob blob_of(struct access_bytes bytes)
{
	return (struct curl_blob){ .data = (void *)(uintptr_t)bytes.data,
				   .len = bytes.size,
				   .flags = CURL_BLOB_NOCOPY };
}

static struct access_bytes text_bytes(const char *text)
{
	return (struct access_bytes){ text, strlen(text) };
}

/* What is the same for all requests. */
static CURL *make_handle(struct kube_client *client)
{
	const struct kube_access *access = client->access;
	struct curl_blob authority = blob_of(access->authority),
			 certificate = blob_of(access->certificate), key = blob_of(access->key);
	CURL *curl = curl_easy_init();

	CHECK(curl);
	if (client->credential) { /* another one may come while this handle is in use */
		certificate = blob_of(text_bytes(client->given_text->certificate));
		key = blob_of(text_bytes(client->given_text->key));
		certificate.flags = key.flags = CURL_BLOB_COPY;
	}
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	if (client->may_send)
		wake_add(curl);
	curl_easy_setopt(curl, CURLOPT_PROXY, "");
	curl_easy_setopt(curl, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
	curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(curl, CURLOPT_USERAGENT, "fairlead/" FAIRLEAD_VERSION);
	curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
	curl_easy_setopt(curl, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_bytes);
	if (authority.len)
		curl_easy_setopt(curl, CURLOPT_CAINFO_BLOB, &authority);
	if (certificate.len) {
		curl_easy_setopt(curl, CURLOPT_SSLCERT_BLOB, &certificate);
		curl_easy_setopt(curl, CURLOPT_SSLKEY_BLOB, &key);
	}
	if (access->insecure) {
		curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 0L);
		curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 0L);
	}
	return curl;
}

static void add_header(struct exchange *x, const char *text)
{
	x->headers = curl_slist_append(x->headers, text);
	CHECK(x->headers);
}

static void add_headers(struct exchange *x)
{
	const struct kube_access *access = x->client->access;
	const char *token = access->token_file ? x->client->token : access->token;
	const struct credential_text *given = x->client->given_text;
	AUTO_BUF text = BUF_INIT;

	add_header(x, "Expect:");
	add_header(x, "Accept: application/json");
	if (x->body.size) {
		buf_addf(&text, "Content-Type: %s", x->type ? x->type : "application/json");
		add_header(x, buf_text(&text));
		buf_clear(&text);
	}
	if (given && given->token[0])
		token = given->token;
	if (token) {
		buf_addf(&text, "Authorization: Bearer %s", token);
		add_header(x, buf_text(&text));
	}
}

static bool is_fenced(const struct kube_client *client)
{
	return client->may_send && !client->may_send(client->may_send_context);
}

/* The connection stands, and the request goes out now: this process may have been stopped since it was handed over. */
static int before_request(void *context, char *there, char *here, int there_port, int here_port)
{
	struct exchange *x = context;

	(void)there;
	(void)here;
	(void)there_port;
	(void)here_port;
	x->held = !x->line && is_fenced(x->client);
	if (!x->held && x->client->may_send && strcmp(x->method, "GET") != 0)
		(void)FAILPOINT("kubernetes-write");
	return x->held ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK;
}

static void send_now(struct kube_client *client, struct exchange *x)
{
	CURL *curl =
		client->spare_count ? client->spare[--client->spare_count] : make_handle(client);

	read_token(client);
	add_headers(x);
	buf_clear(&x->answer);
	x->read = 0;
	x->held = false;
	x->problem[0] = '\0';
	x->curl = curl;
	x->serial = client->serial;
	curl_easy_setopt(curl, CURLOPT_URL, x->url);
	curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, x->method);
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, x->headers);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, x);
	curl_easy_setopt(curl, CURLOPT_PRIVATE, x);
	curl_easy_setopt(curl, CURLOPT_PREREQFUNCTION, before_request);
	curl_easy_setopt(curl, CURLOPT_PREREQDATA, x);
	curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, x->problem);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, x->line ? 0L : (long)ANSWER_MS);
	curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, x->line ? 1L : 0L);
	curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, x->line ? (long)SILENCE_S : 0L);
	if (x->body.size) {
		curl_easy_setopt(curl, CURLOPT_POST, 1L);
		curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)x->body.size);
		curl_easy_setopt(curl, CURLOPT_POSTFIELDS, x->body.data);
	} else {
		curl_easy_setopt(curl, CURLOPT_HTTPGET, 1L);
	}
	curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, x->method);
	x->next = client->flying;
	client->flying = x;
	window_of(client, x)->in_flight += !x->line;
	pthread_mutex_lock(&client->lock);
	client->figures.sent++;
	pthread_mutex_unlock(&client->lock);
	CHECK(curl_multi_add_handle(client->multi, curl) == CURLM_OK);
}

/* --- what came back ---------------------------------------------------------------------------------------------- */

static void unfly(struct kube_client *client, struct exchange *x)
{
	struct exchange **at = &client->flying;

	while (*at != x)
		at = &(*at)->next;
	*at = x->next;
	window_of(client, x)->in_flight -= !x->line;
	curl_multi_remove_handle(client->multi, x->curl);
	if (client->spare_count < KUBE_FLIGHT_MAX && x->serial == client->serial)
		client->spare[client->spare_count++] = x->curl;
	else
		curl_easy_cleanup(x->curl);
	curl_slist_free_all(x->headers);
	x->headers = NULL;
	x->curl = NULL;
}

static struct kube_answer answer_of(struct exchange *x, long status, const char *problem)
{
	return (struct kube_answer){ .status = (int)status,
				     .body = buf_text(&x->answer) + x->read,
				     .size = x->answer.size - x->read,
				     .problem = problem,
				     .too_large = x->too_large };
}

static void tell(struct exchange *x, long status, const char *problem)
{
	const struct kube_answer answer = answer_of(x, status, problem);

	if (x->done)
		x->done(x->context, &answer);
	exchange_destroy(x);
}

bool kube_is_passing(int status)
{
	return status == 0 || status == 401 || status == 408 || status == 429 || status == 500 ||
	       status == 502 || status == 503 || status == 504;
}

/* Fewer at once after a 429, more again where none comes. */
static void pace(struct window *window, long status)
{
	if (status == 429) {
		window->max = window->max > 2 ? window->max / 2 : 1;
		window->answered = 0;
	} else if (++window->answered >= window->max && window->max < window->top) {
		window->max++;
		window->answered = 0;
	}
}

/* Said once when it begins and once when it is over. */
static void note_trouble(struct kube_client *client, const char *text)
{
	pthread_mutex_lock(&client->lock);
	bool before = client->trouble[0] != '\0', now = *text != '\0';
	snprintf(client->trouble, sizeof(client->trouble), "%.255s", text);
	pthread_mutex_unlock(&client->lock);
	if (now && !before)
		log_line(LOG_WARN, "the Kubernetes API server at %s: %s", client->access->server,
			 text);
	else if (before && !now)
		log_line(LOG_INFO, "the Kubernetes API server at %s answers again",
			 client->access->server);
}

static void again(struct kube_client *client, struct exchange *x, long status, curl_off_t after_s)
{
	int64_t pause_ms = x->pause_ms + random_below(client, x->pause_ms);

	if (after_s > 0 && after_s * 1000 > pause_ms)
		pause_ms = after_s * 1000 + random_below(client, 200);
	x->pause_ms = x->pause_ms * 2 > KUBE_PAUSE_MAX_MS ? KUBE_PAUSE_MAX_MS : x->pause_ms * 2;
	pthread_mutex_lock(&client->lock);
	client->figures.repeated++;
	client->figures.slowed += status == 429;
	pthread_mutex_unlock(&client->lock);
	pause_until(client, x, clock_boot_ms() + pause_ms);
}

static void note_right(struct kube_client *client, struct exchange *x, long status)
{
	const struct kube_answer answer = answer_of(x, status, "");
	const char *path = x->url + strlen(client->access->server);
	enum rights_change change = rights_note(&client->rights, x->method, path, &answer);
	struct kube_refusal refusal;

	if (change == RIGHTS_SAME)
		return;
	refusal_read(&answer, &refusal);
	pthread_mutex_lock(&client->lock);
	if (change == RIGHTS_LACKS)
		snprintf(client->lacking, sizeof(client->lacking),
			 "%.200s (docs/kubernetes.md, Rights)", refusal.text);
	else if (!client->rights.count)
		client->lacking[0] = '\0';
	pthread_mutex_unlock(&client->lock);
	if (change == RIGHTS_GRANTED && client->granted)
		client->granted(client->granted_context);
}

static bool is_sent_again(struct exchange *x, long status, const char *problem)
{
	enum kube_next next = KUBE_USUAL;

	if (status == 401 && x->client->credential && !x->line && !x->renewed)
		return (x->renewed = true); /* it was not carried out */
	if (x->line || x->once || x->too_large)
		return false;
	if (x->judge && status) {
		const struct kube_answer answer = answer_of(x, status, problem);

		next = x->judge(x->context, &answer);
	}
	return next == KUBE_AGAIN || (next == KUBE_USUAL && kube_is_passing((int)status));
}

static void finished(struct kube_client *client, struct exchange *x, CURLcode code)
{
	curl_off_t after_s = 0;
	char problem[CURL_ERROR_SIZE + 64] = "";
	long status = 0;
	bool repeat;

	curl_easy_getinfo(x->curl, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_getinfo(x->curl, CURLINFO_RETRY_AFTER, &after_s);
	if (x->too_large)
		snprintf(problem, sizeof(problem), "an answer is larger than its limit of %d MiB",
			 (x->line ? KUBE_LINE_MAX : KUBE_ANSWER_MAX) >> 20);
	else if (code != CURLE_OK && !x->stopped)
		snprintf(problem, sizeof(problem), "%.*s", CURL_ERROR_SIZE,
			 x->problem[0] ? x->problem : curl_easy_strerror(code));
	else if (status == 401)
		snprintf(problem, sizeof(problem), "it does not know this account (401)");
	if (code != CURLE_OK && !x->line)
		status = 0;
	unfly(client, x);
	repeat = is_sent_again(x, status, problem);
	/* A 429 that whoever asked takes for an answer (that of a disruption budget) says nothing of the server's load. */
	if (!x->line && !x->held)
		pace(window_of(client, x), status == 429 && x->judge && !repeat ? 200 : status);
	if (status == 401)
		client->token_ms = -TOKEN_EVERY_MS; /* it may have been renewed meanwhile */
	if (status == 401 && client->credential)
		credential_refused(client->credential, x->serial);
	if (!x->held && !x->too_large && (!x->line || status != 200))
		note_trouble(client, status == 0 || status == 401 ? problem : "");
	note_right(client, x, status);
	if (repeat)
		again(client, x, status, after_s);
	else
		tell(x, status, problem);
}

/* --- the thread ------------------------------------------------------------------------------------------------------- */

static void make_ready(struct kube_client *client, struct exchange *x)
{
	if (!x->line) {
		put_last(x->late ? &client->late_end : &client->ready_end, x);
		return;
	}
	x->next = client->streams;
	client->streams = x;
}

/* False at the end. */
static bool take_given(struct kube_client *client)
{
	struct exchange *x, *next;
	bool ending;

	pthread_mutex_lock(&client->lock);
	x = client->given;
	client->given = NULL;
	client->given_end = &client->given;
	ending = client->ending;
	pthread_mutex_unlock(&client->lock);
	for (; x; x = next) {
		next = x->next;
		if (x->due_ms)
			pause_until(client, x, x->due_ms);
		else
			make_ready(client, x);
	}
	return !ending;
}

static void wake_paused(struct kube_client *client)
{
	int64_t now_ms = clock_boot_ms();

	while (client->paused && client->paused->due_ms <= now_ms) {
		struct exchange *x = client->paused;

		client->paused = x->next;
		if (x->timer) {
			x->timer(x->context);
			exchange_destroy(x);
		} else {
			make_ready(client, x);
		}
	}
}

/* --- credentials that a program gives ----------------------------------------------------------------------------------- */

static void without_credential(struct kube_client *client, struct exchange *x, const char *problem)
{
	note_trouble(client, problem);
	buf_clear(&x->answer);
	x->read = 0;
	if (is_sent_again(x, 0, problem))
		again(client, x, 0, 0);
	else
		tell(x, 0, problem);
}

/* Where there is none, and none comes at present, what is to be sent has got no answer. */
static bool has_credential(struct kube_client *client)
{
	uint64_t before = client->serial;
	char problem[256];
	struct exchange *x;

	if (!client->credential)
		return true;
	switch (credential_now(client->credential, &client->serial, client->given_text, problem)) {
	case CREDENTIAL_COMES: return false;
	case CREDENTIAL_IS:
		while (client->serial != before && client->spare_count)
			curl_easy_cleanup(client->spare[--client->spare_count]);
		return true;
	case CREDENTIAL_FAILS: break;
	}
	while ((x = client->streams)) {
		client->streams = x->next;
		without_credential(client, x, problem);
	}
	while (client->ready)
		without_credential(client, take_first(&client->ready, &client->ready_end), problem);
	while (client->late)
		without_credential(client, take_first(&client->late, &client->late_end), problem);
	return false;
}

/* --- the thread, further ------------------------------------------------------------------------------------------------ */

static bool usual_may_go(const struct kube_client *client)
{
	return client->ready && client->usual.in_flight < client->usual.max;
}

/* While others are under way one at a time goes beside them, so that nobody waits for ever to be told. */
static bool late_may_go(const struct kube_client *client)
{
	uint32_t most = client->ready || client->usual.in_flight ? 1 : client->gives_way.max;

	return client->late && client->gives_way.in_flight < most;
}

static void send_ready(struct kube_client *client)
{
	struct exchange *x;

	if (!client->streams && !client->ready && !client->late)
		return;
	if (!has_credential(client))
		return;
	while ((x = client->streams)) {
		client->streams = x->next;
		send_now(client, x);
	}
	while (usual_may_go(client) && !is_fenced(client))
		send_now(client, take_first(&client->ready, &client->ready_end));
	while (late_may_go(client) && !is_fenced(client)) {
		x = take_first(&client->late, &client->late_end);
		if (!x->wanted || x->wanted(x->context))
			send_now(client, x);
		else
			tell(x, 0, "it is not wanted any more");
	}
}

static void take_answers(struct kube_client *client)
{
	CURLMsg *message;
	int left;

	while ((message = curl_multi_info_read(client->multi, &left))) {
		struct exchange *x = NULL;
		CURLcode code = message->data.result;

		if (message->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&x);
		finished(client, x, code);
	}
}

static bool is_given(struct kube_client *client)
{
	pthread_mutex_lock(&client->lock);
	bool given = client->given != NULL;
	pthread_mutex_unlock(&client->lock);
	return given;
}

static void end_all(struct exchange *x)
{
	for (struct exchange *next; x; x = next) {
		next = x->next;
		if (x->timer)
			exchange_destroy(x);
		else
			tell(x, 0, client_closed);
	}
}

static void *client_main(void *argument)
{
	struct kube_client *client = argument;
	bool watches = false;
	int running, wait_ms;

	while (take_given(client)) {
		if (client->may_send && !watches) {
			wake_watch();
			watches = true;
		}
		wake_paused(client);
		send_ready(client);
		(void)curl_multi_perform(client->multi, &running);
		take_answers(client);
		if (is_given(client))
			continue;
		wait_ms = IDLE_MS;
		if (client->paused) {
			int64_t left_ms = client->paused->due_ms - clock_boot_ms();
			wait_ms = left_ms < 0 ? 0 : left_ms < IDLE_MS ? (int)left_ms : IDLE_MS;
		}
		if (client->streams) /* they wait for a credential, whose coming wakes */
			wait_ms = wait_ms < FENCED_MS ? wait_ms : FENCED_MS;
		else if (usual_may_go(client) || late_may_go(client))
			wait_ms = client->credential || is_fenced(client) ? FENCED_MS : 0;
		(void)curl_multi_poll(client->multi, NULL, 0, wait_ms, NULL);
	}
	while (client->flying) {
		struct exchange *x = client->flying;
		unfly(client, x);
		tell(x, 0, client_closed);
	}
	end_all(client->streams);
	end_all(client->ready);
	end_all(client->late);
	end_all(client->paused);
	return NULL;
}

/* --- words in paths ----------------------------------------------------------------------------------------------- */

static bool is_unreserved(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '_' || c == '.' || c == '~';
}

void kube_add_escaped(struct buf *out, const char *text)
{
	for (; *text; text++) {
		if (is_unreserved(*text))
			buf_addc(out, *text);
		else
			buf_addf(out, "%%%02X", (unsigned char)*text);
	}
}

/* --- from outside --------------------------------------------------------------------------------------------------- */

static void give(struct kube_client *client, struct exchange *x)
{
	pthread_mutex_lock(&client->lock);
	bool first = !client->given;
	put_last(&client->given_end, x);
	pthread_mutex_unlock(&client->lock);
	/* Its own thread looks before it waits; and what is taken is taken whole. */
	if (first && !pthread_equal(pthread_self(), client->thread))
		(void)curl_multi_wakeup(client->multi);
}

static struct exchange *exchange_create(struct kube_client *client, void *context)
{
	struct exchange *x = calloc(1, sizeof(*x));

	CHECK(x);
	x->client = client;
	x->context = context;
	x->pause_ms = KUBE_PAUSE_MS;
	return x;
}

void kube_call(struct kube_client *client, const struct kube_request *request)
{
	struct exchange *x = exchange_create(client, request->context);
	AUTO_BUF url = BUF_INIT;

	buf_addf(&url, "%s%s", client->access->server, request->path);
	x->url = buf_take(&url);
	x->method = request->method;
	x->type = request->type;
	x->once = request->once;
	x->judge = request->judge;
	x->late = request->late;
	x->wanted = request->wanted;
	x->done = request->done;
	x->line = request->line;
	if (request->body) {
		x->body = *request->body;
		*request->body = BUF_INIT;
	}
	give(client, x);
}

static void later(struct kube_client *client, int64_t in_ms, void (*fn)(void *context),
		  void *context, bool frees)
{
	struct exchange *x = exchange_create(client, context);

	x->timer = fn;
	x->due_ms = clock_boot_ms() + in_ms;
	x->frees = frees;
	give(client, x);
}

void kube_later(struct kube_client *client, int64_t in_ms, void (*fn)(void *context), void *context)
{
	later(client, in_ms, fn, context, false);
}

void kube_later_free(struct kube_client *client, int64_t in_ms, void (*fn)(void *context),
		     void *context)
{
	later(client, in_ms, fn, context, true);
}

void kube_client_fence(struct kube_client *client, bool (*may_send)(void *context), void *context)
{
	client->may_send = may_send;
	client->may_send_context = context;
}

void kube_client_rights(struct kube_client *client, void (*granted)(void *context), void *context)
{
	client->granted = granted;
	client->granted_context = context;
}

void kube_client_figures(struct kube_client *client, struct kube_figures *ret)
{
	pthread_mutex_lock(&client->lock);
	*ret = client->figures;
	pthread_mutex_unlock(&client->lock);
}

void kube_client_problem(struct kube_client *client, char out[256])
{
	pthread_mutex_lock(&client->lock);
	memcpy(out, client->trouble[0] ? client->trouble : client->lacking,
	       sizeof(client->trouble));
	pthread_mutex_unlock(&client->lock);
}

static void client_free(struct kube_client *client)
{
	curl_multi_cleanup(client->multi);
	arena_deinit(&client->token_arena);
	pthread_mutex_destroy(&client->lock);
	if (client->given_text)
		explicit_bzero(client->given_text, sizeof(*client->given_text));
	free(client->given_text);
	free(client);
}

static void credential_changed(void *context)
{
	struct kube_client *client = context;

	(void)curl_multi_wakeup(client->multi);
}

int kube_client_create(const struct kube_access *access, struct kube_client **ret, struct err *err)
{
	struct kube_client *client;

	if (curl_global_init(CURL_GLOBAL_DEFAULT) != 0)
		return err_set(err, ERR_INTERNAL, "libcurl can't be started");
	client = calloc(1, sizeof(*client));
	CHECK(client);
	client->access = access;
	client->usual.max = client->usual.top = KUBE_FLIGHT_MAX;
	client->gives_way.max = client->gives_way.top = KUBE_LATE_MAX;
	client->given_end = &client->given;
	client->ready_end = &client->ready;
	client->late_end = &client->late;
	client->token_ms = -TOKEN_EVERY_MS;
	arena_init(&client->token_arena, 8 << 20);
	if (getrandom(&client->random, sizeof(client->random), 0) < 0 || !client->random)
		client->random = (uint64_t)clock_mono_ns() | 1;
	client->multi = curl_multi_init();
	CHECK(client->multi);
	curl_multi_setopt(client->multi, CURLMOPT_MAXCONNECTS,
			  (long)KUBE_FLIGHT_MAX + STREAMS_MOST);
	pthread_mutex_init(&client->lock, NULL);
	if (access->exec) {
		int rc = credential_create(access->exec, credential_changed, client,
					   &client->credential, err);
		if (rc < 0) {
			client_free(client);
			return rc;
		}
		client->given_text = calloc(1, sizeof(*client->given_text));
		CHECK(client->given_text);
	}
	thread_start(&client->thread, client_main, client);
	*ret = client;
	return 0;
}

void kube_client_destroy(struct kube_client *client)
{
	if (!client)
		return;
	pthread_mutex_lock(&client->lock);
	client->ending = true;
	pthread_mutex_unlock(&client->lock);
	(void)curl_multi_wakeup(client->multi);
	pthread_join(client->thread, NULL);
	credential_destroy(client->credential); /* it wakes the client: before that goes */
	end_all(client->given);
	for (uint32_t i = 0; i < client->spare_count; i++)
		curl_easy_cleanup(client->spare[i]);
	client_free(client);
}
