#include "boot/pmi.hpp"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "boot/exchange.hpp"
#include "boot/protocol.hpp"
#include "os/env.hpp"
#include "os/process.hpp"

namespace weft::boot {
namespace {

constexpr size_t line_bytes = 4096;
// One line of answers: "cmd=x key=value key=value ...\n".
struct Reply {
    // When it comes: as soon as the launcher has read the question, or when all other ranks have come, too.
    enum When : uint8_t { at_once, after_others } when = at_once;
    enum Flaw : uint8_t { wrong, late, half } flaw = wrong;  // of one that was not what was expected
    char line[line_bytes];

    // The value of `key`, which ends at a blank; `rest` takes everything to the end of the line (values may hold blanks).
    bool get(const char* key, char* out, size_t bytes, bool rest = false) const {
        size_t n = strlen(key);
        for (const char* p = line; (p = strstr(p, key)); p += n) {
            if ((p != line && p[-1] != ' ') || p[n] != '=') continue;
            size_t length = rest ? strlen(p + n + 1) : strcspn(p + n + 1, " ");
            if (length >= bytes) return false;
            memcpy(out, p + n + 1, length);
            out[length] = 0;
            return true;
        }
        return false;
    }
    bool get_int(const char* key, int64_t* out) const {
        char text[24];
        return get(key, text, sizeof text) && os::parse_int(text, INT32_MIN, INT32_MAX, out);
    }
    bool is(const char* command) const {
        char text[64];
        return get("cmd", text, sizeof text) && strcmp(text, command) == 0;
    }
};

// The first part of a barrier's answer may take as long as the slowest rank; after a while that is said, once.
bool wait_for_others(int fd) {
    if (os::wait_readable(fd, time_limit_ms())) return true;
    os::say("weft: process %d waits in MPI_Init for the launcher's barrier since %lld s: have all ranks come to MPI_Init?", os::process_id(),
            static_cast<long long>(time_limit_ms() / 1000));
    return os::wait_readable(fd, -1);
}

bool read_line(int fd, Reply* a) {
    // Answers come one per question, so what is read never belongs to a later line.
    size_t have = 0;
    if (a->when == Reply::after_others && !wait_for_others(fd)) return false;
    while (have < line_bytes - 1) {
        if (!os::wait_readable(fd, time_limit_ms())) {
            a->flaw = have == 0 ? Reply::late : Reply::half;
            return false;
        }
        int64_t n = os::read_some(fd, a->line + have, line_bytes - 1 - have);
        if (n <= 0) return false;
        have += size_t(n);
        if (a->line[have - 1] == '\n') {
            a->line[have - 1] = 0;
            return memchr(a->line, 0, have) == a->line + have - 1;
        }
    }
    return false;
}

// Asks and gets the answer `expected`; an rc that is not 0 is a failure.
[[gnu::format(printf, 4, 5)]] bool ask(int fd, Reply* a, const char* expected, const char* format, ...) {
    char question[line_bytes];
    va_list ap;
    va_start(ap, format);
    int n = vsnprintf(question, sizeof question, format, ap);
    va_end(ap);
    if (n < 0 || size_t(n) >= sizeof question || !os::write_all(fd, question, size_t(n))) return false;
    int64_t rc = 0;
    return read_line(fd, a) && a->is(expected) && (!a->get_int("rc", &rc) || rc == 0);
}

Err lost(const char* step, const Reply& a) {
    if (a.flaw != Reply::wrong)
        return fail(Err::other, "the launcher behind PMI_FD gave %s answer to %s within %lld s (%s sets that time); use Weft's mpiexec",
                    a.flaw == Reply::late ? "no" : "half an", step, static_cast<long long>(time_limit_ms() / 1000), env_launcher_timeout);
    return fail(Err::other, "the launcher behind PMI_FD does not answer %s in PMI-1; use Weft's mpiexec", step);
}

// The launcher's part of the exchange.
struct Wire {
    int fd;
    const char* space;

