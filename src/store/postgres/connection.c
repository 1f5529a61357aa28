/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "store/postgres/postgres_inner.h"

/* --- what the server says, in our words ------------------------------------------------------------------------ */

/* The first line of its message, without the severity that stands before it. */
static void first_words(const char *message, char *out, size_t size)
{
	const char *from = message;
	const char *severity[] = { "ERROR:  ", "FATAL:  ", "PANIC:  " };

	for (size_t i = 0; i < ARRAY_SIZE(severity); i++)
		if (strstr(message, severity[i]))
			from = strstr(message, severity[i]) + strlen(severity[i]);
	snprintf(out, size, "%.*s", (int)strcspn(from, "\n"), from);
}

int postgres_error(struct postgres *p, const PGresult *result, const char *what, struct err *err)
{
	char words[300];

	first_words(result          ? PQresultErrorMessage(result)
		    : p->connection ? PQerrorMessage(p->connection)
				    : "",
		    words, sizeof words);
	return err_set(err, postgres_is_lost(p, result) ? ERR_UNAVAILABLE : ERR_IO, "%s (%s): %s",
		       what, p->name,
		       *words ? words : "the connection was lost, or no answer came in time");
}

/*
 * By the first two characters of its code: 08 connection, 57 the server stops or starts, 53 it has no room for
 * another connection, 40 it could not settle two transactions; 25006: it has become a stand-by.
 */
bool postgres_is_lost(const struct postgres *p, const PGresult *result)
{
	const char *code = result ? PQresultErrorField(result, PG_DIAG_SQLSTATE) : NULL;

	if (!p->connection || PQstatus(p->connection) != CONNECTION_OK)
		return true;
	if (!code)
		return result == NULL;
	return strncmp(code, "08", 2) == 0 || strncmp(code, "57", 2) == 0 ||
	       strncmp(code, "40", 2) == 0 || strcmp(code, "53300") == 0 ||
	       strcmp(code, "25006") == 0;
}

/* --- connecting ---------------------------------------------------------------------------------------------------- */

void postgres_disconnect(struct postgres *p)
{
	PQfinish(p->connection);
	p->connection = NULL;
}

static int refuse(struct postgres *p, const char *what, struct err *err)
{
	int rc = postgres_error(p, NULL, what, err);

	postgres_disconnect(p);
	return rc;
}

static int fsync_must_be_on(struct postgres *p, struct err *err)
{
	PGresult *result = PQexec(p->connection, "SHOW fsync");
	bool on;

	if (PQresultStatus(result) != PGRES_TUPLES_OK) {
		PQclear(result);
		return refuse(p, "can't read the database's settings", err);
	}
	on = strcmp(PQgetvalue(result, 0, 0), "on") == 0;
	PQclear(result);
	if (on)
		return 0;
	postgres_disconnect(p);
	return err_set(
		err, ERR_UNSUPPORTED,
		"%s: its setting fsync is off, so what it has answered for could be lost with the power; set it to on in postgresql.conf",
		p->name);
}

/*
 * What it only remarks nobody asked for, and what goes wrong comes with a result. But for one remark: somebody called off the wait for its
 * stand-by (pg_cancel_backend), and it answers "done" for a commit that a fail-over may lose. The remark's text is in the server's language;
 * the name of the function that makes it is not.
 */
static void take_notice(void *context, const PGresult *notice)
{
	struct postgres *p = context;
	const char *from = PQresultErrorField(notice, PG_DIAG_SOURCE_FUNCTION);

	p->unsure |= from && strcmp(from, "SyncRepWaitForLSN") == 0;
}

static int settings_make(struct postgres *p, struct err *err)
{
	/* A server or role may have been told to answer before it has written. */
	PGresult *result = PQexec(p->connection, "SET synchronous_commit TO on");
	const bool done = PQresultStatus(result) == PGRES_COMMAND_OK;

	PQclear(result);
	if (!done)
		return refuse(p, "can't make settings in the database", err);
	return p->mode == POSTGRES_READ ? 0 : fsync_must_be_on(p, err);
}

