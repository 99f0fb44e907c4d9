#include "boot/boot.hpp"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "boot/foreign.hpp"
#include "boot/locality.hpp"
#include "boot/pmi.hpp"
#include "boot/pmix.hpp"
#include "boot/protocol.hpp"
#include "os/env.hpp"
#include "os/memory.hpp"
#include "os/process.hpp"

namespace weft::boot {
namespace {

// The inherited socket: "<fd>:<inode>", or -1 when the number now means something else or nothing.
int inherited_socket() {
    const char* v = os::env(env_fd);
    if (!v) return -1;
    char* end = nullptr;
    long fd = strtol(v, &end, 10);
    if (*end != ':' || fd < 0 || fd > 1 << 20) return -1;
    uint64_t inode = strtoull(end + 1, nullptr, 10);
    return inode && os::socket_inode(int(fd)) == inode ? int(fd) : -1;
}

// Says hello with a private socket, so that processes sharing the inherited one never read each other's answers.
int hello_by_inheritance(const Hello& hello) {
    int shared = inherited_socket();
    if (shared < 0) return -1;
    int pair[2];
    if (!os::socket_pair(pair)) return -1;
    bool sent = os::send_message(shared, &hello, sizeof hello, &pair[1], 1);
    os::close_fd(&pair[1]);
    os::close_fd(&shared);  // children of a rank are not this rank
    if (!sent) os::close_fd(&pair[0]);
    return pair[0];
}

// `other_user`: the id of who listens there, where that is not this process's.
int hello_by_name(const Hello& hello, int64_t* other_user) {
    const char* addr = os::env(env_addr);
    if (!addr) return -1;
    int s = os::connect_abstract(addr);
    if (s < 0) return -1;
    const bool same = os::peer_is_same_user(s);
    if (!same) *other_user = os::peer_user(s);
    if (!same || !os::send_message(s, &hello, sizeof hello, nullptr, 0)) os::close_fd(&s);
    return s;
}

Err refused_user(int rank, int64_t user) {
    return fail(Err::other, "rank %d: mpiexec runs as user %lld and this process as user %u, and they do not trust each other; start mpiexec "
                "as the user that the program shall run as, or unset %s to run alone", rank, static_cast<long long>(user), os::user_id(), env_rank);
}

// Why mpiexec's answer is no welcome.
Err refused(int rank, const Welcome& w, int64_t bytes) {
    if (bytes == 0) return fail(Err::other, "rank %d: mpiexec ended while this process started", rank);
    Denied denied;
    if (bytes == int64_t(sizeof denied) && w.magic == protocol_magic) {
        memcpy(&denied, &w, sizeof denied);
        if (denied.say == Say::other_user) return refused_user(rank, denied.user);
        if (denied.say == Say::other_job)
            return fail(Err::other, "rank %d: %s or %s is not of the job whose mpiexec is at %s; unset %s to run alone", rank, env_rank,
                        env_cookie, env_addr, env_rank);
    }
    return fail(Err::other, "rank %d: mpiexec speaks another version of Weft's protocol; use the mpiexec installed "
                "beside this libmpi_abi", rank);
}

// Descriptors come without gaps; afterwards each is at its own place, segment, localities, lifeline, or -1. False where others came
// than were announced.
bool sort_descriptors(const Welcome& w, int fds[3]) {
    int came[3] = {fds[0], fds[1], fds[2]}, next = 0;
    for (int i = 0; i < 3; i++) fds[i] = w.carries & 1u << i ? came[next++] : -1;
    for (int i = 0; i < 3; i++)
        if ((i < next) != (came[i] >= 0)) return false;
    return fds[2] >= 0 || w.generation > 0;
}

void take(Job* job, const Welcome& w, int link, int fds[3]) {
    job->rank = w.rank;
    job->size = w.size;
    job->node_rank = w.node_rank;
    job->node_size = w.node_size;
    job->appnum = w.appnum;
    job->universe_size = w.universe_size;
    job->app_size = w.app_size;
    job->cpus = w.cpus;
    job->generation = w.generation;
    job->id = w.job_id;
    static_assert(sizeof w.key == sizeof job->key);
    memcpy(job->key, w.key, sizeof job->key);
    job->memfd = fds[0];
    job->bounded = w.bounded != 0;
    job->launcher = Launcher::mpiexec;
    job->singleton = false;
    job->link = link;
    if (fds[1] >= 0) job->localities = static_cast<const Locality*>(os::map_shared(fds[1], 0, size_t(w.size) * sizeof(Locality), nullptr));
    os::close_fd(&fds[1]);
    if (fds[2] >= 0) job->lifeline = fds[2];
}

// Says that a launcher's variables are there and ignored: else a job of such a program would silently be N jobs of one rank.
void tell_of_foreign_rights() {
    if (!os::has_foreign_rights()) return;
    static constexpr const char* names[] = {env_rank, "PMI_FD", "PMI_RANK", "PMIX_NAMESPACE", "OMPI_COMM_WORLD_SIZE"};
    for (const char* name : names) {
        if (os::env_under(false, name) == nullptr) continue;
        os::say("weft: process %d runs with more rights than its user (setuid, setgid or file capabilities), so %s is ignored "
                "and it runs alone (MPI_COMM_WORLD has one rank)", os::process_id(), name);
        return;
    }
}

// ok with job->singleton still true: mpiexec's rank is taken, or there is no mpiexec.
Err attach_mpiexec(Job* job, int64_t rank) {
    Hello hello{protocol_magic, Say::hello, int32_t(rank), os::process_id(), {}};
    const char* cookie = os::env(env_cookie);
    if (cookie) strncpy(hello.cookie, cookie, cookie_bytes - 1);

    int link = hello_by_inheritance(hello);
    int64_t other_user = -1;
    if (link < 0) link = hello_by_name(hello, &other_user);
    if (other_user >= 0) return refused_user(int(rank), other_user);
    if (link < 0)
        return fail(Err::other, "rank %d: the mpiexec that started this process is gone; unset %s to run alone",
                    int(rank), env_rank);

    Welcome w;
    int fds[3];
    int64_t n = os::receive_message(link, &w, sizeof w, fds, 3);
    if (n >= int64_t(2 * sizeof(uint32_t)) && w.magic == protocol_magic && w.say == Say::refused) {
        os::close_fd(&link);
        os::say("weft: process %d is a child of rank %d, which has started MPI itself; it runs alone "
                "(MPI_COMM_WORLD has one rank)", os::process_id(), int(rank));
        return Err::ok;
    }
    bool whole = n == int64_t(sizeof w) && w.magic == protocol_magic && w.say == Say::welcome && sort_descriptors(w, fds);
    if (!whole) {
        os::close_fd(&link);
        for (int& fd : fds) os::close_fd(&fd);
        return refused(int(rank), w, n);
    }
    take(job, w, link, fds);
    // A process that attaches again still has the lifeline of its first time.
    if (fds[2] >= 0 && !os::die_with(job->lifeline))
        os::say("weft: rank %d: cannot arrange to end with mpiexec (%s)", job->rank, strerror(errno));
    return Err::ok;
}

}  // namespace

Err attach(Job* job) {
    int lifeline = job->lifeline;
    *job = Job{};
    job->lifeline = lifeline;
    os::host_name(job->host, sizeof job->host);
    job->cpus = os::cpus_allowed();

    tell_of_foreign_rights();
    if (const char* text = os::env(env_rank)) {
        int64_t rank;
        if (!os::parse_int(text, 0, INT32_MAX, &rank))
            return fail(Err::other, "%s=%.40s is no rank; unset it to run alone", env_rank, text);
        WEFT_TRY(attach_mpiexec(job, rank));
        if (!job->singleton) return Err::ok;
    }
    int pmi = pmi_descriptor();
    if (pmi >= 0) return attach_pmi(job, pmi);
    if (const int rank = pmi_parent(); rank != 0) {
        os::say("weft: process %d is a child of process %d, which has started MPI itself; it runs alone "
                "(MPI_COMM_WORLD has one rank)", os::process_id(), rank);
        return Err::ok;
    }
    return under_pmix() ? attach_pmix(job) : refuse_foreign();
}

int launch_info(char out[launch_info_bytes]) {
    static_assert(launch_info_bytes == info_bytes);
    const char* text = os::env(env_info);
    int n = 0;
    for (const char* c = text; c != nullptr && *c != 0; c++) {
        unsigned code = 0;
        if (n == launch_info_bytes - 1) return 0;  // not from mpiexec
        if (*c == '%' && c[1] != 0 && c[2] != 0 && sscanf(c + 1, "%2x", &code) == 1) {
            out[n++] = char(code);
            c += 2;
        } else {
            out[n++] = *c == '=' || *c == '&' ? 0 : *c;
        }
    }
    if (n > 0) out[n++] = 0;
    return n;
}

void finalized(Job* job) {
    if (job->launcher == Launcher::pmi) finalized_pmi(job);
    if (job->launcher == Launcher::pmix) finalized_pmix();
    if (job->launcher != Launcher::mpiexec || job->link < 0) return;
    Finalized m{protocol_magic, Say::finalized};
    // If mpiexec is gone the lifeline is about to end this process; nobody is left to tell.
    (void)os::send_message(job->link, &m, sizeof m, nullptr, 0);
}

bool asked(const Job* job) {
    if (job->launcher != Launcher::mpiexec || job->link < 0) return false;
    Question q;
    return os::peek_message(job->link, &q, sizeof q) == int64_t(sizeof q) && q.magic == protocol_magic && q.say == Say::question;
}

void answer(const Job* job, const char* text) {
    Answer a{protocol_magic, Say::answer, {}};
    strncpy(a.text, text, sizeof a.text - 1);
    (void)os::send_message(job->link, &a, sizeof a, nullptr, 0);  // if mpiexec is gone, so is this process in a moment
}

void detach(Job* job) {
    os::close_fd(&job->memfd);
    if (job->localities != nullptr) os::unmap(const_cast<Locality*>(job->localities), size_t(job->size) * sizeof(Locality));
    job->localities = nullptr;
    // The launcher's own descriptor stays: to it, closing means that this rank has ended.
    if (job->launcher == Launcher::pmi) job->link = -1;
    os::close_fd(&job->link);
}

void abort(Job* job, int code, const char* text, Cause cause) {
    const bool error = cause == Cause::error;
    if (job && job->launcher == Launcher::mpiexec && job->link >= 0) {
        Abort m{protocol_magic, Say::abort, code, error, {}};
        strncpy(m.text, text ? text : "", sizeof m.text - 1);
        if (os::send_message(job->link, &m, sizeof m, nullptr, 0)) os::exit_now(code);
    }
    char whose[32] = "";
    if (job && !job->singleton) snprintf(whose, sizeof whose, "rank %d: ", job->rank);
    os::say("weft: %s%s code %d%s%s", whose, error ? "ended by an MPI error," : "aborted with", code, text && *text ? ": " : "", text ? text : "");
    // The reason is said before the launcher starts to kill.
    if (job && job->launcher == Launcher::pmi) abort_pmi(job, code, text);
    if (job && job->launcher == Launcher::pmix) abort_pmix(code, text);
    os::exit_now(code);
}

}  // namespace weft::boot
