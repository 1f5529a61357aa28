/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/client.h"

#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"

enum { ANSWER_MAX = 256 << 20, AGAIN_TIMES = 5, AGAIN_MOST_S = 10 };

struct client {
	struct arena *arena;
	CURL *curl; /* for calls, one after the other: keeps its connection */
	CURLM *multi; /* for streams; NULL until the first */
	const char *socket; /* NULL = TCP */
	const char *base; /* "http://localhost" or "http://host:port" */
	const char *where;
	char *authorization; /* "Authorization: Bearer ..." or NULL */
};

/* Ctrl-C */

static volatile sig_atomic_t was_interrupted;
static int wake_pipe[2] = { -1, -1 };

static void on_interrupt(int number)
{
	int saved = errno;

	(void)number;
	was_interrupted = 1;
	if (write(wake_pipe[1], "", 1) < 0) {
		/* the pipe is full: it is awake */
	}
	errno = saved;
}

void interrupt_watch(void)
{
	struct sigaction action = { .sa_handler = on_interrupt };

	if (wake_pipe[0] >= 0)
		return;
	if (pipe2(wake_pipe, O_CLOEXEC | O_NONBLOCK) < 0)
		return;
	sigemptyset(&action.sa_mask);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

bool interrupted(void)
{
	return was_interrupted;
}

bool interruptible_sleep(int ms)
{
	int64_t until = clock_mono_ns() / 1000000 + ms;
	struct pollfd fd = { .fd = wake_pipe[0], .events = POLLIN };

	while (!was_interrupted) {
		int64_t left = until - clock_mono_ns() / 1000000;

		if (left <= 0)
			break;
		poll(&fd, 1, (int)left);
	}
	return !was_interrupted;
}

/* Which daemon */

static const char *first_text(const char *a, const char *b, const char *c)
{
	if (a && a[0])
		return a;
	if (b && b[0])
		return b;
	return c && c[0] ? c : NULL;
}

static const char *absolute(struct arena *arena, const char *path)
{
	char folder[4096];

	if (path[0] == '/' || !getcwd(folder, sizeof(folder)))
		return path;
	return arena_printf(arena, "%s/%s", folder, path);
}

static const char *own_folder(struct arena *arena)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");

	if (geteuid() == 0)
		return "/var/lib/fairlead";
	if (state && state[0] == '/')
		return arena_printf(arena, "%s/fairlead", state);
	return arena_printf(arena, "%s/.local/state/fairlead", home && home[0] ? home : "/tmp");
}

static const char *said_folder(const struct invocation *in)
{
	return first_text(arg_flag(in, "data"), in->global_data, getenv("FAIRLEAD_DATA"));
}

const char *client_data_folder(const struct invocation *in)
{
	const char *folder = said_folder(in);

	return folder ? absolute(in->arena, folder) : own_folder(in->arena);
}

int client_may_read_folder(const struct invocation *in, struct err *err)
{
	const char *folder = client_data_folder(in);

	if (access(arena_printf(in->arena, "%s/journal", folder), R_OK | X_OK) == 0 ||
	    errno != EACCES)
		return 0;
	return err_set(
		err, ERR_FORBIDDEN,
		"the data folder \"%.200s\" is closed to this account; its owner and root can do that",
		folder);
}

static bool is_socket(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0 && S_ISSOCK(status.st_mode);
}

/* The user's own daemon, or the machine's when there is only that. */
static const char *find_socket(const struct invocation *in)
{
	static const char machine[] = "/var/lib/fairlead/fairlead.sock";
	const char *own = arena_printf(in->arena, "%s/fairlead.sock", client_data_folder(in));

	return !said_folder(in) && !is_socket(own) && is_socket(machine) ? machine : own;
}

static int use_server(struct client *client, const char *server, struct err *err)
{
	const char *token = getenv("FAIRLEAD_TOKEN");
	size_t length;

	if (strncmp(server, "http://", 7) != 0 && strstr(server, "://"))
		return err_set(err, ERR_INVALID, "server \"%.100s\" must be http://HOST:PORT",
			       server);
	client->base =
		strstr(server, "://") ? server : arena_printf(client->arena, "http://%s", server);
	length = strlen(client->base);
	if (client->base[length - 1] == '/')
		client->base = arena_strndup(client->arena, client->base, length - 1);
	client->where = client->base;
	if (!token || !token[0])
		return err_set(
			err, ERR_UNAUTHENTICATED,
			"over TCP a token is needed; make one with `fairlead token create` on the daemon's machine "
			"and put it into FAIRLEAD_TOKEN");
	if (strlen(token) > 256 || token[strcspn(token, "\r\n")])
		return err_set(err, ERR_UNAUTHENTICATED, "what is in FAIRLEAD_TOKEN is no token");
	client->authorization = arena_printf(client->arena, "Authorization: Bearer %s", token);
	return 0;
}

