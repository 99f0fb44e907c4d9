#include "boot/pmi.hpp"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "os/env.hpp"
#include "os/memory.hpp"
#include "os/process.hpp"

namespace weft::boot {
namespace {

constexpr size_t line_bytes = 4096;
constexpr int cookie_digits = 32;

// One line of answers: "cmd=x key=value key=value ...\n".
struct Answer {
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

bool read_line(int fd, Answer* a) {
    // Answers come one per question, so what is read never belongs to a later line.
    size_t have = 0;
    while (have < line_bytes - 1) {
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
[[gnu::format(printf, 4, 5)]] bool ask(int fd, Answer* a, const char* expected, const char* format, ...) {
    char question[line_bytes];
    va_list ap;
    va_start(ap, format);
    int n = vsnprintf(question, sizeof question, format, ap);
    va_end(ap);
    if (n < 0 || size_t(n) >= sizeof question || !os::write_all(fd, question, size_t(n))) return false;
    int64_t rc;
    return read_line(fd, a) && a->is(expected) && (!a->get_int("rc", &rc) || rc == 0);
}

// What rank 0 publishes, and what it tells those who call.
struct Meeting {
    char node[96];
    char name[48];
    char cookie[cookie_digits + 1];
};

struct Caller {
    char cookie[cookie_digits + 1];
    uint64_t cpus[os::cpu_words];
};

struct Handout {
    uint64_t id;
    int32_t cpus;
};

bool make_meeting(Meeting* m) {
    unsigned char random[cookie_digits / 2 + 12];
    if (!os::random_bytes(random, sizeof random)) return false;
    for (int i = 0; i < cookie_digits / 2; i++) snprintf(m->cookie + 2 * i, 3, "%02x", random[i]);
    int at = snprintf(m->name, sizeof m->name, "weft-");
    for (size_t i = cookie_digits / 2; i < sizeof random; i++)
        at += snprintf(m->name + at, sizeof m->name - size_t(at), "%02x", random[i]);
    os::node_identity(m->node, sizeof m->node);
    return true;
}

// Rank 0: waits for all others, then gives each the segment and the number of CPUs they have together.
Err hand_out(Job* job, int listener, const Meeting& m) {
    uint64_t cpus[os::cpu_words];
    os::cpu_mask(cpus);
    // The peers' sockets, kept until all have come.
    int* peers = static_cast<int*>(os::map_private(size_t(job->size) * sizeof(int)));
    if (!peers) return fail(Err::no_mem, "no memory for the sockets of %d ranks", job->size);
    int have = 0;
    while (have < job->size - 1) {
        int s = os::accept_one(listener);
        if (s < 0) break;
        Caller c;
        int fd;
        bool good = os::peer_is_same_user(s) && os::receive_message(s, &c, sizeof c, &fd, 1) == int64_t(sizeof c) &&
                    memcmp(c.cookie, m.cookie, sizeof c.cookie) == 0;
        if (!good) {
            os::close_fd(&s);
            continue;
        }
        for (int i = 0; i < os::cpu_words; i++) cpus[i] |= c.cpus[i];
        peers[have++] = s;
    }
    bool all = have == job->size - 1;
    int together = 0;
    for (uint64_t word : cpus) together += __builtin_popcountll(word);
    job->cpus = together > 0 ? together : 1;
    Handout h{job->id, job->cpus};
    for (int i = 0; i < have; i++) {
        all = os::send_message(peers[i], &h, sizeof h, &job->memfd, 1) && all;
        os::close_fd(&peers[i]);
    }
    os::unmap(peers, size_t(job->size) * sizeof(int));
    return all ? Err::ok : fail(Err::other, "rank 0 could not give every rank the node's segment");
}

Err call(Job* job, const Meeting& m) {
    char here[sizeof m.node];
    os::node_identity(here, sizeof here);
    if (strcmp(here, m.node) != 0)
        return fail(Err::unsupported, "rank %d is not on rank 0's machine (or in another network namespace, or another user's); "
                    "this version of Weft runs on one machine", job->rank);
    int s = os::connect_abstract(m.name);
    Caller c{};
    memcpy(c.cookie, m.cookie, sizeof c.cookie);
    os::cpu_mask(c.cpus);
    Handout h;
    bool good = s >= 0 && os::peer_is_same_user(s) && os::send_message(s, &c, sizeof c, nullptr, 0) &&
                os::receive_message(s, &h, sizeof h, &job->memfd, 1) == int64_t(sizeof h) && job->memfd >= 0;
    os::close_fd(&s);
    if (!good) return fail(Err::other, "rank %d could not get the node's segment from rank 0", job->rank);
    job->id = h.id;
    job->cpus = h.cpus;
    return Err::ok;
}

Err lost(const char* step) {
    return fail(Err::other, "the launcher behind PMI_FD does not answer %s in PMI-1; use Weft's mpiexec", step);
}

// Rank 0 publishes where it can be met; all pass the launcher's barrier; the others go there.
Err meet(Job* job, int fd, const char* space) {
    Answer a;
    Meeting m{};
    int listener = -1;
    if (job->rank == 0) {
        job->memfd = os::make_memfd("weft");
        if (job->memfd < 0 || !os::random_bytes(&job->id, sizeof job->id) || !make_meeting(&m))
            return fail(Err::other, "rank 0 cannot make the node's segment");
        listener = os::listen_abstract(m.name);
        if (listener < 0) return fail(Err::other, "rank 0 cannot make the socket for its peers");
        if (!ask(fd, &a, "put_result", "cmd=put kvsname=%s key=weft-meeting value=%s!%s!%s\n", space, m.node, m.name, m.cookie))
            return lost("put");
    }
    Err e = Err::ok;
    if (!ask(fd, &a, "barrier_out", "cmd=barrier_in\n")) {
        e = lost("barrier_in");
    } else if (job->rank == 0) {
        e = hand_out(job, listener, m);
    } else {
        char value[sizeof m + 8];
        // Widths are the fields' sizes less their closing 0.
        if (!ask(fd, &a, "get_result", "cmd=get kvsname=%s key=weft-meeting\n", space) ||
            !a.get("value", value, sizeof value, true) || sscanf(value, "%95[^!]!%47[^!]!%32[^!]", m.node, m.name, m.cookie) != 3)
            e = lost("get");
        else
            e = call(job, m);
    }
    os::close_fd(&listener);
    return e;
}

}  // namespace

int pmi_descriptor() {
    int64_t fd;
    // A number alone proves nothing: the variable outlives the descriptor in a rank's grandchildren.
    bool alive = os::parse_int(os::env("PMI_FD"), 0, 1 << 20, &fd) && os::socket_inode(int(fd));
    return alive ? int(fd) : -1;
}

Err attach_pmi(Job* job, int fd) {
    int64_t rank, size, n;
    if (!os::parse_int(os::env("PMI_SIZE"), 1, INT32_MAX, &size) ||
        !os::parse_int(os::env("PMI_RANK"), 0, size - 1, &rank))
        return fail(Err::other, "PMI_FD is alive, but PMI_RANK and PMI_SIZE do not say which rank this is; use Weft's mpiexec");
    Answer a;
    if (!ask(fd, &a, "response_to_init", "cmd=init pmi_version=1 pmi_subversion=1\n")) return lost("init");
    // Children of this rank are not this rank.
    os::set_close_on_exec(fd);
    job->link = fd;
    job->launcher = Launcher::pmi;
    job->singleton = false;
    job->rank = job->node_rank = int(rank);
    job->size = job->node_size = job->app_size = int(size);
    job->universe_size = int(size);
    char space[256];
    if (!ask(fd, &a, "my_kvsname", "cmd=get_my_kvsname\n") || !a.get("kvsname", space, sizeof space)) return lost("get_my_kvsname");
    if (ask(fd, &a, "appnum", "cmd=get_appnum\n") && a.get_int("appnum", &n)) job->appnum = int(n);
    if (ask(fd, &a, "universe_size", "cmd=get_universe_size\n") && a.get_int("size", &n) && n >= size) job->universe_size = int(n);
    Err e = meet(job, fd, space);
    if (e != Err::ok) {
        // Its peers would wait for a rank that cannot join; so the job ends here, and the reason is said before that.
        os::say("weft: rank %d: %s", job->rank, fail_text());
        abort_pmi(job, 1, fail_text());
        os::exit_now(1);
    }
    return Err::ok;
}

void finalized_pmi(Job* job) {
    Answer a;
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