/* The library's own words repeat pieces of an address that it can't read, and a password may be among them. */
int postgres_address_check(const char *address, struct err *err)
{
	char *problem = NULL;
	PQconninfoOption *options = PQconninfoParse(address, &problem);
	bool good = options != NULL;

	for (const PQconninfoOption *o = options; good && o->keyword; o++)
		if (o->val && strchr(o->val, '@') && strcmp(o->keyword, "password") != 0 &&
		    strcmp(o->keyword, "user") != 0)
			good = false;
	PQconninfoFree(options);
	PQfreemem(problem);
	return good ? 0
		    : err_set(err, ERR_INVALID,
			      "the address of the database can't be read: write postgresql://USER@HOST:PORT/NAME, with %%40 for an @ and %%25 for a %% in a name or password");
}

int postgres_connect(struct postgres *p, struct err *err)
{
	/* What stands before dbname gives way to what the address says. */
	const char *const names[] = { "application_name",
				      "connect_timeout",
				      "tcp_user_timeout",
				      "keepalives_idle",
				      "keepalives_interval",
				      "keepalives_count",
				      "client_encoding",
				      "target_session_attrs",
				      "dbname",
				      NULL };
	const char *const values[] = { "fairlead", "10",   "10000",      "5",        "2",
				       "3",        "UTF8", "read-write", p->address, NULL };
	const char *host;

	if (p->connection)
		return 0;
	p->connection = PQconnectdbParams(names, values, 1);
	CHECK(p->connection);
	PQsetNoticeReceiver(p->connection, take_notice, p);
	host = PQhost(p->connection);
	snprintf(p->name, sizeof p->name, "database \"%.80s\" at %.100s",
		 PQdb(p->connection) ? PQdb(p->connection) : "",
		 host && *host ? host : "this machine");
	if (PQstatus(p->connection) != CONNECTION_OK)
		return refuse(p, "can't reach PostgreSQL", err);
	return settings_make(p, err);
}

enum { ANSWER_WITHIN_MS = 30000 };

/* False: there is none in time, or the connection is gone. */
static bool answer_comes(PGconn *connection, int64_t end_ms)
{
	while (PQisBusy(connection)) {
		struct pollfd wait = { .fd = PQsocket(connection), .events = POLLIN };
		const int64_t left = end_ms - clock_mono_ns() / 1000000;

		if (left <= 0 || (poll(&wait, 1, (int)left) < 0 && errno != EINTR) ||
		    !PQconsumeInput(connection))
			return false;
	}
	return true;
}

PGresult *postgres_exec(struct postgres *p, const char *text, int count, const char *const *values,
			const int *sizes)
{
	static const int binary[16] = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 };
	const int64_t end_ms = clock_mono_ns() / 1000000 + ANSWER_WITHIN_MS;
	PGresult *last = NULL, *result;

	p->unsure = false;
	if (!PQsendQueryParams(p->connection, text, count, NULL, values, sizes, binary, 1))
		return NULL;
	for (;;) {
		if (!answer_comes(p->connection, end_ms)) {
			PQclear(last);
			return NULL;
		}
		result = PQgetResult(p->connection);
		if (!result)
			return last;
		PQclear(last);
		last = result;
	}
}

int postgres_ask(struct postgres *p, const char *text, int count, const char *const *values,
		 const int *sizes, PGresult **ret, struct err *err)
{
	for (int i = 0;; i++) {
		ExecStatusType status;
		PGresult *result;
		bool lost;

		if (postgres_connect(p, err) < 0)
			return -(int)err->code;
		result = postgres_exec(p, text, count, values, sizes);
		status = PQresultStatus(result);
		*ret = result;
		if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK)
			return 0;
		lost = postgres_is_lost(p, result);
		postgres_error(p, result, "PostgreSQL refuses", err);
		PQclear(result);
		if (lost)
			postgres_disconnect(p);
		if (!lost || i > 0)
			return -(int)err->code;
	}
}