int client_open(const struct invocation *in, struct client **ret, struct err *err)
{
	const char *server = first_text(arg_flag(in, "server"), in->global_server, NULL);
	struct client *client = arena_new(in->arena, struct client);
	bool folder_said = arg_has(in, "data") || in->global_data;
	int rc = 0;

	client->arena = in->arena;
	if (!server && !folder_said)
		server = first_text(getenv("FAIRLEAD_SERVER"), NULL, NULL);
	else if (server && folder_said)
		return err_set(err, ERR_INVALID,
			       "--data and --server name two daemons; leave one of them out");
	if (server) {
		rc = use_server(client, server, err);
	} else {
		client->socket = client->where = find_socket(in);
		client->base = "http://localhost";
		if (strlen(client->socket) >= sizeof(((struct sockaddr_un *)NULL)->sun_path))
			rc = err_set(
				err, ERR_INVALID,
				"the path of the socket, \"%.200s\", is too long for the system; use a shorter --data",
				client->socket);
	}
	if (rc < 0)
		return rc;
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != 0 || !(client->curl = curl_easy_init()))
		return err_set(err, ERR_INTERNAL, "libcurl can't be started");
	*ret = client;
	return 0;
}

bool client_is_here(const struct client *client)
{
	return client->socket;
}

void client_close(struct client *client)
{
	if (!client)
		return;
	curl_easy_cleanup(client->curl);
	if (client->multi)
		curl_multi_cleanup(client->multi);
	client->curl = NULL;
	client->multi = NULL;
}

void client_cleanup(struct client **client)
{
	client_close(*client);
}

const char *client_where(const struct client *client)
{
	return client->where;
}

/* Calls */

static size_t keep(char *data, size_t one, size_t count, void *context)
{
	struct buf *answer = context;

	if (answer->size + count > ANSWER_MAX)
		return 0;
	buf_add(answer, data, one * count);
	return count;
}

/* What every request has. */
static void prepare(const struct client *client, CURL *curl, const char *url,
		    struct curl_slist *headers)
{
	curl_easy_reset(curl);
	if (client->socket)
		curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, client->socket);
	curl_easy_setopt(curl, CURLOPT_URL, url);
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_PROXY, "");
	curl_easy_setopt(curl, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
	curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http");
	curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, 5000L);
	curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(curl, CURLOPT_USERAGENT, "fairlead/" FAIRLEAD_VERSION);
}

static struct curl_slist *add_header(struct curl_slist *list, const char *text)
{
	list = curl_slist_append(list, text);
	CHECK(list != NULL);
	return list;
}

static struct curl_slist *make_headers(const struct client *client, const struct call *call)
{
	struct curl_slist *list = add_header(NULL, "Expect:");

	if (client->authorization)
		list = add_header(list, client->authorization);
	if (call->body)
		list = add_header(list, arena_printf(client->arena, "Content-Type: %s",
						     call->content_type ? call->content_type
									: "application/json"));
	else if (strcmp(call->method, "GET") != 0)
		list = add_header(list, "Content-Type: application/json");
	for (const char *const *header = call->headers; header && *header; header++)
		list = add_header(list, *header);
	return list;
}

/* Why libcurl could not do it, in our words. */
static int curl_problem(const struct client *client, CURLcode code, long os_error, struct err *err)
{
	if (code == CURLE_OPERATION_TIMEDOUT)
		return err_set(err, ERR_TIMEOUT, "the daemon at %s did not answer in time",
			       client->where);
	if (code == CURLE_WRITE_ERROR)
		return err_set(err, ERR_TOO_LARGE, "the answer of the daemon at %s is too large",
			       client->where);
	if (code != CURLE_COULDNT_CONNECT && code != CURLE_COULDNT_RESOLVE_HOST)
		return err_set(err, ERR_UNREACHABLE,
			       "the daemon at %s broke the connection; is it restarting?",
			       client->where);
	if (!client->socket)
		return err_set(err, ERR_UNREACHABLE, "no daemon answers at %s", client->where);
	if (os_error == EACCES || os_error == EPERM)
		return err_set(
			err, ERR_FORBIDDEN,
			"this account may not reach the daemon's socket %s: permission denied",
			client->where);
	return err_set(
		err, ERR_UNREACHABLE,
		"no daemon answers at %s; start one with `fairlead up`, or name its folder with --data",
		client->where);
}