    Err publish(const char* text) {
        Reply a;
        return ask(fd, &a, "put_result", "cmd=put kvsname=%s key=%s value=%s\n", space, exchange_key, text) ? Err::ok : lost("put", a);
    }
    Err barrier() {
        Reply a;
        a.when = Reply::after_others;
        return ask(fd, &a, "barrier_out", "cmd=barrier_in\n") ? Err::ok : lost("barrier_in", a);
    }
    Err look_up(char* text, size_t bytes) {
        Reply a;
        bool found = ask(fd, &a, "get_result", "cmd=get kvsname=%s key=%s\n", space, exchange_key) && a.get("value", text, bytes, true);
        return found ? Err::ok : lost("get", a);
    }
};

}  // namespace

int pmi_descriptor() {
    int64_t fd;
    // A number alone proves nothing: the variable outlives the descriptor in a rank's grandchildren.
    bool alive = os::parse_int(os::env("PMI_FD"), 0, 1 << 20, &fd) && os::socket_inode(int(fd));
    return alive ? int(fd) : -1;
}

int pmi_parent() {
    int64_t fd;
    // attach_pmi() marks the descriptor, which launchers and wrappers leave to be inherited.
    return os::parse_int(os::env("PMI_FD"), 0, 1 << 20, &fd) ? os::ancestor_that_keeps(int(fd)) : 0;
}

Err attach_pmi(Job* job, int fd) {
    int64_t rank, size, n;
    if (!os::parse_int(os::env("PMI_SIZE"), 1, INT32_MAX, &size) ||
        !os::parse_int(os::env("PMI_RANK"), 0, size - 1, &rank))
        return fail(Err::other, "PMI_FD is alive, but PMI_RANK and PMI_SIZE do not say which rank this is; use Weft's mpiexec");
    Reply a;
    if (!ask(fd, &a, "response_to_init", "cmd=init pmi_version=1 pmi_subversion=1\n")) return lost("init", a);
    // Children of this rank are not this rank.
    os::set_close_on_exec(fd);
    job->link = fd;
    job->launcher = Launcher::pmi;
    job->singleton = false;
    job->rank = job->node_rank = int(rank);
    job->size = job->node_size = job->app_size = int(size);
    job->universe_size = int(size);
    char space[256];
    if (!ask(fd, &a, "my_kvsname", "cmd=get_my_kvsname\n") || !a.get("kvsname", space, sizeof space)) return lost("get_my_kvsname", a);
    if (ask(fd, &a, "appnum", "cmd=get_appnum\n") && a.get_int("appnum", &n)) job->appnum = int(n);
    if (a.flaw != Reply::wrong) return lost("get_appnum", a);  // what comes late would be taken for the next answer
    if (ask(fd, &a, "universe_size", "cmd=get_universe_size\n") && a.get_int("size", &n) && n >= size) job->universe_size = int(n);
    if (a.flaw != Reply::wrong) return lost("get_universe_size", a);
    Wire wire{fd, space};
    Err e = meet(job, wire);
    if (e != Err::ok) {
        // Its peers would wait for a rank that cannot join; so the job ends here, and the reason is said before that.
        os::say("weft: rank %d: %s", job->rank, fail_text());
        abort_pmi(job, 1, fail_text());
        os::exit_now(1);
    }
    return Err::ok;
}

void finalized_pmi(Job* job) {
    Reply a;
    // The launcher takes an exit for normal once it has answered; without an answer there is nothing left to do.
    (void)ask(job->link, &a, "finalize_ack", "cmd=finalize\n");
}

void abort_pmi(Job* job, int code, const char* text) {
    char line[line_bytes];
    int n = snprintf(line, sizeof line, "cmd=abort exitcode=%d message=%.1000s\n", code, text ? text : "");
    for (int i = 0; i < n - 1; i++)
        if (line[i] == '\n') line[i] = ' ';  // one line is one command
    if (n > 0 && size_t(n) < sizeof line) (void)os::write_all(job->link, line, size_t(n));
}

}  // namespace weft::boot
