/* SPDX-License-Identifier: Apache-2.0 */
/* Answers, and the check of where a request comes from. */
#include "api/http/http_internal.h"

#include <arpa/inet.h>
#include <string.h>
#include "base/check.h"
#include "base/clock.h"

static const struct {
	const char *name, *value;
} standard_headers[] = {
	{ "Cache-Control", "no-store" },
	{ "Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'" },
	{ "Cross-Origin-Resource-Policy", "same-origin" },
	{ "Referrer-Policy", "no-referrer" },
	{ "X-Content-Type-Options", "nosniff" },
	{ "X-Frame-Options", "DENY" },
};

static bool header_given(const struct http_request *r, const char *name)
{
	for (const struct header *h = r->headers; h; h = h->next)
		if (!strcasecmp(h->name, name))
			return true;
	return false;
}

void http_add_header(struct http_request *r, const char *name, const char *value)
{
	struct header *h = arena_new(&r->arena, struct header);

	CHECK(!strpbrk(value, "\r\n"));
	h->name = arena_strdup(&r->arena, name);
	h->value = arena_strdup(&r->arena, value);
	h->next = r->headers;
	r->headers = h;
}

void http_hold(struct http_request *r, _Atomic int64_t *counter, int64_t bytes)
{
	r->held = counter;
	r->held_bytes = bytes;
}

void answer_make(struct http_request *r)
{
	const size_t size = r->answer.size;

	if (!r->response)
		r->response = size ? MHD_create_response_from_buffer_with_free_callback(
					     size, buf_take(&r->answer), free)
				   : MHD_create_response_from_buffer(0, (void *)(uintptr_t)"",
								     MHD_RESPMEM_PERSISTENT);
	CHECK(r->response);
	if (r->content_type)
		MHD_add_response_header(r->response, "Content-Type", r->content_type);
	for (const struct header *h = r->headers; h; h = h->next)
		MHD_add_response_header(r->response, h->name, h->value);
	for (size_t i = 0; i < ARRAY_SIZE(standard_headers); i++)
		if (!header_given(r, standard_headers[i].name))
			MHD_add_response_header(r->response, standard_headers[i].name,
						standard_headers[i].value);
}

void request_answered(struct http_request *r)
{
	struct http_server *server = r->connection->server;
	struct listener *listener = r->connection->listener;
	const bool counted = r->counted;

	/* After the exchange r may be gone, unless it is we who must see to it that the network thread goes on with it. */
	if (atomic_exchange(&r->state, REQUEST_ANSWERED) == REQUEST_SUSPENDED)
		listener_resume(listener, r);
	if (!counted)
		return;
	pthread_mutex_lock(&server->lock);
	server->handling--;
	if (!server->handling)
		pthread_cond_broadcast(&server->changed);
	pthread_mutex_unlock(&server->lock);
}

void http_reply(struct http_request *r, int status, const char *content_type, struct buf *body)
{
	CHECK(atomic_load(&r->state) != REQUEST_ANSWERED && !r->status);
	r->status = status;
	r->content_type = content_type ? arena_strdup(&r->arena, content_type) : NULL;
	if (body) {
		r->answer = *body;
		*body = BUF_INIT;
	}
	request_answered(r);
}

static void error_reply(struct http_request *r, int status, const char *code, const struct err *err)
{
	struct buf out = BUF_INIT;

	buf_adds(&out, "{\"error\":{\"code\":\"");
	buf_adds(&out, code);
	buf_adds(&out, "\",\"message\":");
	buf_add_json(&out, err->text, strlen(err->text));
	if (err->file[0]) {
		buf_adds(&out, ",\"file\":");
		buf_add_json(&out, err->file, strlen(err->file));
	}
	if (err->line)
		buf_addf(&out, ",\"line\":%d", err->line);
	if (err->column)
		buf_addf(&out, ",\"column\":%d", err->column);
	buf_adds(&out, "}}\n");
	if (status == 401)
		http_add_header(r, "WWW-Authenticate", "Bearer realm=\"fairlead\"");
	http_reply(r, status, "application/json", &out);
	buf_deinit(&out);
}

void http_reply_error(struct http_request *r, const struct err *err)
{
	error_reply(r, err_code_http(err->code), err_code_name(err->code), err);
}

void http_reply_error_status(struct http_request *r, int status, const struct err *err)
{
	error_reply(r, status, err_code_name(err->code), err);
}

void reply_problem(struct http_request *r, enum framing_problem problem)
{
	const int status = framing_problem_http(problem);
	const bool large = status == 413 || status == 414 || status == 431;
	struct err err = { 0 };

	err_set(&err, large ? ERR_TOO_LARGE : ERR_INVALID, "%s", framing_problem_text(problem));
	r->close = true;
	error_reply(r, status, err_code_name(err.code), &err);
}

/* The name part of "name:port" or "[v6]:port"; 0 = not of that form. */
static size_t host_name_size(const char *host)
{
	size_t size;
	const char *rest;

	if (host[0] == '[') {
		const char *end = strchr(host, ']');

		if (!end)
			return 0;
		size = (size_t)(end + 1 - host);
	} else {
		size = strcspn(host, ":");
	}
	rest = host + size;
	if (*rest == '\0')
		return size;
	if (*rest != ':' || !rest[1] || strlen(rest + 1) > 5 ||
	    rest[1 + strspn(rest + 1, "0123456789")])
		return 0;
	return size;
}

static bool host_is_loopback(const char *host, size_t size)
{
	struct in_addr address;
	char text[INET_ADDRSTRLEN];

	if (size == 9 && !strncasecmp(host, "localhost", 9))
		return true;
	if (size == 5 && !memcmp(host, "[::1]", 5))
		return true;
	/* 127.0.0.0/8, in its one exact form: "127.0.0.1.example.org" and "127.1" are not. */
	if (size >= sizeof text)
		return false;
	memcpy(text, host, size);
	text[size] = '\0';
	return inet_pton(AF_INET, text, &address) == 1 && ntohl(address.s_addr) >> 24 == 127;
}

static bool method_is_safe(const char *method)
{
	return !strcmp(method, "GET") || !strcmp(method, "HEAD") || !strcmp(method, "OPTIONS");
}

/*
 * A page in somebody's browser must not be able to use the daemon: not under a name of its own that was made to point
 * here (the Host list), and not by sending a form or script request across (Origin, Sec-Fetch-Site).
 */
int request_check_host(const struct http_request *r, struct err *err)
{
	const char *host = http_header(r, "Host"), *origin = http_header(r, "Origin"),
		   *site = http_header(r, "Sec-Fetch-Site");
	const size_t size = host ? host_name_size(host) : 0;

	if (!size || (!r->connection->listener->server->options.listen_anywhere &&
		      !host_is_loopback(host, size)))
		return err_set(
			err, ERR_FORBIDDEN,
			"Host \"%.80s\" is not a name of this daemon; use 127.0.0.1, [::1] or localhost",
			host ? host : "");
	if (method_is_safe(r->method))
		return 0;
	if (origin && (strncmp(origin, "http://", 7) != 0 || strcasecmp(origin + 7, host) != 0))
		return err_set(
			err, ERR_FORBIDDEN,
			"the request comes from a page of \"%.80s\", which may change nothing here",
			origin);
	if (site && strcmp(site, "same-origin") != 0 && strcmp(site, "none") != 0)
		return err_set(
			err, ERR_FORBIDDEN,
			"the request comes from a page of another site, which may change nothing here");
	return 0;
}