/* {"error":{"code","message","file","line","column"}} */
static int daemon_error(long status, const struct buf *answer, struct err *err)
{
	json_t *root = json_loadb(buf_text(answer), answer->size, 0, NULL);
	const json_t *error = json_object_get(root, "error");
	const char *code = json_string_value(json_object_get(error, "code")),
		   *message = json_string_value(json_object_get(error, "message"));
	const char *file = json_string_value(json_object_get(error, "file"));
	int rc;

	if (code && message)
		rc = err_at(err, err_code_find(code), file ? file : "",
			    (int)json_integer_value(json_object_get(error, "line")),
			    (int)json_integer_value(json_object_get(error, "column")), "%s",
			    message);
	else
		rc = err_set(err, status == 404 ? ERR_NOT_FOUND : ERR_INTERNAL,
			     "the daemon answered with HTTP status %ld and no explanation", status);
	json_decref(root);
	return rc;
}

/* again_s: -1, or how long the daemon asks to be left alone first. */
static int perform_once(struct client *client, const struct call *call, struct buf *answer,
			curl_off_t *again_s, struct err *err)
{
	struct curl_slist *headers = make_headers(client, call);
	const char *url = arena_printf(client->arena, "%s%s", client->base, call->path);
	long status = 0, os_error = 0;
	CURLcode code;

	prepare(client, client->curl, url, headers);
	curl_easy_setopt(client->curl, CURLOPT_WRITEFUNCTION, keep);
	curl_easy_setopt(client->curl, CURLOPT_WRITEDATA, answer);
	curl_easy_setopt(client->curl, CURLOPT_TIMEOUT_MS, 120000L);
	if (call->body || strcmp(call->method, "POST") == 0 || strcmp(call->method, "PUT") == 0) {
		curl_easy_setopt(client->curl, CURLOPT_POSTFIELDSIZE_LARGE,
				 (curl_off_t)call->body_size);
		curl_easy_setopt(client->curl, CURLOPT_POSTFIELDS, call->body ? call->body : "");
	}
	if (strcmp(call->method, "GET") != 0)
		curl_easy_setopt(client->curl, CURLOPT_CUSTOMREQUEST, call->method);
	code = curl_easy_perform(client->curl);
	curl_easy_getinfo(client->curl, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_getinfo(client->curl, CURLINFO_OS_ERRNO, &os_error);
	*again_s = -1;
	if (code == CURLE_OK && status == 429)
		curl_easy_getinfo(client->curl, CURLINFO_RETRY_AFTER, again_s);
	curl_slist_free_all(headers);
	if (code != CURLE_OK)
		return curl_problem(client, code, os_error, err);
	return status >= 300 ? daemon_error(status, answer, err) : 0;
}

/* One too many of this user's expensive requests (429) is asked again when the daemon says so, a few times. */
static int perform(struct client *client, const struct call *call, struct buf *answer,
		   struct err *err)
{
	curl_off_t again_s;
	int rc = perform_once(client, call, answer, &again_s, err);

	for (int i = 0; i < AGAIN_TIMES && rc < 0 && again_s >= 0; i++) {
		if (!interruptible_sleep(1000 *
					 (int)(again_s < AGAIN_MOST_S ? again_s : AGAIN_MOST_S)))
			break;
		buf_deinit(answer);
		memset(err, 0, sizeof(*err));
		rc = perform_once(client, call, answer, &again_s, err);
	}
	return rc;
}

int client_call(struct client *client, const struct call *call, json_t **ret, struct err *err)
{
	AUTO_BUF answer = BUF_INIT;
	json_error_t why;
	json_t *root = NULL;
	int rc = perform(client, call, &answer, err);

	if (rc < 0)
		return rc;
	if (answer.size) {
		root = json_loadb(answer.data, answer.size, JSON_DECODE_ANY, &why);
		if (!root)
			return err_set(
				err, ERR_INTERNAL,
				"what answers at %s is not a Fairlead daemon: its answer is no JSON",
				client->where);
	}
	if (ret)
		*ret = root;
	else
		json_decref(root);
	return 0;
}

int client_get(struct client *client, const char *path, json_t **ret, struct err *err)
{
	return client_call(client, &(struct call){ .method = "GET", .path = path }, ret, err);
}

int client_send(struct client *client, const char *method, const char *path, const json_t *body,
		json_t **ret, struct err *err)
{
	char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
	int rc;

	CHECK(!body || text);
	rc = client_call(client,
			 &(struct call){ .method = method,
					 .path = path,
					 .body = text,
					 .body_size = text ? strlen(text) : 0 },
			 ret, err);
	free(text);
	return rc;
}

int client_text(struct client *client, const char *path, struct buf *ret, struct err *err)
{
	return perform(client, &(struct call){ .method = "GET", .path = path }, ret, err);
}

/* Streams */

static size_t stream_data(char *data, size_t one, size_t count, void *context)
{
	struct stream *stream = context;
	long status = 0;

	curl_easy_getinfo((CURL *)stream->handle, CURLINFO_RESPONSE_CODE, &status);
	if (status >= 300)
		return keep(data, one, count, &stream->answer);
	return stream->take(stream->context, data, one * count) ? count : 0;
}

int client_stream_begin(struct client *client, struct stream *stream, struct err *err)
{
	struct call call = { .method = "GET" };
	const char *headers[2] = { NULL, NULL };
	struct curl_slist *list;
	CURL *curl = curl_easy_init();

	if (!client->multi)
		client->multi = curl_multi_init();
	if (!curl || !client->multi)
		return err_set(err, ERR_INTERNAL, "libcurl can't be started");
	if (stream->accept)
		headers[0] = arena_printf(client->arena, "Accept: %s", stream->accept);
	call.headers = headers;
	list = make_headers(client, &call);
	prepare(client, curl, arena_printf(client->arena, "%s%s", client->base, stream->path),
		list);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, stream_data);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, stream);
	curl_easy_setopt(curl, CURLOPT_PRIVATE, stream);
	stream->handle = curl;
	stream->headers = list;
	stream->over = false;
	stream->err = (struct err){ 0 };
	stream->answer = BUF_INIT;
	curl_multi_add_handle(client->multi, curl);
	return 0;
}

void client_stream_end(struct client *client, struct stream *stream)
{
	if (!stream->handle)
		return;
	curl_multi_remove_handle(client->multi, stream->handle);
	curl_easy_cleanup(stream->handle);
	curl_slist_free_all(stream->headers);
	buf_deinit(&stream->answer);
	stream->handle = NULL;
}

static void stream_done(const struct client *client, const CURLMsg *message, struct stream *stream)
{
	CURLcode code = message->data.result;
	long status = 0, os_error = 0;

	curl_easy_getinfo(message->easy_handle, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_getinfo(message->easy_handle, CURLINFO_OS_ERRNO, &os_error);
	stream->over = true;
	if (status >= 300)
		(void)daemon_error(status, &stream->answer, &stream->err);
	else if (code != CURLE_OK && code != CURLE_WRITE_ERROR) /* the latter: take had enough */
		(void)curl_problem(client, code, os_error, &stream->err);
}

void client_streams_wait(struct client *client, int wait_ms)
{
	struct curl_waitfd wake = { .fd = wake_pipe[0], .events = CURL_WAIT_POLLIN };
	int running = 0, left;
	CURLMsg *message;

	curl_multi_poll(client->multi, &wake, wake_pipe[0] >= 0, interrupted() ? 0 : wait_ms, NULL);
	curl_multi_perform(client->multi, &running);
	while ((message = curl_multi_info_read(client->multi, &left))) {
		struct stream *stream = NULL;

		if (message->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&stream);
		stream_done(client, message, stream);
	}
}

/* Paths */

static void add_encoded(struct buf *out, const char *text)
{
	for (const char *p = text; *p; p++) {
		bool plain = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
			     (*p >= '0' && *p <= '9') || *p == '-' || *p == '_' || *p == '.' ||
			     *p == '~';

		if (plain)
			buf_addc(out, *p);
		else
			buf_addf(out, "%%%02X", (unsigned int)(unsigned char)*p);
	}
}

const char *client_path(struct arena *arena, const char *format, ...)
{
	AUTO_BUF out = BUF_INIT;
	va_list args;

	va_start(args, format);
	for (const char *p = format; *p; p++) {
		if (*p != '%') {
			buf_addc(&out, *p);
			continue;
		}
		p++;
		CHECK(*p == 's' || *p == 'u');
		if (*p == 's')
			add_encoded(&out, va_arg(args, const char *));
		else
			buf_addu(&out, va_arg(args, unsigned int));
	}
	va_end(args);
	return arena_strdup(arena, buf_text(&out));
}

void query_add(struct buf *path, const char *name, const char *value)
{
	buf_addc(path, path->data && strchr(path->data, '?') ? '&' : '?');
	buf_adds(path, name);
	buf_addc(path, '=');
	add_encoded(path, value);
}
